"""What detectors of tampering sample from a video, and what they tell of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vcr_core.specs import ClipSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

CLIP: Final = ClipSpec(frames=600, policy="all", size=112, reduce_to=112)
"""Twenty seconds at 30 frames a second take 160 MB as floats of 112x199 pixels."""


def checked(clips: Tensor) -> Tensor:
    """Return clips ``[N, T, 3, H, W]``.

    Raises:
        ValueError: for anything else.
    """
    if clips.ndim != 5 or clips.shape[1] < 1 or clips.shape[2] != 3:
        msg = f"expected clips [N, T, 3, H, W], got {tuple(clips.shape)}"
        raise ValueError(msg)
    return clips


def facts_of(
    log_p: Tensor, segment: tuple[int, int] | None, fps: float, evidence: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the record keeps of one video.

    Args:
        log_p: ``[14]`` log-probabilities; class 0 is the original.
        segment: frames from and to, where the detector names some.
        fps: frames per second.
        evidence: more of the detector's own.
    """
    tampered = int(log_p.argmax()) != 0
    place = None
    if tampered and segment is not None:
        place = [segment[0] / fps, segment[1] / fps]
    return {
        "score": float(-log_p[0].double().expm1()),
        "tampered": tampered,
        "segment_s": place,
        "evidence": dict(evidence),
    }
