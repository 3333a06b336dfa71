"""Writing the videos of a run as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.errors import StoreError, UsageError
from vcr_core.export_videos.agreement import Version, answers, recorded_draws
from vcr_core.export_videos.evidence import Evidence
from vcr_core.export_videos.experiment import (
    experiment_of,
    is_exact,
    refuse_another_source,
    sampling_attack,
)
from vcr_core.export_videos.index import Index, open_index
from vcr_core.export_videos.sources import Pair, choose_videos, kept_files, load_pair, made_again
from vcr_core.leaderboard.checks import few

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.setup import Parts
    from vcr_core.export_videos.judge import Judge
    from vcr_core.export_videos.layout import Layout, Layouts
    from vcr_core.summary import RunView
    from vcr_core.video.preview import PreviewFormat

PREVIEWS: tuple[PreviewFormat, ...] = ("mp4", "gif")
"""Formats of the previews unless others are asked for."""


@dataclass(frozen=True, slots=True)
class Exported:
    """One video that was written.

    Attributes:
        video: its id.
        folder: where its files are.
        files: names of all of them, the sidecars aside.
    """

    video: str
    folder: Path
    files: tuple[str, ...]


def write_videos(
    run: RunView,
    out: Path,
    *,
    only: Sequence[str] = (),
    limit: int | None = None,
    previews: Sequence[PreviewFormat] = PREVIEWS,
    recreate: bool = False,
    experiment: Experiment | None = None,
    parts: Parts | None = None,
) -> Iterator[Exported]:
    """Write videos of a run below ``out``, one folder a video, and yield each when it is there.

    ``clean.mkv`` and ``adversarial.mkv`` hold the frames that the model was given, bit for bit;
    ``defended.mkv`` what the defenses made of the adversarial ones, in 8 bits. Each has a sidecar
    ``….mkv.json``. A video is written only if the model says of its frames what the record says.

    Args:
        run: the run.
        out: a folder; that of the run is made in it.
        only: ids of the videos; all whose frames were kept if empty.
        limit: so many videos at most.
        previews: formats of the previews, none if empty.
        recreate: attack videos again whose frames were not kept; without ``only``, all of them.
        experiment: what the run was made with; read from its folder by default.
        parts: in-memory components of the experiment.

    Raises:
        UsageError: if the run attacks nothing or has no such video.
        StoreError: if frames were not kept, do not give what the record says, or cannot be
            written. Other videos that are there stay.
    """
    refuse_another_source(run)
    experiment = experiment or experiment_of(run)
    if experiment.attack is None:
        raise UsageError(f"{run.name} attacks nothing: it has no adversarial videos")
    kept = kept_files(run)
    chosen = choose_videos(run, only)
    if not (only or recreate):
        chosen = [video for video in chosen if video in kept] or chosen
    chosen = chosen[:limit]
    missing = [video for video in chosen if video not in kept]
    if missing and not recreate:
        raise StoreError(
            f"{run.name} kept no frames of {few(missing)}; --recreate attacks them again, and "
            "output.keep_clips says of how many videos a run keeps frames"
        )
    if not chosen:
        raise StoreError(f"{run.name} has evaluated no video yet")
    from vcr_core.export_videos.judge import Judge

    index = open_index(run, out)
    exporter = _Exporter(run, experiment, Judge(experiment, parts), index, parts)
    refused = []
    with ExitStack() as stack:
        again: dict[str, Path] = {}
        if missing:
            again = stack.enter_context(made_again(run, experiment, missing, parts))
        for video in chosen:
            is_kept = video in kept
            pair = load_pair(kept[video] if is_kept else again[video],
                             "kept" if is_kept else "made again")  # fmt: skip
            wrong = exporter.wrong(video, pair)
            if wrong:
                refused.append(f"{video}: {wrong}")
            else:
                yield exporter.write(video, pair, previews)
    if refused:
        raise StoreError(
            f"{run.name}: {len(refused)} of {len(chosen)} videos were not written, because their "
            f"frames do not give what the records say. {_remark(experiment)}{few(refused)}"
        )


class _Exporter:
    """Writes videos of one run, one at a time."""

    def __init__(
        self,
        run: RunView,
        experiment: Experiment,
        judge: Judge,
        index: Index,
        parts: Parts | None,
    ) -> None:
        self._run = run
        self._experiment = experiment
        self._judge = judge
        self._index = index
        self._evidence = Evidence(run, experiment)
        self._records = {record["video"]: record for record in run.records}
        self._attack = sampling_attack(experiment, parts)

    def wrong(self, video: str, pair: Pair) -> str:
        """Return in what the model's answers on these frames differ from the record, or nothing."""
        record, layouts = self._records[video], self._layouts(video)
        versions: tuple[tuple[Version, NDArray[np.uint8], Layout], ...] = (
            ("clean", pair.clean, layouts.clean),
            ("adversarial", pair.adversarial, layouts.attacked),
        )
        problems = []
        for version, frames, layout in versions:
            if len(frames) != len(layout.indices):
                return f"{version} has {len(frames)} frames, {len(layout.indices)} were sampled"
            draws = len(recorded_draws(record, version))
            said = self._judge.ask(video, record["label"], frames, layout, draws)
            problems += [a.told() for a in answers(record, version, said) if not a.is_good]
        return few(problems, 1)

    def write(self, video: str, pair: Pair, previews: Sequence[PreviewFormat]) -> Exported:
        """Write all files of one video and put it into the index."""
        from vcr_core.export_videos.previews import write_previews

        record, layouts = self._records[video], self._layouts(video)
        reached = None
        if self._judge.is_defended:
            reached = self._judge.reached(video, pair.adversarial, layouts.attacked)
        with _writing(self._index.folder):
            name = self._index.place(video)
            folder = self._index.folder / name
            files = self._evidence.write(folder, record, pair, layouts, reached)
            shown = write_previews(
                folder, self._run, record, pair, layouts, reached, previews, eps=self._eps(record)
            )
            entry = {"folder": name, "label": record["label"], "files": files, "previews": shown}
            self._index.put(video, entry)
        return Exported(video, folder, (*(file["file"] for file in files.values()), *shown))

    def _eps(self, record: Mapping[str, Any]) -> float | None:
        threat = self._experiment.threat
        if threat.norm != "linf":
            return None
        own = (record.get("perturbation") or {}).get("eps")
        return float(threat.eps if own is None else own)

    def _layouts(self, video: str) -> Layouts:
        from vcr_core.export_videos.layout import layouts_of

        spec = self._judge.model.clip
        return layouts_of(self._experiment, spec, self._records[video], self._attack)


def _remark(experiment: Experiment) -> str:
    """Return why 8-bit frames may not be what was judged, or nothing."""
    if is_exact(experiment):
        return ""
    return (
        "The run judged videos that 8 bits do not hold (threat.quantize = false or "
        "protocol.space = 'input'). "
    )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn failures of the disk into messages.

    Raises:
        StoreError: naming the folder and what the system says.
    """
    from vcr_core.video.info import VideoReadError

    try:
        yield
    except VideoReadError as error:
        raise StoreError(
            f"{folder}: a file does not read back; is the disk full? ({error})"
        ) from error
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be written to: {error.strerror or error}; the videos that "
            "videos.json lists are complete"
        ) from error
