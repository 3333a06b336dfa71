"""``vcr status``: how far runs are, from their files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.output import emit_json, emit_table, is_terminal, json_option, note
from vcr_core.collector import collector_paused
from vcr_core.errors import StoreError
from vcr_core.status import run_status, total_status
from vcr_core.summary import find_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.status import RunStatus, TotalStatus

DEFAULT_FOLDER = "results"

MANY = 40
"""With more runs than this a terminal shows only those that somebody may want to look at."""

_COLUMNS = (
    "run", "state", "done", "errors", "clean accuracy", "robust accuracy", "last write",
    "videos/h", "left", "workers",
)  # fmt: skip
_SOMETIMES = frozenset({"videos/h", "left", "workers"})
_SHOWN = ("clean_accuracy", "robust_accuracy")


@click.command("status", epilog="Example: vcr status results")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=Path))
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help=f"Show every run on a terminal, also of more than {MANY}.",
)
@json_option
def command(folders: tuple[Path, ...], show_all: bool, as_json: bool) -> None:
    """Show how far runs are.

    FOLDER is a run folder or any folder that contains some; 'results' by default. Only files are
    read, so this works while runs are going on and on machines without torch. Of many runs, a
    terminal shows those that are under way or in trouble, and the total. A pipe gets all; its
    columns are run, state, done/planned, errors, clean accuracy, robust accuracy, last write,
    videos per hour, time left, workers.
    """
    found = list(dict.fromkeys(run for folder in _places(folders) for run in find_runs(folder)))
    with collector_paused():
        states = [run_status(folder, rates=None if as_json else _SHOWN) for folder in found]
    if as_json:
        total = _plain_total(total_status(states))
        emit_json({"schema": 1, "runs": [_plain(state) for state in states], "total": total})
        return
    if is_terminal():
        _show(states, show_all=show_all)
    else:
        emit_table(_COLUMNS, [_row(state) for state in states])
        if len(states) > 1:
            note("  ".join(filter(None, _total_row(total_status(states)))))
    for state in states:
        if state.problem:
            note(f"{state.run}: {state.problem}")
    if not states:
        note("no runs yet: 'vcr demo' makes some")


def _places(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    if folders:
        return folders
    if not Path(DEFAULT_FOLDER).is_dir():
        raise StoreError(f"there is no folder {DEFAULT_FOLDER!r} here; say where the runs are")
    return (Path(DEFAULT_FOLDER),)


def _show(states: Sequence[RunStatus], *, show_all: bool) -> None:
    """Write the table of a terminal."""
    shows_every = len(states) <= MANY or show_all
    shown = [state for state in states if shows_every or _is_of_interest(state)]
    rows = [_row(state) for state in shown]
    if len(states) > 1:
        rows.append(_total_row(total_status(states)))
    used = [i for i, c in enumerate(_COLUMNS) if c not in _SOMETIMES or any(r[i] for r in rows)]
    emit_table(
        [_COLUMNS[i] for i in used],
        [[row[i] for i in used] for row in rows],
        styles={"run": "bold"},
    )
    if len(shown) < len(states):
        complete = sum(s.is_complete for s in states) - sum(s.is_complete for s in shown)
        others = len(states) - len(shown) - complete
        parts = ((complete, "complete"), (others, "not begun"))
        told = " and ".join(f"{count} {text}" for count, text in parts if count)
        note(f"not shown: {told}; --all shows every run")


def _is_of_interest(state: RunStatus) -> bool:
    if state.is_complete:
        return state.state not in ("done", "running")
    return bool(
        state.done or state.counts or state.workers or state.state not in ("planned", "running")
    )


def _row(state: RunStatus) -> list[str]:
    rates = {name.removeprefix("defended_"): rate for name, rate in state.rates.items()}
    return [
        state.run,
        state.state,
        f"{state.done}/{state.total}" if state.total else str(sum(state.counts.values())),
        _errors(state.errors),
        _rate(rates.get("clean_accuracy")),
        _rate(rates.get("robust_accuracy")),
        "" if state.idle_s is None else f"{_rounded(state.idle_s)} ago",
        _pace(None if state.is_complete else state.videos_per_h),
        _left(state.eta_s),
        _workers(Counter(worker.host or "" for worker in state.workers)),
    ]


def _total_row(total: TotalStatus) -> list[str]:
    return [
        f"total of {sum(total.runs.values())} runs",
        ", ".join(f"{count} {state}" for state, count in total.runs.items()),
        f"{total.done}/{total.total}",
        _errors(total.errors),
        "",
        "",
        "" if total.idle_s is None else f"{_rounded(total.idle_s)} ago",
        _pace(None if total.done == total.total else total.videos_per_h),
        _left(total.eta_s),
        _workers(total.workers),
    ]


def _errors(errors: Mapping[str, int]) -> str:
    if not errors:
        return "0"
    return ", ".join(f"{count} {name}" for name, count in errors.items())


def _rate(rate: dict[str, Any] | None) -> str:
    if rate is None or rate["value"] is None:
        return ""
    text = f"{100 * rate['value']:.1f} %"
    if rate["ci95"] is None:
        return text
    low, high = rate["ci95"]
    return f"{text} [{100 * low:.1f}, {100 * high:.1f}]"


def _pace(videos_per_h: float | None) -> str:
    if videos_per_h is None:
        return ""
    return f"{videos_per_h:.0f}" if videos_per_h >= 10 else f"{videos_per_h:.2g}"


def _left(seconds: float | None) -> str:
    """Return a duration in two units, which is more than an estimate can tell."""
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "< 1 min"
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def _workers(by_host: Mapping[str, int]) -> str:
    """Return how many processes are at work, and where if they say so."""
    count = sum(by_host.values())
    hosts = ", ".join(sorted(host for host in by_host if host))
    return "" if not count else f"{count} on {hosts}" if hosts else str(count)


def _rounded(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _plain(state: RunStatus) -> dict[str, Any]:
    return {
        "run": state.run,
        "folder": str(state.folder),
        "state": state.state,
        "complete": state.is_complete,
        "done": state.done,
        "total": state.total,
        "counts": state.counts,
        "errors": state.errors,
        "rates": state.rates,
        "last_write": state.last_write,
        "idle_s": state.idle_s,
        "problem": state.problem or None,
        "videos_per_h": _shortened(state.videos_per_h),
        "eta_s": state.eta_s,
        "workers": [
            {
                "share": worker.share,
                "pid": worker.pid,
                "host": worker.host,
                "batch": worker.batch,
                "videos": worker.videos,
                "stage": worker.stage,
                "since_s": worker.since_s,
            }
            for worker in state.workers
        ],
    }


def _plain_total(total: TotalStatus) -> dict[str, Any]:
    return {
        "runs": total.runs,
        "done": total.done,
        "total": total.total,
        "errors": total.errors,
        "last_write": total.last_write,
        "idle_s": total.idle_s,
        "videos_per_h": _shortened(total.videos_per_h),
        "eta_s": total.eta_s,
        "workers": sum(total.workers.values()),
        "hosts": sorted(host for host in total.workers if host),
    }


def _shortened(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
