"""``vcr export``: records in other formats."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from vcr_core.cli.output import note
from vcr_core.errors import StoreError
from vcr_core.export import EXPORT_FORMATS, ExportFormat, export_file, export_text
from vcr_core.summary import find_runs, load_run


@click.command("export", epilog="Example: vcr export results --format csv --output records.csv")
@click.argument(
    "folders", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path)
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(EXPORT_FORMATS),
    default="csv",
    show_default=True,
    help="vcrbench: the 20 columns of VCR-Bench, one file a run.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A file, replaced as a whole; for vcrbench also a folder. Default: stdout.",
)
def command(folders: tuple[Path, ...], fmt: str, output: Path | None) -> None:
    """Write the records of runs in another format.

    RUN is a run folder or any folder that contains some. Nothing in a run folder is changed.
    Without --output the data goes to stdout (not for parquet, which is binary).
    """
    found = list(dict.fromkeys(run for folder in folders for run in find_runs(folder)))
    if not found:
        raise StoreError(f"no runs in {', '.join(str(folder) for folder in folders)}")
    runs = [load_run(folder) for folder in found]
    wanted = cast("ExportFormat", fmt)
    if output is None:
        click.echo(export_text(runs, wanted), nl=False)
        return
    for path in export_file(runs, wanted, output):
        note(f"wrote {path}")
