"""``vcr doctor``: what is installed, what is wrong, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from vcr_core.checkup import check
from vcr_core.cli.output import emit_facts, emit_json, json_option

if TYPE_CHECKING:
    from vcr_core.checkup import Checkup


@click.command("doctor", epilog="Example: vcr doctor --deep")
@click.option("--deep", is_flag=True, help="Also import torch and every component.")
@json_option
@click.pass_context
def command(context: click.Context, deep: bool, as_json: bool) -> None:
    """Check this installation and say what to do.

    Ends with exit code 1 if something is wrong. Without --deep nothing heavy is imported.
    """
    found = check(deep=deep)
    if as_json:
        emit_json({"schema": 1, "ok": not found.problems, **asdict(found)})
    else:
        _show(found)
    context.exit(1 if found.problems else 0)


def _show(found: Checkup) -> None:
    emit_facts([*found.system.items()])
    emit_facts(
        [
            (name, f"{facts['version']}, {facts['components']} components, {facts['location']}")
            for name, facts in found.distributions.items()
        ]
    )
    emit_facts([(name, version or "not installed") for name, version in found.libraries.items()])
    devices = {name: value for name, value in found.devices.items() if name != "torch"}
    emit_facts([(name, _text(value)) for name, value in devices.items()])
    emit_facts([("ffmpeg", found.video["ffmpeg"] or "not found (not needed: av has its own)")])
    emit_facts(
        [("unavailable", f"{u['component']}: {u['availability']}") for u in found.unavailable]
    )
    for failure in found.failures:
        click.echo(
            f"\nplugin {failure['distribution']} {failure['version']} "
            f"({failure['location']}): {failure['headline']}"
        )
        click.echo(failure["traceback"].rstrip())
    emit_facts([("problem", problem) for problem in found.problems])
    emit_facts([("advice", line) for line in found.advice])
    click.echo("problems found" if found.problems else "no problems found", err=True)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
