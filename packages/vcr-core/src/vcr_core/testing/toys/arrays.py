"""Videos that are arrays in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from vcr_core.video.info import Clip, VideoInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vcr_core.protocols import Sampler

FPS = Fraction(8)


@dataclass(frozen=True, slots=True, eq=False)
class ArraySource:
    """A video source that holds its frames.

    Attributes:
        name: what messages and records call it.
        frames: ``[n, H, W, 3]`` uint8 RGB.
    """

    name: str
    frames: NDArray[np.uint8]

    def read(self, sampler: Sampler) -> Clip:
        """Return what the sampler's plan uses."""
        return clip_of(self.name, self.frames, sampler)

    def sha256(self) -> str:
        """Return the hash of the frames."""
        return array_hash(self.frames)


def clip_of(name: str, frames: NDArray[np.uint8], sampler: Sampler) -> Clip:
    """Return the frames that a sampler's plan uses, as a reader returns them.

    Args:
        name: what messages and records call the video.
        frames: ``[n, H, W, 3]`` uint8 RGB.
        sampler: from a number of frames to a plan.
    """
    plan = sampler(len(frames))
    return Clip(
        frames=np.ascontiguousarray(frames[plan.distinct]),
        plan=plan,
        indices=plan.distinct,
        pts_s=plan.distinct / float(FPS),
        fps=FPS,
        n_decoded=len(frames),
        pts_monotonic=True,
        info=VideoInfo(
            path=name,
            width=frames.shape[2],
            height=frames.shape[1],
            codec="none",
            container="array",
            nominal_fps=FPS,
            header_frames=len(frames),
        ),
        backend=f"numpy {np.__version__}",
    )


def array_hash(frames: NDArray[np.uint8]) -> str:
    """Return the SHA-256 of the pixels, in hexadecimal digits."""
    return hashlib.sha256(np.ascontiguousarray(frames).tobytes()).hexdigest()
