"""What is known about a video file, what was read from it, and the error of a failed read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from vcr_core.errors import VcrError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.video.sampling import SamplingPlan

ReadStage: TypeAlias = Literal["open", "no_video_stream", "decode", "empty", "sampling"]
OnError: TypeAlias = Literal["raise", "truncate"]


class VideoReadError(VcrError):
    """A video could not be read as asked.

    Args:
        path: the full path, or another name of the source.
        stage: how far reading came.
        cause: what the library underneath said; an exception is shown with its type.
    """

    exit_code = 1

    def __init__(self, path: str, stage: ReadStage, cause: BaseException | str) -> None:
        self.path = path
        self.stage: ReadStage = stage
        text = cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"
        self.cause = text
        # Plain arguments, so that the error survives pickling between processes.
        super().__init__(path, stage, text)

    def __str__(self) -> str:
        return f"{self.path}: {self.stage}: {self.cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoInfo:
    """Facts from a file's headers. Header values are claims, not measurements.

    Attributes:
        path: full path, or another name of the source.
        width: stored width in pixels, before rotation.
        height: stored height in pixels, before rotation.
        rotation: degrees anticlockwise that make the picture upright, in 0..359; ``None`` while
            no frame has been decoded.
        codec: name of the codec, e.g. ``h264``.
        pix_fmt: stored pixel format, if known.
        container: name of the container format.
        nominal_fps: frame rate that the header states; meaningless for variable frame rates.
        header_frames: number of frames that the header states, if it states one.
        duration_s: length in seconds that the header states.
        has_audio: whether there is a sound track.
        sample_aspect: width of a pixel over its height; recorded, never applied.
        colorspace: matrix coefficients of the first decoded frame, as FFmpeg's number.
        color_range: range of the first decoded frame, as FFmpeg's number.
        sha256: hash of the content, where it was asked for.
    """

    path: str
    width: int
    height: int
    codec: str
    container: str
    rotation: int | None = None
    pix_fmt: str | None = None
    nominal_fps: Fraction | None = None
    header_frames: int | None = None
    duration_s: float | None = None
    has_audio: bool = False
    sample_aspect: Fraction | None = None
    colorspace: int | None = None
    color_range: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clip:
    """The distinct frames that a sampling plan uses, in presentation order.

    Attributes:
        frames: ``[U, H, W, 3]`` uint8 RGB, contiguous; upright unless that was switched off.
        plan: the plan; ``frames[plan.gather]`` are the clips ``[V, T', H, W, 3]``.
        indices: ``[U]`` int64 positions of ``frames`` in the video.
        pts_s: ``[U]`` float64 presentation times in seconds, NaN where the file has none.
        fps: nominal frame rate, if known.
        n_decoded: number of frames that the video has; what the sampler was given.
        pts_monotonic: whether the times of all frames up to the last one used exist and grow.
        info: facts from the headers, with the rotation that was found.
        backend: library and version that decoded.
        truncated: whether decoding failed after ``n_decoded`` frames and the rest is missing.
        notes: what a reader of the record should know.
        facts: what the source knows of the video now that it is decoded, plain data; goes into
            the record's ``sample``.
    """

    frames: NDArray[np.uint8]
    plan: SamplingPlan
    indices: NDArray[np.int64]
    pts_s: NDArray[np.float64]
    fps: Fraction | None
    n_decoded: int
    pts_monotonic: bool
    info: VideoInfo
    backend: str
    truncated: bool = False
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
