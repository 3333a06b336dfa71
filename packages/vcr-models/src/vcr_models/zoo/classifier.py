"""A network of the zoo behind the contract of ``vcr_core``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from vcr_core.errors import ContractViolation
from vcr_core.protocols import BaseVideoClassifier

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from vcr_core.protocols import LabelSpace
    from vcr_core.specs import ClipSpec

    from vcr_models.zoo.front import Front

Layout = Literal["NCTHW", "NTCHW"]


class ZooClassifier(BaseVideoClassifier):
    """A classifier that resizes, crops and normalises by itself.

    Args:
        network: takes normalised crops in its layout and returns logits ``[N, K]``.
        labels: classes of the head.
        clip: what to sample from a video.
        front: what lies between the source frames and the network.
        layout: order of axes that the network takes.
        name: for messages.
    """

    def __init__(
        self,
        network: nn.Module,
        labels: LabelSpace,
        clip: ClipSpec,
        front: Front,
        layout: Layout,
        name: str,
    ) -> None:
        self.network = network.eval().requires_grad_(requires_grad=False)
        self.labels, self.clip, self.front = labels, clip, front
        self.layout, self.name = layout, name

    def for_views(self, views: Literal["full", "light"]) -> ZooClassifier:
        """Return this classifier with its published crops, or with one; weights are shared."""
        crops = self.clip.crops if views == "full" else 1
        return ZooClassifier(
            self.network,
            self.labels,
            self.clip,
            replace(self.front, crops=crops),
            self.layout,
            self.name,
        )

    def resize(self, clips: Tensor) -> Tensor:
        """Return clips at the size from which the network's crops are taken."""
        return self.front.resized(clips)

    def logits(self, clips: Tensor) -> Tensor:
        """Class scores; gradients reach the source pixels.

        Args:
            clips: ``[N, T', 3, H, W]`` float32 in [0, 1], RGB, any H and W.

        Returns:
            ``[N, crops, K]``.

        Raises:
            ValueError: another number of dimensions, frames or channels.
            ContractViolation: if the network returns another shape.
        """
        if clips.ndim != 5 or clips.shape[1] != self.clip.frames or clips.shape[2] != 3:
            msg = f"expected clips [N, {self.clip.frames}, 3, H, W], got {tuple(clips.shape)}"
            raise ValueError(msg)
        views = self.front.views(clips)
        flat = views.flatten(0, 1)
        if self.layout == "NCTHW":
            flat = flat.transpose(1, 2)
        own = next(self.network.parameters(), flat).dtype
        # Statistics and crops are exact; only what is inside the network may be coarse.
        out: Tensor = self.network(flat.contiguous().to(own)).to(clips.dtype)
        if out.shape != (len(flat), len(self.labels)):
            raise ContractViolation(
                f"{self.name} returned shape {list(out.shape)} for {len(flat)} views; "
                f"[{len(flat)}, {len(self.labels)}] is needed"
            )
        result: Tensor = out.unflatten(0, views.shape[:2])  # type: ignore[no-untyped-call]
        return result

    def to(self, device: torch.device | str) -> Self:
        """Move the network in place and return this classifier."""
        self.network.to(device)
        return self
