"""``vcr demo``: a small sweep over bundled parts, a table, a page."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("demo")
@click.option(
    "--results", type=click.Path(path_type=Path), default=Path("vcr-demo"), show_default=True,
    help="Folder for the runs and the report.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), help="Videos per run.  [default: 16]")
def command(results: Path, limit: int | None) -> int:
    """Evaluate bundled models on generated videos and write a report; needs no network.

    \b
    Examples:
      vcr demo
      vcr demo --limit 4 --results demo
    """  # noqa: D301
    from vcr_core.cli.sweep import described, run_with_views
    from vcr_core.config.sweep import expand
    from vcr_core.reporters.html import HtmlReporter
    from vcr_core.reporters.terminal import TerminalReporter
    from vcr_core.summary import load_run
    from vcr_core.sweeping import run_sweep

    combinations = expand("demo", [], {"limit": limit})
    for skipped in (c for c in combinations if c.resolved is None):
        click.echo(f"skipped: {described(skipped)}: {skipped.problem}", err=True)
    outcome = run_sweep(combinations, run_with_views, results=results)
    if not outcome.folders:
        click.echo(
            "error: nothing could run; the demo needs vcr-models, vcr-attacks, vcr-defenses and "
            "vcr-metrics (pip install them, then 'vcr doctor')",
            err=True,
        )
        return 3
    views = [load_run(folder) for folder in outcome.folders]
    TerminalReporter().show(views, sys.stdout)
    for path in HtmlReporter().render(views, results / "report.html"):
        click.echo(f"report: {path}", err=True)
    for message in outcome.messages:
        click.echo(f"error: {message}", err=True)
    return outcome.exit_code
