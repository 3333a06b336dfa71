"""SynthMotion as video files: one folder per class and a csv, as for recorded data sets."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

import av

from vcr_core.datasets.motion.generator import (
    DEFAULT_SEED,
    GENERATOR_VERSION,
    clip_id,
    generate_clip,
    split_size,
)
from vcr_core.datasets.motion.labels import LabelMode, label_index, label_names

if TYPE_CHECKING:
    import numpy as np
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

ExportFormat = Literal["ffv1", "mp4"]


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How frames are stored."""

    codec: str
    pixel_format: str
    suffix: str
    lossy: bool
    options: dict[str, str]


_ENCODINGS: Final[dict[ExportFormat, _Encoding]] = {
    "ffv1": _Encoding("ffv1", "bgr0", ".mkv", False, {"level": "3"}),
    "mp4": _Encoding("libx264", "yuv420p", "_preview.mp4", True, {"crf": "18"}),
}

_FPS: Final = 16


def write_video(path: Path, frames: NDArray[np.uint8], format: ExportFormat = "ffv1") -> None:
    """Encode one clip.

    Args:
        path: target file, replaced if it exists.
        frames: ``[T, H, W, 3]`` uint8 RGB; even sides for ``mp4``.
        format: ``ffv1`` keeps every pixel; ``mp4`` (H.264, 4:2:0) changes them and is for viewing.

    Raises:
        ValueError: unknown format, frames that are no RGB clip, or odd sides with ``mp4``.
        av.error.FFmpegError: the encoder failed.
    """
    if format not in _ENCODINGS:
        msg = f"unknown export format {format!r}; expected one of {', '.join(_ENCODINGS)}"
        raise ValueError(msg)
    if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype.name != "uint8":
        msg = f"expected uint8 frames [T, H, W, 3], got {frames.dtype} {frames.shape}"
        raise ValueError(msg)
    encoding = _ENCODINGS[format]
    _, height, width, _ = frames.shape
    if encoding.lossy and (height % 2 or width % 2):
        msg = f"4:2:0 video needs even sides, got {height}x{width}"
        raise ValueError(msg)
    with av.open(str(path), "w") as container:
        stream = cast(
            "VideoStream",
            container.add_stream(
                encoding.codec, rate=Fraction(_FPS), options=dict(encoding.options)
            ),
        )
        stream.width, stream.height = width, height
        stream.pix_fmt = encoding.pixel_format
        stream.thread_count = 1
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))


def export_split(
    root: Path,
    split: str,
    *,
    count: int | None = None,
    format: ExportFormat = "ffv1",
    labels: LabelMode = "motion",
    base_seed: int = DEFAULT_SEED,
    frames: int = 16,
    size: int = 64,
    hardness: float = 1.0,
) -> Path:
    """Write the clips of a split as ``root/<class>/<file>`` with ``videos.csv`` beside them.

    ``videos.csv`` (header ``path,label,id,split``) is written last, so a folder without it is
    incomplete. ``dataset.json`` says how the clips were made and whether their pixels are exact.

    Args:
        root: folder to fill; created if missing.
        split: ``train``, ``val`` or ``test``.
        count: number of clips; the split's default if ``None``.
        format: ``ffv1`` (exact) or ``mp4`` (preview, lossy; files end in ``_preview.mp4``).
        labels: the label space whose names become folders.
        base_seed: seed of the whole data set.
        frames: frames per clip.
        size: frame side in pixels.
        hardness: factor on the nuisance terms.

    Returns:
        The path of ``videos.csv``.

    Raises:
        ValueError: as ``generate_clip`` and ``write_video``, or a count below 1.
    """
    total = split_size(split) if count is None else count
    if total < 1:
        msg = f"count must be at least 1, got {total}"
        raise ValueError(msg)
    if format not in _ENCODINGS:
        msg = f"unknown export format {format!r}; expected one of {', '.join(_ENCODINGS)}"
        raise ValueError(msg)
    encoding = _ENCODINGS[format]
    names = label_names(labels)
    rows = []
    for index in range(total):
        clip = generate_clip(
            split, index, base_seed=base_seed, frames=frames, size=size, hardness=hardness
        )
        name = names[label_index(labels, clip.motion, clip.shape)]
        video_id = clip_id(split, index)
        relative = Path(name) / f"{video_id}{encoding.suffix}"
        (root / name).mkdir(parents=True, exist_ok=True)
        write_video(root / relative, clip.frames, format)
        rows.append((relative.as_posix(), name, video_id, split))
    about = {
        "dataset": "motion",
        "generator": GENERATOR_VERSION,
        "labels": labels,
        "base_seed": base_seed,
        "frames": frames,
        "size": size,
        "hardness": hardness,
        "codec": encoding.codec,
        "pixel_format": encoding.pixel_format,
        "lossy": encoding.lossy,
    }
    (root / "dataset.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    table = root / "videos.csv"
    partial = root / "videos.csv.part"
    with partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("path", "label", "id", "split"))
        writer.writerows(rows)
    partial.replace(table)
    return table
