"""The bundled tiny classifiers behind the contract of ``vcr_core``."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final, Self

from vcr_core.datasets.motion.labels import MOTION_LABELS, label_space_id
from vcr_core.errors import ComponentUnavailable
from vcr_core.protocols import BaseVideoClassifier, LabelSpace
from vcr_core.specs import ClipSpec, WeightSpec

from vcr_models.bundled import PREFIX, bundled
from vcr_models.tiny.front import SOURCE_SIZE, pool, resize_and_crop
from vcr_models.tiny.networks import NETWORKS, build_network

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

CLIP: Final = ClipSpec(frames=16, policy="center", end="clamp", size=SOURCE_SIZE)
"""Sixteen consecutive frames: a whole SynthMotion clip."""

LABELS: Final = LabelSpace(label_space_id("motion"), MOTION_LABELS)


def weight_bytes(name: str) -> bytes:
    """Content of a bundled weight file.

    Args:
        name: key of ``NETWORKS``, such as ``tiny-r3d`` or ``tiny-r3d.adv``.

    Raises:
        ValueError: unknown name.
    """
    if name not in NETWORKS:
        msg = f"unknown tiny model {name!r}; expected one of {', '.join(NETWORKS)}"
        raise ValueError(msg)
    return (files("vcr_models") / "weights" / f"{name}.safetensors").read_bytes()


def from_weights(weights: WeightSpec) -> TinyClassifier:
    """Build the classifier that a spec's weights describe.

    Args:
        weights: ``url`` is ``package:vcr_models/weights/<name>.safetensors``; ``sha256`` is
            compared with the file if it is not empty.

    Raises:
        ComponentUnavailable: the url names no bundled file, or the file has another hash.
    """
    content = bundled(weights.url, weights.sha256)
    name = weights.url.removeprefix(PREFIX).removesuffix(".safetensors")
    if name not in NETWORKS:
        raise ComponentUnavailable(f"{weights.url!r} names no bundled tiny model")
    return TinyClassifier(build_network(name, content))


class TinyClassifier(BaseVideoClassifier):
    """A bundled network with everything between source pixels and logits.

    Attributes:
        labels: the sixteen motion classes.
        clip: sixteen frames, one temporal clip, one crop.
        network: the frozen network; takes pooled clips ``[N, 16, 3, 32, 32]`` in [0, 1].

    Example:
        >>> import torch
        >>> model = TinyClassifier.load("tiny-r3d")
        >>> tuple(model.logits(torch.rand(2, 16, 3, 90, 120)).shape)
        (2, 1, 16)
    """

    def __init__(self, network: nn.Module) -> None:
        self.labels = LABELS
        self.clip = CLIP
        self.network = network.eval().requires_grad_(False)

    @classmethod
    def load(cls, name: str) -> Self:
        """Build a classifier with its bundled weights.

        Args:
            name: weight name, for instance ``tiny-r3d`` or ``tiny-r3d.adv``.

        Raises:
            ValueError: unknown name.
            RuntimeError: the file does not fit the network exactly.
        """
        return cls(build_network(name, weight_bytes(name)))

    @property
    def feature_layers(self) -> tuple[str, ...]:
        """Names that ``features`` takes, from the pixels to the head, which is left out."""
        names = (name for name, _ in self.network.named_children())
        return tuple(name for name in names if name != "head")

    def logits(self, clips: Tensor) -> Tensor:
        """Class scores; gradients reach the source pixels.

        Args:
            clips: ``[N, 16, 3, H, W]`` float32 in [0, 1], RGB, any H and W.

        Returns:
            ``[N, 1, 16]``, one view per clip.

        Raises:
            ValueError: another number of dimensions, frames or channels.
        """
        if clips.ndim != 5 or clips.shape[1] != self.clip.frames or clips.shape[2] != 3:
            msg = f"expected clips [N, {self.clip.frames}, 3, H, W], got {tuple(clips.shape)}"
            raise ValueError(msg)
        scores: Tensor = self.network(pool(resize_and_crop(clips, self.clip.size)))
        return scores.unsqueeze(1)

    def resize(self, clips: Tensor) -> Tensor:
        """Clips at the size that the network looks at: short side resized, centre cropped.

        Args:
            clips: ``[N, T, 3, H, W]`` in [0, 1].

        Returns:
            ``[N, T, 3, 64, 64]``, differentiable; :meth:`logits` leaves such clips as they are.
        """
        resized: Tensor = resize_and_crop(clips, self.clip.size)
        return resized

    def features(self, clips: Tensor, layer: str) -> Tensor:
        """Activations of a layer, with gradients to the source pixels.

        Args:
            clips: as for ``logits``.
            layer: name of a child module of the network, for instance ``stage2`` of
                ``tiny-r3d``; its output as the module returns it.

        Returns:
            ``[N, ...]``, or ``[N * T, ...]`` where the layer works frame by frame.

        Raises:
            ValueError: no such layer, or clips that ``logits`` refuses.
        """
        children = dict(self.network.named_children())
        if layer not in children:
            msg = f"no layer {layer!r}; expected one of {', '.join(children)}"
            raise ValueError(msg)
        kept: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
            kept.append(output)

        handle = children[layer].register_forward_hook(keep)
        try:
            self.logits(clips)
        finally:
            handle.remove()
        return kept[-1]

    def to(self, device: torch.device | str) -> Self:
        """Move the network in place and return this classifier."""
        self.network.to(device)
        return self
