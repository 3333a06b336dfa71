"""Clips as rows of frames, for filters along time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def frames_first(clips: Tensor) -> Tensor:
    """Return clips ``[B, V, T, C, H, W]`` as ``[T, B * V * C * H * W]``."""
    return clips.movedim(2, 0).reshape(clips.shape[2], -1)


def frames_third(rows: Tensor, clips: Tensor) -> Tensor:
    """Undo :func:`frames_first` for rows of the shape of ``clips``; the result is contiguous."""
    batch, views, count, *frame = clips.shape
    return rows.view(count, batch, views, *frame).movedim(0, 2).contiguous()


def replicate_ends(rows: Tensor, margin: int) -> Tensor:
    """Return rows ``[T, P]`` with the first and the last one ``margin`` more times."""
    first, last = rows[:1].expand(margin, -1), rows[-1:].expand(margin, -1)
    return torch.cat([first, rows, last])


def take_frames(clips: Tensor, index: Tensor) -> Tensor:
    """Return the frames ``index`` of clips ``[B, V, T, C, H, W]``, with an exact gradient.

    Args:
        clips: where frames are taken from.
        index: ``[B, T]`` for all views alike, or ``[B, V, T]``; int64 on any device.
    """
    batch, views = clips.shape[:2]
    index = index.to(clips.device)
    if index.ndim == 2:
        index = index.unsqueeze(1).expand(batch, views, -1)
    rows = torch.arange(batch, device=clips.device).view(-1, 1, 1)
    columns = torch.arange(views, device=clips.device).view(1, -1, 1)
    return clips[rows, columns, index]
