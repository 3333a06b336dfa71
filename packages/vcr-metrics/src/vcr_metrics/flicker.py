"""How much a perturbation changes from frame to frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import Reading

from vcr_metrics.levels import clip_length, frame_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo


class Flicker:
    """Change of the perturbation over time: ``flicker`` in levels, and ``roughness``.

    With ``d`` the perturbation in levels of 0..255, ``flicker`` is the mean of
    ``|d[t+1] - d[t]|`` and ``roughness`` the mean of ``(d[t+1] - d[t])²`` plus that of
    ``(d[t+1] - 2 d[t] + d[t-1])²``, over 255². A perturbation that stands still has none of
    either, however large it is; one that changes sign every frame has twice its size. The second
    follows the regularisers of Pony, Naeh, Mannor, CVPR 2021 ("Over-the-air adversarial flickering
    attacks against video recognition networks"), which are normalised otherwise there.

    Example:
        >>> from vcr_core.protocols import ClipInfo
        >>> grey = torch.full((4, 3, 8, 8), 100, dtype=torch.uint8)
        >>> blinking = grey + torch.tensor([0, 6, 0, 6], dtype=torch.uint8).view(4, 1, 1, 1)
        >>> Flicker().measure(grey, blinking, ClipInfo())["flicker"].value
        6.0
    """

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return both numbers; ``None`` where a clip has too few frames for them.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: frames of different clips are not compared.

        Raises:
            ValueError: for videos that do not match, values outside the range, or frames that are
                not as many clips of equal length as ``info`` says.
        """
        length = clip_length(reference, info)
        steps = absolute = first = second = 0.0
        before: list[Tensor] = []
        for at, delta in enumerate(_perturbations(reference, test)):
            if at % length == 0:
                before = []
            if before:
                change = delta - before[-1]
                absolute += float(change.abs().mean())
                first += float(change.square().mean())
                steps += 1
            if len(before) == 2:
                second += float((delta - 2 * before[1] + before[0]).square().mean())
            before = [*before, delta][-2:]
        if length < 2:
            too_short = Reading(None, "clips of one frame")
            return {"flicker": too_short, "roughness": too_short}
        flicker = Reading(absolute / steps)
        if length < 3:
            return {"flicker": flicker, "roughness": Reading(None, "clips of two frames")}
        curved = steps * (length - 2) / (length - 1)
        return {
            "flicker": flicker,
            "roughness": Reading((first / steps + second / curved) / 255**2),
        }


def _perturbations(reference: Tensor, test: Tensor) -> Iterator[Tensor]:
    for one, other in frame_pairs(reference, test):
        yield from other - one
