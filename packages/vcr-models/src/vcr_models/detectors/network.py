"""``tamper-net``: a small convolutional network in time over differences between frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional

from vcr_models.detectors.signals import FLOOR, SIDE, grey_levels, small_frames

if TYPE_CHECKING:
    from torch import Tensor

CHANNELS: Final = 28
"""Signals per frame."""

_CELLS: Final = 4
_NEAREST: Final = 4
"""A frame is compared with those at least so many before or after it."""


class TamperNet(nn.Module):
    """Signals of every frame, convolutions in time, one class a video and a mark a frame.

    Args:
        classes: number of classes.
        width: channels of the convolutions.
    """

    def __init__(self, classes: int, width: int = 40) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(CHANNELS)
        self.stem = nn.Conv1d(CHANNELS, width, 3, padding=1)
        self.blocks = nn.ModuleList(_Block(width, dilation) for dilation in (1, 2, 4, 8))
        self.head = nn.Linear(2 * width, classes)
        self.mark = nn.Conv1d(width, 1, 1)

    def forward(self, signals: Tensor, frames: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return class scores ``[N, K]`` and marks ``[N, T]``, above 0 = tampered with.

        Args:
            signals: ``[N, 28, T]``, of :func:`network_signals`.
            frames: ``[N]`` how many of the ``T`` frames there are; all where it is absent.
        """
        count = signals.shape[2]
        there = torch.ones_like(signals[:, :1])
        if frames is not None:
            place = torch.arange(count, device=signals.device)
            there = (place < frames[:, None]).to(signals.dtype)[:, None]
        hidden = self.stem(self.norm(signals) * there) * there
        for block in self.blocks:
            hidden = block(hidden) * there
        mean = hidden.sum(dim=2) / there.sum(dim=2)
        top = (hidden - 1e4 * (1 - there)).amax(dim=2)
        scores: Tensor = self.head(torch.cat([mean, top], dim=1))
        marks: Tensor = self.mark(hidden)[:, 0]
        return scores, marks


class _Block(nn.Module):
    """Two convolutions, the first one dilated, around which the input goes."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.wide = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.point = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the same shape ``[N, C, T]``."""
        return functional.relu(x + self.point(functional.relu(self.wide(x))))


def network_signals(clips: Tensor) -> Tensor:
    """Return ``[N, 28, T]`` of clips ``[N, T, 3, H, W]`` in [0, 1]; differentiable.

    Differences stand at the frame behind them; the first frame repeats the second one's.
    """
    grey = grey_levels(clips)
    small = small_frames(grey)
    flat = small.flatten(2)
    steps = [_lagged(flat, lag) for lag in (1, 2, 3)]
    cells = _cell_steps(small)
    straight, turned = _fits(flat)
    detail = _detail(grey)
    earlier, later = _repeats(flat)
    rows = [
        *(torch.log(step + FLOOR) for step in steps),
        flat.mean(dim=2) / 64,
        (flat.var(dim=2, correction=0) + 1e-3).sqrt() / 16,
        straight,
        turned,
        detail,
        _behind(detail[:, 1:] - detail[:, :-1]),
        _behind(steps[0][:, 1:] - steps[0][:, :-1]) / 8,
        torch.log(earlier + FLOOR),
        torch.log(later + FLOOR),
    ]
    return torch.cat([torch.stack(rows, dim=1), torch.log(cells + FLOOR)], dim=1)


def _behind(values: Tensor) -> Tensor:
    """Return ``[N, T]`` of differences ``[N, T - 1]``; 0 where there is one frame alone."""
    if values.shape[1] == 0:
        return functional.pad(values, (1, 0))
    return torch.cat([values[:, :1], values], dim=1)


def _lagged(flat: Tensor, lag: int) -> Tensor:
    """Return ``[N, T]``: the mean difference to the frame ``lag`` before, or to the first one."""
    count = flat.shape[1]
    before = (torch.arange(count, device=flat.device) - lag).clamp(min=0)
    found = (flat - flat[:, before]).abs().mean(dim=2)
    return _behind(found[:, 1:])


def _cell_steps(small: Tensor) -> Tensor:
    """Return ``[N, 16, T]``: the mean difference of neighbours in 4x4 parts of the picture."""
    n, t = small.shape[:2]
    change = (small[:, 1:] - small[:, :-1]).abs().reshape(n * (t - 1), 1, SIDE, SIDE)
    parts = functional.avg_pool2d(change, SIDE // _CELLS).reshape(n, t - 1, _CELLS**2)
    # In order of size: where in the picture something happens does not matter.
    ordered = parts.sort(dim=2).values.transpose(1, 2)
    if t == 1:
        return small.new_zeros(n, _CELLS**2, 1)
    return torch.cat([ordered[:, :, :1], ordered], dim=2)


def _fits(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Return correlations ``[N, T]`` with the frame before, as it was and turned by 180 degrees."""
    centred = flat - flat.mean(dim=2, keepdim=True)
    norms = (centred.square().sum(dim=2) + 1.0).sqrt()
    scale = norms[:, 1:] * norms[:, :-1]
    straight = (centred[:, 1:] * centred[:, :-1]).sum(dim=2) / scale
    turned = (centred[:, 1:] * centred[:, :-1].flip(2)).sum(dim=2) / scale
    return _behind(straight), _behind(turned)


def _detail(grey: Tensor) -> Tensor:
    """Return ``[N, T]``: the logarithm of the Laplacian's standard deviation."""
    if min(grey.shape[2:]) < 3:
        return grey.new_zeros(grey.shape[:2])
    inner = grey[..., 1:-1, 1:-1]
    around = grey[..., 2:, 1:-1] + grey[..., :-2, 1:-1] + grey[..., 1:-1, 2:] + grey[..., 1:-1, :-2]
    variance = (around - 4 * inner).flatten(2).var(dim=2, correction=0)
    return torch.log(variance + 0.01) / 2


def _repeats(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``[N, T]`` twice: the difference to the most alike earlier and later frame.

    Neighbours are left out; where no other frame is left, the difference is that of black and
    white.
    """
    count = flat.shape[1]
    place = torch.arange(count, device=flat.device)
    apart = torch.cdist(flat, flat, p=1) / flat.shape[2]
    gap = place[:, None] - place[None, :]
    earlier = apart.masked_fill(gap < _NEAREST, 255.0).amin(dim=2)
    later = apart.masked_fill(-gap < _NEAREST, 255.0).amin(dim=2)
    return earlier, later
