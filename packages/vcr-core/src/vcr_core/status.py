"""How far runs are, from their files alone: works while they are going on, on any machine."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core import definitions, outcomes
from vcr_core.at_work import SILENT_S, Worker, workers
from vcr_core.errors import StoreError
from vcr_core.manifest import MANIFEST_FILE, planned_videos, read_manifest
from vcr_core.pace import newest_ends, recent_ends, videos_per_hour
from vcr_core.record_scan import scan_records
from vcr_core.records import record_files
from vcr_core.summary import headline_facts, headline_rates

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The state of one run.

    Attributes:
        folder: the run folder.
        run: run id.
        state: the manifest's ``planned``, ``running``, ``done``, ``interrupted`` or ``failed``, or
            ``unreadable``. A killed process cannot say so: look at ``workers`` and ``idle_s``.
        done: planned videos that have a record.
        total: planned videos.
        counts: records by status.
        errors: failed videos by type of error.
        rates: the run's headline rates so far, ``{name: {value, k, n, ci95, method}}``.
        last_write: time of the last write to the run, UTC.
        idle_s: seconds since then.
        workers: the processes that work on it.
        recent: when the most recent records were finished, in order, seconds since the epoch.
        videos_per_h: videos an hour over these; ``None`` if their times do not tell.
        problem: why the run is unreadable.
    """

    folder: Path
    run: str
    state: str
    done: int = 0
    total: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    rates: dict[str, dict[str, Any]] = field(default_factory=dict)
    last_write: str | None = None
    idle_s: float | None = None
    workers: tuple[Worker, ...] = ()
    recent: tuple[float, ...] = ()
    videos_per_h: float | None = None
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every planned video has a record."""
        return bool(self.total) and self.done == self.total

    @property
    def is_going_on(self) -> bool:
        """Whether somebody works on it, as far as its files tell."""
        if self.workers:
            return True
        # Logs need not lie where the records do.
        is_fresh = self.idle_s is not None and self.idle_s <= SILENT_S
        return self.state == "running" and bool(self.recent) and is_fresh

    @property
    def eta_s(self) -> float | None:
        """Seconds to the end at that pace; ``None`` if unknown or if nobody works on it."""
        return _eta(self.total - self.done, self.videos_per_h, self.is_going_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalStatus:
    """The state of several runs together.

    Attributes:
        runs: number of runs by state.
        done: planned videos that have a record.
        total: planned videos.
        errors: failed videos by type of error.
        last_write: time of the last write to any of them, UTC.
        idle_s: seconds since then.
        workers: number of processes by machine, ``""`` for those that do not say.
        videos_per_h: videos an hour over the most recent records of all.
        eta_s: seconds to the end at that pace; ``None`` if unknown or if nobody works on any.
    """

    runs: dict[str, int]
    done: int
    total: int
    errors: dict[str, int]
    last_write: str | None
    idle_s: float | None
    workers: dict[str, int]
    videos_per_h: float | None
    eta_s: float | None


def run_status(
    folder: Path | str, *, rates: Container[str] | None = None, now: float | None = None
) -> RunStatus:
    """Return the state of one run; a damaged one is ``unreadable``, with the reason.

    Args:
        folder: a run folder.
        rates: which of the headline's numbers are wanted: ``clean_accuracy``, ``robust_accuracy``,
            ``asr``, ``asr_targeted``; all by default.
        now: seconds since the epoch; the present by default.
    """
    folder = Path(folder)
    present = time.time() if now is None else now
    files: list[Path] = []
    try:
        files = record_files(folder)
        manifest = read_manifest(folder)
        scan = scan_records(files)
    except StoreError as error:
        return RunStatus(
            folder=folder,
            run=folder.name,
            state="unreadable",
            problem=str(error),
            **_last_write(present, folder / MANIFEST_FILE, *files),
        )
    planned = planned_videos(manifest)
    known = {record["video"] for record in scan.records}
    done = sum(video in known for video in planned)
    size = manifest.get("batch_videos")
    recent = recent_ends(scan.ends, now=present, batch_videos=size if isinstance(size, int) else 1)
    return RunStatus(
        folder=folder,
        run=str(manifest.get("run") or folder.name),
        state=_state(manifest, done, len(planned)),
        done=done,
        total=len(planned),
        counts=_tally(str(record.get("status")) for record in scan.records),
        errors=_tally(
            str((record.get("error") or {}).get("type", "unknown"))
            for record in scan.records
            if record.get("status") == "error"
        ),
        rates=_rates(manifest, scan.records, rates),
        **_last_write(present, folder / MANIFEST_FILE, *files),
        workers=workers(folder, now=present),
        recent=recent,
        videos_per_h=videos_per_hour(recent),
    )


def _state(manifest: Mapping[str, Any], done: int, total: int) -> str:
    """Return the manifest's word; shares that a scheduler runs leave the manifest as it is."""
    state = str(manifest.get("status"))
    if state != "planned" or not done:
        return state
    return "done" if done == total else "running"


def total_status(runs: Sequence[RunStatus]) -> TotalStatus:
    """Return the state of several runs together."""
    done, total = sum(run.done for run in runs), sum(run.total for run in runs)
    pace = videos_per_hour(newest_ends(run.recent for run in runs))
    latest = min(
        (run for run in runs if run.idle_s is not None),
        key=lambda run: run.idle_s or 0.0,
        default=None,
    )
    return TotalStatus(
        runs=_tally(run.state for run in runs),
        done=done,
        total=total,
        errors=_tally(name for run in runs for name in Counter(run.errors).elements()),
        last_write=latest.last_write if latest else None,
        idle_s=latest.idle_s if latest else None,
        workers=_tally(worker.host or "" for run in runs for worker in run.workers),
        videos_per_h=pace,
        eta_s=_eta(total - done, pace, any(run.is_going_on for run in runs)),
    )


def _eta(left: int, pace: float | None, is_going_on: bool) -> float | None:
    return round(3600 * left / pace, 1) if pace and left > 0 and is_going_on else None


def _rates(
    manifest: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    wanted: Container[str] | None,
) -> dict[str, dict[str, Any]]:
    evaluated = [record for record in records if outcomes.is_evaluated(record)]
    names = headline_rates(manifest, headline_facts(manifest, records))
    return {
        name: definitions.evaluate(name, evaluated)
        for key, name in names.items()
        if wanted is None or key in wanted
    }


def _tally(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _last_write(now: float, *files: Path) -> dict[str, Any]:
    """Return ``last_write`` and ``idle_s`` of :class:`RunStatus`."""
    times = []
    for path in files:
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue
    if not times:
        return {}
    last = max(times)
    return {"last_write": _iso(last), "idle_s": round(max(0.0, now - last), 1)}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
