"""The videos of a run over ``tamper`` as a data set that VLMEvalKit's MVTamperBench class reads.

That class wants a table of questions and the video files below the table's folder. What it needs is
written here, so that models which only the toolkit knows can be asked about the same videos.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vcr_core.atomic import replacing, write_json, write_text
from vcr_core.errors import UsageError
from vcr_core.file_names import file_name

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.protocols import VideoDataset, VideoItem

TABLE: Final = "MVTamperBench.tsv"
SIDECAR: Final = "videos.json"

COLUMNS: Final = (
    "task_type", "prefix", "data_type", "bound", "start", "end", "video", "question", "answer",
    "candidates", "tamper_type", "task_tamper_type", "index",
)  # fmt: skip
"""Columns of the toolkit's table, in its order."""

QUESTION: Final = "Has this video been edited or tampered with?"
CANDIDATES: Final = ("Yes", "No")

TOOLKIT_NAMES: Final = {
    "original": "original",
    "drop": "dropping",
    "mask": "masking",
    "rotate": "rotate",
    "substitute": "substitution",
    "repeat": "repetition",
}
"""What the toolkit calls the effects that MVTamperBench has; all others keep their names."""

# Fine enough that the effects survive; every player and the toolkit's decoder read it.
_H264: Final = {"crf": "18", "preset": "veryfast"}


@dataclass(frozen=True, slots=True)
class _Row:
    item: VideoItem
    type: str
    file: str


def write_vlmevalkit(folder: Path, out: Path) -> list[Path]:
    """Write the videos of a run and the table of questions about them.

    Args:
        folder: a run over the dataset ``tamper``; videos that failed in it are left out.
        out: where to write: ``MVTamperBench.tsv``, ``videos.json`` (the id, the source and the
            segment of every file) and ``video/<dataset>/*.mp4``. Files that are there are made
            anew.

    Returns:
        The table and the sidecar.

    Raises:
        UsageError: if the dataset does not say what was done to its videos.
        VideoReadError: if a video cannot be read.
    """
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.machine import run_document
    from vcr_core.engine.setup import build_dataset
    from vcr_core.manifest import planned_videos, read_manifest
    from vcr_core.records import read_records

    experiment = resolve_run(run_document(folder)).experiment
    failed = {r["video"] for r in read_records(folder) if r.get("status") in ("error", "skipped")}
    ids = [video for video in planned_videos(read_manifest(folder)) if video not in failed]
    dataset = build_dataset(experiment)
    task = _task(experiment.dataset.params.get("base"), experiment.dataset.ref)
    return export_videos(dataset, ids, out, task=task)


def export_videos(dataset: VideoDataset, ids: Sequence[str], out: Path, *, task: str) -> list[Path]:
    """Write videos of a dataset of tampered videos; see :func:`write_vlmevalkit`.

    Args:
        dataset: its items' facts have ``tamper`` with a ``type``.
        ids: which videos.
        out: the folder.
        task: what the toolkit calls the task, and the name of the folder of the videos.
    """
    from vcr_core.video.sampling import whole_video

    rows = [_row(dataset.item(video)) for video in ids]
    if not rows:
        raise UsageError("there is no video to export")
    prefix = f"video/{_slug(task)}/"
    facts = []
    for row in rows:
        clip = row.item.source.read(whole_video)
        _write(out / prefix / row.file, clip.frames, clip.fps)
        sample = {**row.item.sample, **clip.facts}
        facts.append({"file": prefix + row.file, "video": row.item.id, **sample})
    lines = [_line(number, row, task, prefix) for number, row in enumerate(rows)]
    table = out / TABLE
    write_text(table, "".join("\t".join(line) + "\n" for line in [COLUMNS, *lines]))
    sidecar = out / SIDECAR
    write_json(sidecar, {"schema": 1, "table": TABLE, "videos": facts})
    return [table, sidecar]


def _row(item: VideoItem) -> _Row:
    kind = (item.facts.get("tamper") or {}).get("type")
    if not isinstance(kind, str):
        raise UsageError(
            f"video {item.id!r}: its dataset does not say what was done to it; export a run over "
            "the dataset 'tamper' (vcr run --dataset tamper ...)"
        )
    return _Row(item, kind, f"{file_name(item.id)}.mp4")


def _line(number: int, row: _Row, task: str, prefix: str) -> tuple[str, ...]:
    kind = TOOLKIT_NAMES.get(row.type, row.type)
    cells: dict[str, Any] = {
        "task_type": task,
        "prefix": prefix,
        "data_type": "video",
        "bound": False,
        "start": "",
        "end": "",
        "video": row.file,
        "question": QUESTION,
        "answer": CANDIDATES[row.type == "original"],
        "candidates": repr(list(CANDIDATES)),
        "tamper_type": kind,
        "task_tamper_type": f"{task}_{kind}",
        "index": number,
    }
    # A tab or a line end in a name of the dataset would shift the columns.
    return tuple(" ".join(str(cells[name]).split()) for name in COLUMNS)


def _write(path: Path, frames: NDArray[np.uint8], fps: Fraction | None) -> None:
    import av

    from vcr_core.video.preview import pad_to_even
    from vcr_core.video.writer import checked_rate, encode

    with (
        replacing(path) as temporary,
        av.open(f"file:{temporary}", "w", format="mp4") as container,
    ):
        encode(
            container, pad_to_even(frames), checked_rate(fps),
            codec="libx264", pix_fmt="yuv420p", options=_H264,
        )  # fmt: skip


def _task(base: Any, ref: str) -> str:
    """Return the name of the dataset that was tampered with."""
    name = base.get("name") if isinstance(base, dict) else base
    return name if isinstance(name, str) and name else ref


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "video"
