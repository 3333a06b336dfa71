"""``vcr export``: records in other formats."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from vcr_core.cli.output import note
from vcr_core.errors import StoreError, UsageError
from vcr_core.export import EXPORT_FORMATS, ExportFormat, export_file, export_text
from vcr_core.summary import find_runs, load_run

MANIFEST = "manifest"


@click.command("export", epilog="Example: vcr export results --format csv --output records.csv")
@click.argument(
    "folders", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path)
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice([*EXPORT_FORMATS, MANIFEST]),
    default="csv",
    show_default=True,
    help="vcrbench: the 20 columns of VCR-Bench, one file a run. manifest: the run's videos with "
    "their hashes, for dataset.subset or dataset.manifest of other runs.",
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
    if fmt == MANIFEST:
        _write_subset(found, output)
        return
    runs = [load_run(folder) for folder in found]
    wanted = cast("ExportFormat", fmt)
    if output is None:
        click.echo(export_text(runs, wanted), nl=False)
        return
    for path in export_file(runs, wanted, output):
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
