"""Tampered motion clips to fit and to train on: of the ``train`` stream, raw and encoded."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from vcr_models.detectors.fitting import read_whole, training_part

Frames = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Sample:
    """One video.

    Attributes:
        source: id of the clip that it was made from.
        label: effect, or ``original``.
        frames: ``[T, H, W, 3]`` uint8.
        fps: frames per second.
        segment: first frame that was tampered with, and the one behind the last; both the same
            for a cut, ``None`` for an original.
    """

    source: str
    label: str
    frames: Frames
    fps: float
    segment: tuple[int, int] | None


def encoded(frames: Frames, fps: float, crf: int) -> Frames:
    """Return frames after H.264 at a constant rate factor, as many as before."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream(
            "libx264", rate=Fraction(fps).limit_denominator(1001), options={"crf": str(crf)}
        )
        stream.width, stream.height = frames.shape[2], frames.shape[1]
        stream.pix_fmt, stream.thread_count = "yuv420p", 1
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    buffer.seek(0)
    with av.open(buffer) as container:
        decoded = [image.to_ndarray(format="rgb24") for image in container.decode(video=0)]
    return np.stack(decoded)


def samples(
    numbers: Sequence[int], *, frames: int, effects: str | list[str], **tamper: Any
) -> Iterator[Sample]:
    """Yield the original and one video per effect of clips of the training stream.

    Args:
        numbers: which clips.
        frames: frames of a clip, at most 32.
        effects: a suite or names.
        tamper: further parameters of the dataset ``tamper``.
    """
    # Donors come from these clips, so there have to be some of every class.
    videos = max(*numbers, 31) + 1
    base = {"name": "motion", "split": "train", "frames": frames, "videos": videos}
    part = training_part({"name": "tamper", "base": base, "effects": effects, **tamper})
    dataset = part.dataset
    sources = {f"motion-v1-train-{number:06d}" for number in numbers}
    for video in dataset.ids():
        if video.rpartition("#")[0] not in sources:
            continue
        item = dataset.item(video)
        clip = read_whole(item)
        facts = clip.facts.get("tamper", {})
        segment = (facts["start"], facts["end"]) if "start" in facts else None
        label = dataset.labels.names[item.label]
        yield Sample(item.group, label, clip.frames, float(clip.fps or 0), segment)
