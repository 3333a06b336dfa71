"""``vcr status``: how far runs are, from their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.output import emit_json, emit_table, json_option, note
from vcr_core.collector import collector_paused
from vcr_core.errors import StoreError
from vcr_core.status import run_status
from vcr_core.summary import find_runs

if TYPE_CHECKING:
    from vcr_core.status import RunStatus

DEFAULT_FOLDER = "results"

_COLUMNS = ("run", "state", "done", "errors", "clean accuracy", "robust accuracy", "last write")

_SHOWN = ("clean_accuracy", "robust_accuracy")


@click.command("status", epilog="Example: vcr status results")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=Path))
@json_option
def command(folders: tuple[Path, ...], as_json: bool) -> None:
    """Show how far runs are.

    FOLDER is a run folder or any folder that contains some; 'results' by default. Only files are
    read, so this works while runs are going on and on machines without torch. In a pipe the columns
    are run, state, done/planned, errors, clean accuracy, robust accuracy, last write.
    """
    found = list(dict.fromkeys(run for folder in _places(folders) for run in find_runs(folder)))
    with collector_paused():
        states = [run_status(folder, rates=None if as_json else _SHOWN) for folder in found]
    if as_json:
        emit_json({"schema": 1, "runs": [_plain(state) for state in states]})
        return
    emit_table(_COLUMNS, [_row(state) for state in states], styles={"run": "bold"})
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


def _row(state: RunStatus) -> list[str]:
    rates = {name.removeprefix("defended_"): rate for name, rate in state.rates.items()}
    return [
        state.run,
        state.state,
        f"{state.done}/{state.total}" if state.total else str(sum(state.counts.values())),
        _errors(state),
        _rate(rates.get("clean_accuracy")),
        _rate(rates.get("robust_accuracy")),
        "" if state.idle_s is None else _ago(state.idle_s),
    ]


def _errors(state: RunStatus) -> str:
    if not state.errors:
        return "0"
    return ", ".join(f"{count} {name}" for name, count in state.errors.items())


def _rate(rate: dict[str, Any] | None) -> str:
    if rate is None or rate["value"] is None:
        return ""
    text = f"{100 * rate['value']:.1f} %"
    if rate["ci95"] is None:
        return text
    low, high = rate["ci95"]
    return f"{text} [{100 * low:.1f}, {100 * high:.1f}]"


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


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
    }
