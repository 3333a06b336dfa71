"""A generated dataset: gradients in which one primary colour is a little stronger."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from vcr_core import VideoItem
from vcr_core.video.info import Clip, VideoInfo

from vcr_example_plugin.colours import COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from vcr_core.protocols import Sampler

    from vcr_example_plugin.params import GradientsParams

FRAMES = 16
FPS = Fraction(8)


@dataclass(frozen=True, slots=True)
class GradientSource:
    """One video, drawn when it is read. Videos of a class differ in contrast and phase."""

    label: int
    index: int
    size: int

    @property
    def name(self) -> str:
        """What messages and records call this video."""
        return f"example-gradients:{COLOURS.names[self.label]}/{self.index}"

    def draw(self) -> NDArray[np.uint8]:
        """Return `[T, H, W, 3]` uint8."""
        phase = (np.arange(FRAMES)[:, None] + 5 * self.index) / FRAMES
        x = np.arange(self.size)[None, :] / self.size
        grey = 96 + 48 * np.sin(2 * np.pi * (x + phase))
        frames = np.empty((FRAMES, self.size, self.size, 3))
        frames[:] = grey[:, None, :, None]
        frames[..., self.label] += 4 * (1 + self.index % 6)
        drawn: NDArray[np.uint8] = np.rint(frames).astype(np.uint8)
        return drawn

    def read(self, sampler: Sampler) -> Clip:
        """Return the frames that the sampler's plan uses."""
        plan = sampler(FRAMES)
        return Clip(
            frames=np.ascontiguousarray(self.draw()[plan.distinct]),
            plan=plan,
            indices=plan.distinct,
            pts_s=plan.distinct / float(FPS),
            fps=FPS,
            n_decoded=FRAMES,
            pts_monotonic=True,
            info=VideoInfo(
                path=self.name,
                width=self.size,
                height=self.size,
                codec="none",
                container="generated",
                nominal_fps=FPS,
                header_frames=FRAMES,
            ),
            backend="vcr-example-plugin 0.1.0",
        )

    def sha256(self) -> str:
        """Return the hash of the drawn frames."""
        return hashlib.sha256(self.draw().tobytes()).hexdigest()


class Gradients:
    """The videos; ids are `<colour>/<number>`."""

    labels = COLOURS

    def __init__(self, params: GradientsParams) -> None:
        self.params = params

    def ids(self) -> Sequence[str]:
        """Return every id, in an order that depends on the ids alone."""
        return [
            f"{colour}/{index:03d}"
            for colour in COLOURS.names
            for index in range(self.params.per_class)
        ]

    def item(self, video_id: str) -> VideoItem:
        """Return one video without drawing it.

        Raises:
            KeyError: for an id that `ids` does not list.
        """
        if video_id not in self.ids():
            raise KeyError(video_id)
        colour, _, number = video_id.partition("/")
        label = COLOURS.names.index(colour)
        return VideoItem(video_id, label, GradientSource(label, int(number), self.params.size))
