"""The part of ``vcr export`` that writes videos and checks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.output import emit_json, emit_table, note
from vcr_core.errors import UsageError
from vcr_core.manifest import component_ref

if TYPE_CHECKING:
    from vcr_core.export_videos.agreement import Answer
    from vcr_core.summary import RunView

DIFFERENT = 1
NO_PREVIEW = "none"


def video_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that concern videos to a command."""
    options = (
        click.option(
            "--videos",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="Write videos instead of records: exact files with sidecars, and previews.",
        ),
        click.option(
            "--only", multiple=True, metavar="ID", help="With --videos: this video; again for more."
        ),
        click.option(
            "--limit",
            type=click.IntRange(min=1),
            metavar="N",
            help="With --videos: so many videos of a run at most.",
        ),
        click.option(
            "--preview",
            "previews",
            multiple=True,
            type=click.Choice(["mp4", "webm", "gif", NO_PREVIEW]),
            help="With --videos: formats of the previews; again for more. Default: mp4 and gif.",
        ),
        click.option(
            "--recreate",
            is_flag=True,
            help="With --videos: attack videos again whose frames the run did not keep.",
        ),
        click.option(
            "--check",
            is_flag=True,
            help="With --videos: write nothing, but ask the model about the files in FOLDER and "
            "compare its answers with the records.",
        ),
        click.option("--json", "as_json", is_flag=True, help="With --check: print JSON."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def export_videos(
    folders: Sequence[Path],
    out: Path,
    *,
    only: Sequence[str],
    limit: int | None,
    previews: Sequence[str],
    recreate: bool,
) -> None:
    """Write the videos of runs below a folder.

    Raises:
        UsageError: if no preview is asked for together with some.
    """
    from vcr_core.export_videos.writing import PREVIEWS, write_videos
    from vcr_core.summary import load_run

    if NO_PREVIEW in previews and len(set(previews)) > 1:
        raise UsageError("--preview none excludes other previews")
    formats: Any = [p for p in dict.fromkeys(previews) if p != NO_PREVIEW]
    for run in _attacked([load_run(folder) for folder in folders]):
        written = write_videos(
            run, out, only=only, limit=limit, recreate=recreate,
            previews=formats if previews else PREVIEWS,
        )  # fmt: skip
        for exported in written:
            note(f"wrote {exported.folder}: {', '.join(exported.files)}")


def check_videos(folders: Sequence[Path], out: Path, *, as_json: bool) -> int:
    """Compare exported files with the records of runs, print a table, and return the exit code."""
    from vcr_core.export_videos import checking
    from vcr_core.summary import load_run

    runs = _attacked([load_run(folder) for folder in folders])
    found = [(run, answer) for run in runs for answer in checking.check_videos(run, out)]
    if as_json:
        emit_json({"schema": 1, "answers": [_plain(run, answer) for run, answer in found]})
    else:
        columns = ("run", "video", "file", "model", "in the record", "on the file", "verdict")
        emit_table(columns, [_row(run, answer) for run, answer in found])
    bad = [answer for _, answer in found if not answer.is_good]
    note(
        f"{len(bad)} of {len(found)} predictions are not those of the records"
        if bad
        else f"all {len(found)} predictions are those of the records"
    )
    return DIFFERENT if bad else 0


def _attacked(runs: Sequence[RunView]) -> Sequence[RunView]:
    """Return runs without those that have no videos of their own, unless there are no others."""
    reasons = {run.name: _why_none(run) for run in runs}
    attacked = [run for run in runs if not reasons[run.name]]
    for run in runs if attacked else ():
        if reasons[run.name]:
            note(f"{run.name} {reasons[run.name]} and is left out")
    return attacked or runs


def _why_none(run: RunView) -> str:
    if not run.attack:
        return "attacks nothing"
    source = component_ref(run.manifest, "source")
    return f"judges videos that were made on {source}" if source else ""


def _row(run: RunView, answer: Answer) -> tuple[object, ...]:
    names = (run.manifest.get("dataset") or {}).get("labels") or ()
    return (
        run.name,
        answer.video,
        answer.version,
        answer.view,
        _named(answer.recorded, answer.p_recorded, names),
        answer.problem or _named(answer.found, answer.p_found, names),
        answer.verdict,
    )


def _named(pred: int | None, p: float | None, names: Sequence[str]) -> str:
    from vcr_core.reporters.clips import label_name

    return label_name(pred, names) if p is None else f"{label_name(pred, names)} {p:.6f}"


def _plain(run: RunView, answer: Answer) -> dict[str, Any]:
    from dataclasses import asdict

    return {"run": run.name, **asdict(answer)}
