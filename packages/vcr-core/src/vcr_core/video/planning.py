"""Asking a sampler for its plan, and building clips from frames that are already at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcr_core.video.info import Clip, VideoReadError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vcr_core.protocols import Sampler
    from vcr_core.video.info import VideoInfo
    from vcr_core.video.sampling import SamplingPlan


def ask(sampler: Sampler, n_frames: int, name: str) -> SamplingPlan:
    """Return the sampler's plan for a video of ``n_frames`` frames.

    Args:
        sampler: from the number of frames to a plan.
        n_frames: number of frames, at least 1.
        name: what messages call the video.

    Raises:
        VideoReadError: with stage ``sampling`` if the sampler refuses, or plans for another video.
    """
    try:
        plan = sampler(n_frames)
    except (ValueError, IndexError, ArithmeticError) as error:
        raise VideoReadError(name, "sampling", error) from error
    if plan.n_frames != n_frames:
        text = f"the plan is for {plan.n_frames} frames, the video has {n_frames}"
        raise VideoReadError(name, "sampling", text)
    return plan


def usable_count(
    name: str, available: int, max_frames: int | None, expected_frames: int | None
) -> int:
    """Return how many of the available frames the sampler may use.

    Raises:
        VideoReadError: if there is none, or the manifest states another number.
    """
    if available == 0:
        raise VideoReadError(name, "empty", "holds no frame")
    if expected_frames is not None and expected_frames != available:
        text = f"holds {available} frames, the manifest states {expected_frames}"
        raise VideoReadError(name, "decode", text)
    return available if max_frames is None else min(available, max_frames)


def untimed_clip(
    frames: NDArray[np.uint8],
    plan: SamplingPlan,
    info: VideoInfo,
    backend: str,
    *,
    truncated: bool = False,
    notes: tuple[str, ...] = (),
) -> Clip:
    """Return a clip of frames ``[U, H, W, 3]`` uint8 that carry no times of their own."""
    return Clip(
        frames=np.ascontiguousarray(frames),
        plan=plan,
        indices=plan.distinct,
        pts_s=np.full(len(plan.distinct), np.nan),
        fps=info.nominal_fps,
        n_decoded=plan.n_frames,
        pts_monotonic=False,
        info=info,
        backend=backend,
        truncated=truncated,
        notes=notes,
    )
