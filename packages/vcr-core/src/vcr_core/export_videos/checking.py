"""Asking the run's model about exported files, and comparing its answers with the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.errors import StoreError, VcrError
from vcr_core.export_videos.agreement import CORNERS, Answer, Version, answers, recorded_draws
from vcr_core.export_videos.evidence import evidence_name
from vcr_core.export_videos.experiment import (
    experiment_of,
    refuse_another_source,
    sampling_attack,
)
from vcr_core.export_videos.index import INDEX_FILE, folder_name, open_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.setup import Parts
    from vcr_core.summary import RunView


def check_videos(
    run: RunView,
    out: Path,
    *,
    experiment: Experiment | None = None,
    parts: Parts | None = None,
) -> Iterator[Answer]:
    """Yield what the run's model says of every exported file, beside what its record says.

    The data set is not needed, and nothing is written.

    Args:
        run: the run.
        out: where its videos were exported to.
        experiment: what the run was made with; read from its folder by default.
        parts: in-memory components of the experiment.

    Raises:
        UsageError: if the attack was computed on another model.
        StoreError: if nothing was exported there.
    """
    from vcr_core.export_videos.judge import Judge
    from vcr_core.export_videos.layout import layouts_of

    refuse_another_source(run)
    index = open_index(run, out)
    if not index.videos:
        raise StoreError(
            f"{index.folder / INDEX_FILE} lists no video; export some first, without --check"
        )
    experiment = experiment or experiment_of(run)
    judge = Judge(experiment, parts)
    attack = sampling_attack(experiment, parts)
    records = {record["video"]: record for record in run.records}
    for video, entry in index.videos.items():
        record = records.get(video)
        for version in CORNERS:
            if record is None:
                yield _unreadable(video, version, "the run has no record of it")
                continue
            try:
                frames = _frames(index.folder, video, entry, version)
                layouts = layouts_of(experiment, judge.model.clip, record, attack)
                layout = layouts.clean if version == "clean" else layouts.attacked
                if len(frames) != len(layout.indices):
                    raise StoreError(f"{len(frames)} frames, {len(layout.indices)} were sampled")
            except VcrError as error:
                yield _unreadable(video, version, str(error))
                continue
            draws = len(recorded_draws(record, version))
            said = judge.ask(video, record["label"], frames, layout, draws)
            yield from answers(record, version, said)


def _frames(folder: Path, video: str, entry: Mapping[str, Any], version: Version) -> NDArray[Any]:
    """Return the frames of a file that is the one of the index and of its sidecar.

    Raises:
        StoreError: if it is not.
        VideoReadError: if it cannot be decoded.
    """
    from vcr_core.video.writer import read_exact

    expected = entry.get("files", {}).get(version, {}).get("sha256")
    path = folder / folder_name(video) / evidence_name(version)
    stored = read_exact(path)
    if stored.sha256 != expected:
        raise StoreError(f"{path}: is not the file that {INDEX_FILE} lists")
    return stored.frames


def _unreadable(video: str, version: Version, problem: str) -> Answer:
    return Answer(video=video, version=version, view="bare", verdict="unreadable", problem=problem)
