"""Options that every command has, added by the group so that no command repeats them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from vcr_core.cli.logging_setup import set_verbosity


@dataclass(slots=True)
class Settings:
    """What the common options ask for; the object of the root context.

    Attributes:
        debug: show tracebacks.
        verbosity: -1 quiet, 0 normal, 1 or more verbose.
    """

    debug: bool = False
    verbosity: int = 0


def settings() -> Settings:
    """Return the settings of the running command (defaults outside of one)."""
    context = click.get_current_context(silent=True)
    found = context.find_object(Settings) if context is not None else None
    return found or Settings()


def is_quiet() -> bool:
    """Return whether ``-q`` was given."""
    return settings().verbosity < 0


def is_verbose() -> bool:
    """Return whether ``-v`` was given."""
    return settings().verbosity > 0


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Settings).debug = True
        set_verbosity(2)


def _set_verbose(context: click.Context, _: click.Parameter, value: int) -> None:
    if value:
        context.ensure_object(Settings).verbosity = value
        set_verbosity(value)


def _set_quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Settings).verbosity = -1
        set_verbosity(-1)


def common_options() -> list[click.Option]:
    """Return fresh ``-v``, ``-q`` and ``--debug`` options."""
    shared: dict[str, Any] = {"expose_value": False, "is_eager": True}
    return [
        click.Option(
            ["-v", "--verbose"],
            count=True,
            callback=_set_verbose,
            help="Say more; twice for details.",
            **shared,
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            callback=_set_quiet,
            help="Say only what went wrong.",
            **shared,
        ),
        click.Option(
            ["--debug"], is_flag=True, callback=_set_debug, help="Show tracebacks.", **shared
        ),
    ]


def add_common_options(command: click.Command) -> None:
    """Add the common options to a command and its sub-commands, unless it has its own."""
    taken = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    for option in common_options():
        if not taken.intersection(option.opts):
            command.params.append(option)
    if isinstance(command, click.Group):
        for child in command.commands.values():
            add_common_options(child)
