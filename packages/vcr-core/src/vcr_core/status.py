"""How far a run is, from its files alone: works while the run is going on, on any machine."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core import definitions, outcomes
from vcr_core.errors import StoreError
from vcr_core.manifest import MANIFEST_FILE, planned_videos, read_manifest
from vcr_core.records import read_records, record_files
from vcr_core.summary import headline_rates, run_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The state of one run.

    Attributes:
        folder: the run folder.
        run: run id.
        state: the manifest's ``planned``, ``running``, ``done``, ``interrupted`` or ``failed``, or
            ``unreadable``. A killed process cannot say so: look at ``idle_s``.
        done: planned videos that have a record.
        total: planned videos.
        counts: records by status.
        errors: failed videos by type of error.
        rates: the run's headline rates so far, ``{name: {value, k, n, ci95, method}}``.
        last_write: time of the last write to the run, UTC.
        idle_s: seconds since then.
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
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every planned video has a record."""
        return bool(self.total) and self.done == self.total


def run_status(folder: Path | str, *, now: float | None = None) -> RunStatus:
    """Return the state of one run; a damaged one is ``unreadable``, with the reason.

    Args:
        folder: a run folder.
        now: seconds since the epoch; the present by default.
    """
    folder = Path(folder)
    written = _last_write(folder)
    last_write = None if written is None else _iso(written)
    present = time.time() if now is None else now
    idle_s = None if written is None else round(max(0.0, present - written), 1)
    try:
        manifest = read_manifest(folder)
        records = read_records(folder)
    except StoreError as error:
        return RunStatus(
            folder=folder,
            run=folder.name,
            state="unreadable",
            last_write=last_write,
            idle_s=idle_s,
            problem=str(error),
        )
    planned = planned_videos(manifest)
    known = {record["video"] for record in records}
    return RunStatus(
        folder=folder,
        run=str(manifest.get("run") or folder.name),
        state=_state(manifest, records),
        done=sum(video in known for video in planned),
        total=len(planned),
        counts=_tally(str(record.get("status")) for record in records),
        errors=_tally(
            str((record.get("error") or {}).get("type", "unknown"))
            for record in records
            if record.get("status") == "error"
        ),
        rates=_rates(manifest, records),
        last_write=last_write,
        idle_s=idle_s,
    )


def _state(manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    """Return the manifest's word; shares that a scheduler runs leave the manifest as it is."""
    state = str(manifest.get("status"))
    return "running" if state == "planned" and records else state


def _rates(
    manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    evaluated = [record for record in records if outcomes.is_evaluated(record)]
    names = headline_rates(manifest, run_facts(manifest, records)).values()
    return {name: definitions.evaluate(name, evaluated) for name in names}


def _tally(words: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return dict(sorted(found.items()))


def _last_write(folder: Path) -> float | None:
    times = []
    for path in (folder / MANIFEST_FILE, *record_files(folder)):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue
    return max(times, default=None)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
