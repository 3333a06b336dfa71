"""A linear classifier: the strength of the best attack on it is a formula, not a measurement."""

from __future__ import annotations

import math
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from vcr_core.protocols import BaseVideoClassifier, LabelSpace
from vcr_core.specs import ClipSpec

LINEAR_LABELS = LabelSpace("toy-quadrants", ("rows", "columns", "diagonal", "level"))

_SIGNS = ((1, 1, -1, -1), (1, -1, 1, -1), (1, -1, -1, 1), (1, 1, 1, 1))
_GREY = 128


class LinearClassifier(BaseVideoClassifier):
    """Logits ``z_k = gain · mean(P_k · (x - grey))`` with four orthogonal patterns ``P_k = ±1``.

    A pattern is constant on each quadrant of a frame, over time and over channels, so blocks,
    squares and single pixels all find it. For a video :meth:`video` of class ``y`` the margin to
    every other class is ``gain · contrast``, and one pixel moved by ``d`` changes a margin by at
    most ``2 · gain · d / n``.

    Args:
        frames: frames of a clip.
        size: side of the square at which the patterns are defined, in pixels; other sizes are
            resized first.
        gain: factor on the logits.
        device: where the patterns live.
    """

    labels = LINEAR_LABELS

    def __init__(
        self,
        frames: int = 4,
        size: int = 32,
        gain: float = 100.0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.clip = ClipSpec(frames=frames, size=size)
        self.gain = gain
        self.patterns = _patterns(size).to(device)

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, 1, 4]`` of clips ``[N, T', C, H, W]`` in [0, 1]."""
        frames = (clips - _GREY / 255).mean(dim=(1, 2))
        side = self.patterns.shape[-1]
        if frames.shape[-2:] != self.patterns.shape[-2:]:
            frames = F.interpolate(
                frames[:, None], (side, side), mode="bilinear", align_corners=False
            )[:, 0]
        # No matrix product: a row's bits must not depend on its place in the batch.
        z = (frames[:, None] * self.patterns.to(frames.dtype)).mean(dim=(2, 3))
        return self.gain * z[:, None]

    def to(self, device: torch.device | str) -> Self:
        """Move the patterns to ``device``."""
        self.patterns = self.patterns.to(device)
        return self

    def video(self, label: int, levels: int = 2) -> Tensor:
        """Return the video ``[T, 3, size, size]`` of a class, on the 8-bit grid.

        Args:
            label: index of the class.
            levels: contrast in 8-bit levels, the distance of every pixel from grey.
        """
        frame = (_GREY + levels * self.patterns[label]) / 255
        return frame.expand(self.clip.frames, 3, *frame.shape).clone()

    def least_radius(self, norm: str, levels: int = 2) -> float:
        """Return the radius of the smallest ball around :meth:`video` that holds a tie.

        Moving from ``P_y`` to ``P_j`` changes half of the ``n`` values, each by ``2 d / n``; the
        margin to undo is the contrast ``a``. Hence ``linf``: a; ``l2``: a·√(n/2); ``l1``: a·n/2;
        ``l0``: the fraction a of the pixels, if every value can move by one half.

        Args:
            norm: ``linf``, ``l2``, ``l1`` or ``l0``.
            levels: contrast in 8-bit levels.

        Raises:
            KeyError: for another norm.
        """
        n = self.clip.frames * 3 * self.clip.size**2
        a = levels / 255
        radii: dict[str, float] = {"linf": a, "l2": a * math.sqrt(n / 2), "l1": a * n / 2, "l0": a}
        return radii[norm]


def _patterns(size: int) -> Tensor:
    signs = torch.tensor(_SIGNS, dtype=torch.float32).reshape(4, 2, 2)
    half = size // 2
    rows = torch.tensor([half, size - half])
    return signs.repeat_interleave(rows, dim=1).repeat_interleave(rows, dim=2)


def make_linear(_weights: object = None) -> LinearClassifier:
    """Return the model, called as the registry calls a model without parameters."""
    return LinearClassifier()
