"""Random parameters drawn once a video, once a clip or once a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_defenses.params.common import Per


def draw_shape(per: Per, clips: Tensor) -> tuple[int, ...]:
    """Return the shape of one video's draw for clips ``[B, V, T, C, H, W]``.

    One draw a video keeps all frames consistent in time; ``clip`` and ``frame`` are other,
    harsher defenses.
    """
    return {"video": (), "clip": (clips.shape[1],), "frame": tuple(clips.shape[1:3])}[per]


def by_draw(clips: Tensor, draws: int) -> Tensor:
    """Return the clips as ``[draws, planes, H, W]``: the planes that share one draw side by side.

    Args:
        clips: ``[B, V, T, C, H, W]``.
        draws: how many draws were made for all videos together.
    """
    return clips.reshape(draws, -1, *clips.shape[-2:])
