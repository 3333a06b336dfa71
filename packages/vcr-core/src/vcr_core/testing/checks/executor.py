"""Checks of executors, on a run of toy components whose records are known to be reproducible."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from vcr_core.config.resolve import resolve_run
from vcr_core.engine.run import Run, open_run
from vcr_core.engine.shard import run_shard
from vcr_core.protocols import Executor, ShardStatus, ShardTask
from vcr_core.records import raw_records, read_records
from vcr_core.testing.contract import Subject, require
from vcr_core.testing.toys.broken.crash import FOLDER_VARIABLE
from vcr_core.testing.toys.installed import installed

_VIDEOS = 6
_PER_BATCH = 2
_OF_A_MACHINE = frozenset({"run", "shard", "attempt", "host", "device", "t_end"})
_OF_A_MOMENT = ("t_", "mem_")


def equals_inline(subject: Subject) -> None:
    """Records are those of the inline executor, bit for bit, also in two shards."""
    with _runs("toy-descent") as (here, there):
        _finish(subject, there, count=2)
        _require_equal(there, here)


def survives_crash(subject: Subject) -> None:
    """A dying worker costs a status, not the run; running again makes what is missing."""
    with _runs("toy-crash") as (here, there), tempfile.TemporaryDirectory() as name:
        os.environ[FOLDER_VARIABLE] = name
        armed = Path(name) / "armed"
        armed.touch()
        try:
            statuses = _execute(subject, _tasks(there, count=1))
            require(not armed.exists(), "no worker ran the attack")
            require(len(statuses) == 1, f"1 shard gave {len(statuses)} statuses")
            if not statuses[0].ok:
                require(statuses[0].message, "a shard that failed gives no message")
                _finish(subject, there, count=1)
        finally:
            del os.environ[FOLDER_VARIABLE]
        _require_equal(there, here)


def several_runs(subject: Subject) -> None:
    """The shards of a sweep's runs are done together, and each has a status."""
    with _runs("toy-descent") as (here, there):
        other = _open("toy-search", there.folder.parent)
        tasks = [task for run in (there, other) for task in _tasks(run, count=2)]
        statuses = _execute(subject, tasks)
        _require_ok(statuses)
        said = {(status.task.folder, status.task.index) for status in statuses}
        require(len(said) == len(tasks), f"{len(tasks)} shards gave {len(said)} statuses")
        _require_equal(there, here)
        count = len(read_records(other.folder))
        require(count == _VIDEOS, f"the second run has {count} of {_VIDEOS} records")


def resumes(subject: Subject) -> None:
    """Running again makes the missing records and no others."""
    with _runs("toy-descent") as (here, there):
        first, second = _tasks(there, count=2)
        _require_ok(_execute(subject, [first]))
        done = {r["video"] for r in read_records(there.folder)}
        require(0 < len(done) < _VIDEOS, f"one of two shards made {len(done)} of {_VIDEOS} records")
        _require_ok(_execute(subject, [first, second]))
        count = len(raw_records(there.folder))
        require(
            count == _VIDEOS,
            f"{count} records were written for {_VIDEOS} videos: finished ones were done again",
        )
        _require_equal(there, here)


@contextmanager
def _runs(attack: str) -> Iterator[tuple[Run, Run]]:
    """Yield a run that the engine has finished in this process, and the same one not begun."""
    with installed(), tempfile.TemporaryDirectory() as name:
        here = _open(attack, Path(name) / "here")
        run_shard(_tasks(here, count=1)[0], here.experiment)
        records = read_records(here.folder)
        require(
            [r["status"] for r in records] == ["ok"] * _VIDEOS,
            "the reference run of toy components failed; this is not the executor's fault",
        )
        yield here, _open(attack, Path(name) / "there")


def _open(attack: str, results: Path) -> Run:
    document: dict[str, Any] = {
        "schema": 1,
        "dataset": {"name": "vcr-toys/toy-shapes", "limit": _VIDEOS},
        "model": {"name": "vcr-toys/toy-cnn"},
        "attack": {"name": f"vcr-toys/{attack}"},
        "metrics": {"names": ["vcr-toys/toy-difference"]},
        "runtime": {"batch_videos": _PER_BATCH, "device": "cpu", "threads": 1},
    }
    return open_run(resolve_run(document, cwd=results.parent), results=results)


def _tasks(run: Run, count: int) -> list[ShardTask]:
    return [ShardTask(run.folder, k, count, device="cpu", threads=1) for k in range(count)]


def _execute(subject: Subject, tasks: list[ShardTask]) -> list[ShardStatus]:
    executor = cast(Executor, subject.build())
    return list(executor.run(tasks))


def _finish(subject: Subject, run: Run, count: int) -> None:
    _require_ok(_execute(subject, _tasks(run, count)))


def _require_ok(statuses: list[ShardStatus]) -> None:
    failed = [s.message or "no message" for s in statuses if not s.ok]
    require(not failed, f"a shard failed: {failed[:1]}")


def _require_equal(run: Run, reference: Run) -> None:
    found = {r["video"]: _essence(r) for r in read_records(run.folder)}
    wanted = {r["video"]: _essence(r) for r in read_records(reference.folder)}
    missing = sorted(wanted.keys() - found.keys())
    require(not missing, f"no record of {', '.join(missing[:3])}")
    for video, record in wanted.items():
        differing = [k for k in record | found[video] if record.get(k) != found[video].get(k)]
        require(not differing, f"{video}: {', '.join(differing)} differ from the inline executor")


def _essence(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without what may differ between machines and moments."""
    kept = {k: v for k, v in record.items() if k not in _OF_A_MACHINE}
    cost = kept.get("cost", {})
    kept["cost"] = {k: v for k, v in cost.items() if not k.startswith(_OF_A_MOMENT)}
    return kept
