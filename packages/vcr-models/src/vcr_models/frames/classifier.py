"""An image classifier behind the contract of ``vcr_core``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from vcr_core.prediction import aggregate
from vcr_core.protocols import BaseVideoClassifier

from vcr_models.frames.resample import resized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn
    from vcr_core.protocols import LabelSpace
    from vcr_core.specs import ClipSpec


class FramesClassifier(BaseVideoClassifier):
    """A classifier of images that sees every frame alone; their probabilities are averaged.

    Time is nothing to it: frames in another order give the same answer.

    Args:
        network: takes normalised images ``[N, 3, size, size]`` and returns logits ``[N, K]``.
        labels: classes of the head.
        clip: what to sample from a video.
        short_side: of the frame from which the centre is cut.
        size: side of that square.
        mean: of each channel, in [0, 1].
        std: of each channel.
    """

    def __init__(
        self,
        network: nn.Module,
        labels: LabelSpace,
        clip: ClipSpec,
        *,
        short_side: int,
        size: int,
        mean: Sequence[float],
        std: Sequence[float],
    ) -> None:
        self.network = network.eval().requires_grad_(requires_grad=False)
        self.labels, self.clip = labels, clip
        self._short_side, self._size = short_side, size
        self._mean = torch.tensor(list(mean)).view(3, 1, 1)
        self._std = torch.tensor(list(std)).view(3, 1, 1)

    def resize(self, clips: Tensor) -> Tensor:
        """Return clips in [0, 1] at the size from which the network's square is cut."""
        return resized(clips, self._short_side).clamp(0, 1)

    def logits(self, clips: Tensor) -> Tensor:
        """Return the logarithm of the frames' mean probabilities; gradients reach the pixels.

        Args:
            clips: ``[N, T', 3, H, W]`` float32 in [0, 1], RGB, any H and W.

        Returns:
            ``[N, 1, K]``.

        Raises:
            ValueError: another number of dimensions, frames or channels.
        """
        if clips.ndim != 5 or clips.shape[1] != self.clip.frames or clips.shape[2] != 3:
            msg = f"expected clips [N, {self.clip.frames}, 3, H, W], got {tuple(clips.shape)}"
            raise ValueError(msg)
        frames = resized(clips, self._short_side).flatten(0, 1)
        top, left = ((side - self._size) // 2 for side in frames.shape[-2:])
        square = frames[..., top : top + self._size, left : left + self._size]
        images = (square - self._mean) / self._std
        scores: Tensor = self.network(images.contiguous())
        return aggregate(scores.view(len(clips), clips.shape[1], -1)).unsqueeze(1)

    def to(self, device: torch.device | str) -> Self:
        """Move the network in place and return this classifier."""
        self.network.to(device)
        self._mean, self._std = self._mean.to(device), self._std.to(device)
        return self
