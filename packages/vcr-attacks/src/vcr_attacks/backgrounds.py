"""Backgrounds taken from training videos, and mixtures of videos with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import interpolate
from vcr_core.seeding import derive_seed

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import PrepareContext


def background_of(video: Tensor) -> Tensor:
    """Return the median over time of a video ``[T, C, H, W]``: what moves is not in it."""
    return video.median(dim=0).values


def collect(ctx: PrepareContext, count: int) -> tuple[Tensor, list[int]]:
    """Return a background each of at most ``count`` classes, from one random video of the class.

    Returns:
        ``[A, C, S, S]`` uint8 at the side ``S`` that the model sees, and the classes.
    """
    by_class: dict[int, list[int]] = {}
    for index, item in enumerate(ctx.items):
        by_class.setdefault(item.label, []).append(index)
    side = ctx.model.clip.size
    frames: list[Tensor] = []
    labels = sorted(by_class)[:count]
    for label in labels:
        members = by_class[label]
        drawn = derive_seed(ctx.seed, f"background:{label}", "prepare") % len(members)
        (batch,) = ctx.load([ctx.items[members[drawn]]])
        frame = interpolate(
            background_of(batch.videos[0])[None], (side, side), mode="bilinear", antialias=True
        )[0]
        frames.append((frame * 255).round().clamp(0, 255).to(torch.uint8))
    return torch.stack(frames).cpu(), labels


def mixture(video: Tensor, backgrounds: Tensor, actions: Tensor, gamma: float) -> Tensor:
    """Return ``gamma * x_t + (1 - gamma) * B[a_t]``, not clamped to any ball.

    Args:
        video: ``[B, T, C, H, W]``.
        backgrounds: ``[A, C, H, W]`` in [0, 1], of the video's size (:func:`fitted`).
        actions: ``[B, T]`` int64.
        gamma: share of the video; 1 gives the video itself.
    """
    if gamma == 1:
        return video.clone()
    return gamma * video + (1 - gamma) * backgrounds[actions]


def fitted(backgrounds: Tensor, video: Tensor) -> Tensor:
    """Return uint8 backgrounds ``[A, C, S, S]`` in [0, 1] at the size and place of a video."""
    scaled = backgrounds.to(video) / 255
    size = tuple(video.shape[-2:])
    if tuple(scaled.shape[-2:]) == size:
        return scaled
    return interpolate(scaled, size, mode="bilinear", align_corners=False)
