"""The generated motion dataset as a ``VideoDataset``; clips are drawn when they are read."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from vcr_core.datasets.motion.generator import (
    GENERATOR_VERSION,
    clip_labels,
    generate_clip,
    split_size,
)
from vcr_core.datasets.motion.labels import label_index, label_names, label_space_id
from vcr_core.protocols import LabelSpace, VideoItem
from vcr_core.video.info import Clip, VideoInfo
from vcr_core.video.planning import ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vcr_core.datasets.params import MotionParams
    from vcr_core.protocols import Sampler

_PREFIX: Final = GENERATOR_VERSION.replace("/", "-")
_FPS: Final = Fraction(16)


@dataclass(frozen=True, slots=True)
class MotionSource:
    """One clip, a pure function of these fields.

    Attributes:
        split: ``train``, ``val`` or ``test``.
        index: number of the clip in its split.
        base_seed: seed of the whole dataset.
        frames: frames of the clip.
        size: side of a frame in pixels.
        hardness: factor on the nuisance terms.
    """

    split: str
    index: int
    base_seed: int
    frames: int
    size: int
    hardness: float

    @property
    def name(self) -> str:
        """Generator id, e.g. ``motion-v1-test-000123 (seed 0, 16x64x64, hardness 1)``."""
        shape = f"{self.frames}x{self.size}x{self.size}"
        facts = f"seed {self.base_seed}, {shape}, hardness {self.hardness:g}"
        return f"{_video_id(self.split, self.index)} ({facts})"

    def read(self, sampler: Sampler) -> Clip:
        """Draw the clip and return what the sampler's plan uses.

        Raises:
            VideoReadError: with stage ``sampling`` if the sampler refuses.
        """
        plan = ask(sampler, self.frames, self.name)
        info = VideoInfo(
            path=self.name,
            width=self.size,
            height=self.size,
            codec="generated",
            container=GENERATOR_VERSION,
            rotation=0,
            pix_fmt="rgb24",
            nominal_fps=_FPS,
            header_frames=self.frames,
            duration_s=float(self.frames / _FPS),
        )
        return Clip(
            frames=_draw(self)[plan.distinct],
            plan=plan,
            indices=plan.distinct,
            pts_s=plan.distinct / float(_FPS),
            fps=_FPS,
            n_decoded=self.frames,
            pts_monotonic=True,
            info=info,
            backend=f"{GENERATOR_VERSION} (numpy {np.__version__})",
        )

    def sha256(self) -> str:
        """Return the hash of the drawn frames ``[T, S, S, 3]``."""
        return hashlib.sha256(_draw(self).data).hexdigest()


class MotionDataset:
    """Generated clips of moving textured shapes; no files.

    Ids are ``motion-v1-<split>-<six digits>``.

    Args:
        params: split, label space, geometry, seed and number of clips.
    """

    def __init__(self, params: MotionParams) -> None:
        self.params = params
        self.labels = LabelSpace(label_space_id(params.labels), label_names(params.labels))
        self._count = split_size(params.split) if params.videos is None else params.videos

    def ids(self) -> Sequence[str]:
        """Return every id, in the order of the generator."""
        return [_video_id(self.params.split, index) for index in range(self._count)]

    def item(self, video_id: str) -> VideoItem:
        """Return one clip without drawing it.

        Raises:
            KeyError: for an id that :meth:`ids` does not list.
        """
        params = self.params
        match = re.fullmatch(rf"{_PREFIX}-{params.split}-([0-9]{{6,}})", video_id)
        index = int(match[1]) if match else -1
        if not 0 <= index < self._count or video_id != _video_id(params.split, index):
            raise KeyError(video_id)
        motion, shape = clip_labels(params.split, index, base_seed=params.base_seed)
        source = MotionSource(
            split=params.split,
            index=index,
            base_seed=params.base_seed,
            frames=params.frames,
            size=params.size,
            hardness=params.hardness,
        )
        return VideoItem(video_id, label_index(params.labels, motion, shape), source)


def _video_id(split: str, index: int) -> str:
    return f"{_PREFIX}-{split}-{index:06d}"


@lru_cache(maxsize=64)
def _draw(source: MotionSource) -> NDArray[np.uint8]:
    """Return ``[T, S, S, 3]`` uint8, read-only; a sweep asks for the same clips again and again."""
    frames = generate_clip(
        source.split,
        source.index,
        base_seed=source.base_seed,
        frames=source.frames,
        size=source.size,
        hardness=source.hardness,
    ).frames
    frames.flags.writeable = False
    return frames
