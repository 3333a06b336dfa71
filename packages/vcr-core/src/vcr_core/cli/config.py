"""``vcr config``: the resolved experiment, where each key comes from, schemas, checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.experiment_options import experiment_options
from vcr_core.cli.output import emit_json, emit_table, json_option, note
from vcr_core.errors import ConfigError, VcrError

if TYPE_CHECKING:
    from vcr_core.config.resolve import Resolved


@click.group("config", epilog="Example: vcr config explain demo.toml")
def command() -> None:
    """Show, explain and check configuration.

    FILE is a run file, a run folder or the name of a run preset. Nothing is loaded or run.
    """


@command.command("show", epilog="Example: vcr config show demo.toml --set attack.steps=50")
@click.argument("source", metavar="[FILE|PRESET]", required=False)
@click.option("--all", "everything", is_flag=True, help="Also [paths], [runtime], [executor].")
@json_option
@experiment_options
def show(
    source: str | None,
    everything: bool,
    as_json: bool,
    shortcuts: dict[str, Any],
    overrides: tuple[str, ...],
) -> None:
    """Print the resolved run file: every default written out, runnable again.

    What belongs to this machine is left out unless --all is given.
    """
    import tomllib

    from vcr_core.config.toml_text import to_toml

    resolved = _resolve(source, shortcuts, overrides)
    machine = resolved.machine if everything else {}
    if as_json:
        emit_json({"schema": 1, "experiment": {**tomllib.loads(resolved.toml), **machine}})
    else:
        click.echo(resolved.toml, nl=False)
        if machine:
            click.echo(f"\n# this machine\n\n{to_toml(machine)}", nl=False)
    for text in resolved.notes:
        note(f"note: {text}")


@command.command("explain", epilog="Example: vcr config explain demo.toml --attack pgd")
@click.argument("source", metavar="[FILE|PRESET]", required=False)
@json_option
@experiment_options
def explain(
    source: str | None, as_json: bool, shortcuts: dict[str, Any], overrides: tuple[str, ...]
) -> None:
    """Print every key with its value and the layer that set it.

    In a pipe the columns are key, value, layer, separated by tabs.
    """
    resolved = _resolve(source, shortcuts, overrides)
    values = resolved.values
    if as_json:
        keys = {
            key: {"value": values.get(key), "layer": layer}
            for key, layer in resolved.provenance.items()
        }
        emit_json({"schema": 1, "keys": keys})
        return
    rows = [(key, _text(values.get(key)), layer) for key, layer in resolved.provenance.items()]
    emit_table(("key", "value", "layer"), rows, styles={"key": "bold", "layer": "dim"})


@command.command("schema", epilog="Example: vcr config schema attack/ifgsm")
@click.argument("ref", metavar="[KIND/NAME]", required=False)
def schema(ref: str | None) -> None:
    """Print a JSON Schema: of a component's parameters, or of the run file."""
    from vcr_core.config.json_schema import params_schema, run_file_schema
    from vcr_core.plugins import registry

    emit_json(params_schema(registry().find_any(ref)[0]) if ref else run_file_schema())


@command.command("validate", epilog="Example: vcr config validate runs/*.toml")
@click.argument("sources", metavar="FILE|PRESET...", nargs=-1, required=True)
@json_option
@experiment_options
@click.pass_context
def validate(
    ctx: click.Context,
    sources: tuple[str, ...],
    as_json: bool,
    shortcuts: dict[str, Any],
    overrides: tuple[str, ...],
) -> None:
    """Check run files and sweep files; all problems of all files are printed.

    The exit code is 2 if a file is wrong, and 3 if the files are right and a component that one of
    them names is broken here. A component that only lacks a requirement is a warning.
    """
    checked = [(source, *_check(source, shortcuts, overrides)) for source in sources]
    codes = [error.exit_code for _, error, _ in checked if error is not None]
    if as_json:
        files = [
            {"file": source, "ok": error is None, "problems": _problems(error), "notes": notes}
            for source, error, notes in checked
        ]
        emit_json({"schema": 1, "files": files})
    else:
        for source, error, notes in checked:
            for problem in _problems(error):
                click.echo(f"error: {problem}", err=True)
            for text in notes:
                note(f"warning: {source}: {text}")
            if error is None:
                click.echo(f"{source}: ok")
    if codes:
        ctx.exit(2 if 2 in codes else max(codes))


def _resolve(source: str | None, shortcuts: dict[str, Any], overrides: tuple[str, ...]) -> Resolved:
    from vcr_core.config.resolve import resolve_run

    return resolve_run(source, overrides=overrides, shortcuts=shortcuts, require_available=False)


def _check(
    source: str, shortcuts: dict[str, Any], overrides: tuple[str, ...]
) -> tuple[VcrError | None, list[str]]:
    from vcr_core import compat
    from vcr_core.config.sweep import expand, is_sweep

    try:
        if not is_sweep(source):
            resolved = _resolve(source, shortcuts, overrides)
            return None, [*resolved.notes, *compat.missing(resolved.experiment)]
        points = expand(source, overrides, shortcuts, require_available=False)
    except VcrError as error:
        return error, []
    notes = [f"{_values(point.values)}: {point.problem}" for point in points if point.problem]
    if len(notes) == len(points):
        return ConfigError([f"{source}: no combination of the sweep is possible", *notes]), []
    return None, notes


def _values(values: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


def _problems(error: VcrError | None) -> list[str]:
    if error is None:
        return []
    problems: list[str] = getattr(error, "problems", [])
    return problems or [str(error)]


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
