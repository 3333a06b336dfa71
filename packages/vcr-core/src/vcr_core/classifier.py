"""Any ``torch.nn.Module`` as a video classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

import torch
from torch.nn import functional

from vcr_core.errors import ContractViolation, UsageError
from vcr_core.protocols import BaseVideoClassifier, LabelSpace
from vcr_core.specs import ClipSpec

if TYPE_CHECKING:
    from torch import Tensor, nn


def as_classifier(
    module: nn.Module,
    *,
    labels: LabelSpace | Sequence[str],
    clip: ClipSpec,
    normalize: tuple[Sequence[float], Sequence[float]] | None = None,
    layout: Literal["TCHW", "CTHW"] = "CTHW",
    resize: bool = True,
    name: str = "",
) -> ModuleClassifier:
    """Return a classifier around a module that maps a batch of clips to logits ``[N, K]``.

    Args:
        module: takes ``[N, C, T, H, W]`` (or ``[N, T, C, H, W]``) and returns logits; it is put
            into evaluation mode and its parameters are frozen.
        labels: class names in the order of the logits.
        clip: what to sample from a video; ``clip.size`` is the side that the module takes.
        normalize: mean and standard deviation per channel, on the [0, 1] scale.
        layout: order of the axes that the module takes.
        resize: bring the short side to ``clip.size`` (bilinear, no antialiasing) and crop the
            centre; without it the module sees frames as they are.
        name: a name for results.

    Example:
        >>> from torch import nn
        >>> net = nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, 2))
        >>> model = as_classifier(net, labels=["a", "b"], clip=ClipSpec(frames=4, size=8))
        >>> model.logits(torch.rand(5, 4, 3, 20, 30)).shape
        torch.Size([5, 1, 2])
    """
    space = labels if isinstance(labels, LabelSpace) else LabelSpace("custom", tuple(labels))
    if normalize is not None and any(s <= 0 for s in normalize[1]):
        raise UsageError(f"normalize: standard deviations must be above 0, found {normalize[1]}")
    if normalize is not None and max(*normalize[0], *normalize[1]) > 2:
        raise UsageError(
            f"normalize: {normalize} is on the 0-255 scale; pixels are in [0, 1], divide by 255"
        )
    return ModuleClassifier(module, space, clip, normalize, layout, resize, name)


class ModuleClassifier(BaseVideoClassifier):
    """What :func:`as_classifier` returns."""

    def __init__(
        self,
        module: nn.Module,
        labels: LabelSpace,
        clip: ClipSpec,
        normalize: tuple[Sequence[float], Sequence[float]] | None,
        layout: Literal["TCHW", "CTHW"],
        resizes: bool,
        name: str,
    ) -> None:
        self.labels = labels
        self.clip = clip
        self.name = name or type(module).__name__
        self.module = module.eval().requires_grad_(False)
        self._layout = layout
        self._resizes = resizes
        mean, std = normalize or ((0.0,), (1.0,))
        self._mean = torch.tensor(mean).view(1, 1, -1, 1, 1)
        self._std = torch.tensor(std).view(1, 1, -1, 1, 1)

    def resize(self, clips: Tensor) -> Tensor:
        """Return ``[N, T', C, size, size]``: short side resized, centre cropped, differentiable."""
        size = self.clip.size
        flat = clips.flatten(0, 1)
        height, width = flat.shape[-2:]
        if min(height, width) != size:
            scale = size / min(height, width)
            to = (max(size, round(height * scale)), max(size, round(width * scale)))
            flat = functional.interpolate(flat, to, mode="bilinear", align_corners=False)
        top, left = (flat.shape[-2] - size) // 2, (flat.shape[-1] - size) // 2
        flat = flat[..., top : top + size, left : left + size]
        return flat.reshape(*clips.shape[:2], *flat.shape[1:])

    def logits(self, clips: Tensor) -> Tensor:
        """Return ``[N, 1, K]`` logits of clips ``[N, T', C, H, W]`` in [0, 1]."""
        if self._resizes:
            clips = self.resize(clips)
        ready = (clips - self._mean.to(clips)) / self._std.to(clips)
        if self._layout == "CTHW":
            ready = ready.transpose(1, 2)
        out: Tensor = self.module(ready)
        if out.dim() != 2 or out.shape[1] != len(self.labels):
            raise ContractViolation(
                f"{self.name} returned shape {list(out.shape)} for {clips.shape[0]} clips; "
                f"[N, {len(self.labels)}] is needed for its {len(self.labels)} labels"
            )
        return out.unsqueeze(1)

    def to(self, device: torch.device | str) -> Self:
        """Move to ``device`` and return the classifier."""
        self.module.to(device)
        return self
