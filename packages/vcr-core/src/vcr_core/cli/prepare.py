"""``vcr prepare``: make, once, what the attack of a run needs before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.experiment_options import experiment_options
from vcr_core.cli.output import emit_facts, emit_json, json_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from vcr_core.artifacts import Artifact
    from vcr_core.config.resolve import Resolved
    from vcr_core.engine.prepare import ProgressFn
    from vcr_core.specs import Kind

_PREPARED: tuple[Kind, ...] = ("attack", "defense")


@click.command("prepare")
@click.argument("source", required=False, metavar="[REF|FILE|PRESET|FOLDER]")
@experiment_options
@click.option(
    "--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
    help="Stop after so many seconds; the same command goes on.  [default: a day]",
)  # fmt: skip
@click.option(
    "--max-iterations", type=click.IntRange(min=1), metavar="N",
    help="Stop after so many iterations; the same command goes on.  [default: 1000000]",
)  # fmt: skip
@click.option("--again", is_flag=True, help="Make it anew, even if it is there.")
@json_option
def command(
    source: str | None,
    shortcuts: Mapping[str, Any],
    overrides: Sequence[str],
    time_limit: float | None,
    max_iterations: int | None,
    again: bool,
    as_json: bool,
) -> int:
    """Run the offline steps of attack and defenses, such as training a universal patch.

    REF names an attack or a defense; FILE, PRESET and FOLDER name a run, as for vcr run. Artifacts
    go to the cache folder (VCR_CACHE_DIR). A run that needs one and does not find it prints the
    command that makes it. An interrupted command goes on where it was.

    \b
    Examples:
      vcr prepare uap --model tiny-r3d --eps 4/255 --limit 16
      vcr prepare experiment.toml --set prepare.videos=200
    """  # noqa: D301
    from vcr_core.engine.prepare import MAX_ITERATIONS, TIME_LIMIT_S, Limits, prepare_all
    from vcr_core.engine.stopping import graceful_stop
    from vcr_core.loading import quiet_stdout

    resolved = _resolve(source, dict(shortcuts), overrides)
    for text in resolved.notes:
        click.echo(f"note: {text}", err=True)
    with graceful_stop() as stop, _shown() as progress, quiet_stdout():
        artifacts = prepare_all(
            resolved.experiment,
            limits=Limits(
                seconds=time_limit or TIME_LIMIT_S,
                iterations=max_iterations or MAX_ITERATIONS,
                stop=lambda: stop.asked,
            ),
            progress=progress,
            again=again,
        )
    if as_json:
        emit_json({"schema": 1, "artifacts": [_plain(*one) for one in artifacts]})
    for one in () if as_json else artifacts:
        _tell(*one)
    return 0


def _resolve(source: str | None, shortcuts: dict[str, Any], overrides: Sequence[str]) -> Resolved:
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.machine import run_document

    if source is not None and (Path(source) / "run.json").is_file():
        if shortcuts:
            raise click.UsageError(
                f"{source} is a run; what it evaluates is fixed. Leave the other options out"
            )
        return resolve_run(run_document(Path(source)), overrides=overrides)
    for kind in _PREPARED:
        if source is not None and _names(kind, source):
            if shortcuts.get(kind):
                raise click.UsageError(f"two {kind}s are named: {source} and --{kind}")
            shortcuts[kind] = source.removeprefix(f"{kind}/")
            source = None
    return resolve_run(source, overrides=overrides, shortcuts=shortcuts)


def _names(kind: Kind, source: str) -> bool:
    """Return whether a word names a component rather than a file or a run preset."""
    from vcr_core.errors import AmbiguousComponent, NotAvailable, UsageError
    from vcr_core.plugins import registry

    if Path(source).exists():
        return False
    try:
        registry().find(kind, source)
    except (AmbiguousComponent, NotAvailable):
        return True  # resolving says what is the matter
    except UsageError:
        return False
    return True


def _shown() -> AbstractContextManager[ProgressFn]:
    """Return what shows progress on stderr: a bar on a terminal, else a line every 30 s."""
    import contextlib
    import sys
    import time

    from vcr_core.cli.options import is_quiet

    @contextlib.contextmanager
    def shown() -> Iterator[ProgressFn]:
        if is_quiet():
            yield lambda _done, _total: None
        elif sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

            columns = ("prepare", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
                task = bar.add_task("prepare", total=None)
                yield lambda done, total: bar.update(task, completed=done, total=total)
        else:
            last = [time.monotonic()]

            def line(done: int, total: int) -> None:
                if time.monotonic() - last[0] >= 30:
                    last[0] = time.monotonic()
                    click.echo(f"prepare: {done} of {total} iterations", err=True)

            yield line

    return shown()


def _plain(artifact: Artifact, made: bool) -> dict[str, Any]:
    return {
        "folder": str(artifact.folder),
        "made": made,
        "sha256": artifact.sha256,
        "manifest": dict(artifact.manifest),
    }


def _tell(artifact: Artifact, made: bool) -> None:
    manifest = artifact.manifest
    cost = manifest.get("cost") or {}
    passes = cost.get("backwards", 0) + cost.get("surrogate_backwards", 0)
    training = manifest["made_for"]["training"]
    overlap = f", {len(artifact.overlap)} of them evaluated" if artifact.overlap else ""
    emit_facts([
        ("artifact", artifact.folder),
        ("state", "made" if made else "was there already"),
        ("sha256", artifact.sha256),
        ("videos", f"{len(training)}{overlap}"),
        ("gradients", passes),
        ("seconds", cost.get("seconds", "")),
    ])  # fmt: skip
