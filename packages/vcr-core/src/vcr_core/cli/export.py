"""``vcr export``: records in other formats."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from vcr_core.cli.output import note
from vcr_core.cli.videos import check_videos, export_videos, video_options
from vcr_core.collector import collector_paused
from vcr_core.errors import StoreError, UsageError
from vcr_core.export import EXPORT_FORMATS, ExportFormat, export_file, export_text
from vcr_core.summary import find_runs, load_run

MANIFEST = "manifest"
VLMEVALKIT = "vlmevalkit"


@click.command("export")
@click.argument(
    "folders", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path)
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice([*EXPORT_FORMATS, MANIFEST, VLMEVALKIT]),
    help="Default: csv. frames: metrics that have a value a frame. vcrbench: the 20 columns of "
    "VCR-Bench, one file a run. vcrbench-log: its log, one line a run. manifest: the run's videos "
    "with their hashes, for dataset.subset or dataset.manifest of other runs. vlmevalkit: the "
    "videos of a run over 'tamper' and a table of questions about them, in a folder.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A file, replaced as a whole; for vcrbench also a folder. Default: stdout.",
)
@video_options
def command(
    folders: tuple[Path, ...],
    fmt: str | None,
    output: Path | None,
    videos: Path | None,
    only: tuple[str, ...],
    limit: int | None,
    previews: tuple[str, ...],
    recreate: bool,
    check: bool,
    as_json: bool,
) -> int:
    """Write the records of runs in another format, or their videos.

    RUN is a run folder or any folder that contains some. Nothing in a run folder is changed.
    Without --output the data goes to stdout (not for parquet, which is binary).

    With --videos, FOLDER gets a folder for each run, with one for each video whose frames were
    kept. --check reads the exact files back: exit code 1 means that the model says something else
    than the records.

    \b
    Examples:
      vcr export results --format csv --output records.csv
      vcr export results/RUN --videos videos
      vcr export results/RUN --videos videos --check
    """  # noqa: D301
    concerns_videos = only or limit or previews or recreate or check or as_json
    if videos is None and concerns_videos:
        raise UsageError("--only, --limit, --preview, --recreate, --check and --json need --videos")
    if videos is not None and (fmt is not None or output is not None):
        raise UsageError("--videos FOLDER excludes --format and --output")
    if as_json and not check:
        raise UsageError("--json needs --check")
    if check and (only or limit or previews or recreate):
        raise UsageError("--check is about all files; leave out the options of writing")
    found = list(dict.fromkeys(run for folder in folders for run in find_runs(folder)))
    if not found:
        raise StoreError(f"no runs in {', '.join(str(folder) for folder in folders)}")
    if videos is not None:
        if check:
            return check_videos(found, videos, as_json=as_json)
        export_videos(found, videos, only=only, limit=limit, previews=previews, recreate=recreate)
    elif fmt == MANIFEST:
        _write_subset(found, output)
    elif fmt == VLMEVALKIT:
        _write_questions(found, output)
    else:
        _write_records(found, cast("ExportFormat", fmt or "csv"), output)
    return 0


def _write_records(folders: list[Path], fmt: ExportFormat, output: Path | None) -> None:
    """Write the records of runs to a file or to stdout."""
    with collector_paused():
        runs = [
            load_run(folder, details=fmt in ("json", "frames"), summary=fmt == "json")
            for folder in folders
        ]
        if output is None:
            click.echo(export_text(runs, fmt), nl=False)
            return
        for path in export_file(runs, fmt, output):
            note(f"wrote {path}")


def _write_subset(folders: list[Path], output: Path | None) -> None:
    """Write the videos of one run as a subset manifest."""
    from vcr_core.datasets.manifest import write_manifest
    from vcr_core.engine.subset_export import manifest_of_run

    if len(folders) > 1:
        raise UsageError(f"a manifest is that of one run, {len(folders)} were given")
    if output is None:
        raise UsageError("--format manifest needs --output FILE")
    write_manifest(output, manifest_of_run(folders[0]))
    note(f"wrote {output}")


def _write_questions(folders: list[Path], output: Path | None) -> None:
    """Write the tampered videos of one run with questions for VLMEvalKit."""
    from vcr_core.export_vlmevalkit import write_vlmevalkit

    if len(folders) > 1:
        raise UsageError(f"a folder for VLMEvalKit is that of one run, {len(folders)} were given")
    if output is None:
        raise UsageError("--format vlmevalkit needs --output FOLDER")
    for path in write_vlmevalkit(folders[0], output):
        note(f"wrote {path}")
