"""The root group. Sub-commands are imported when invoked; their one-line help is here."""

from __future__ import annotations

import errno
import importlib
import sys
from typing import Any

import click

from vcr_core.__about__ import __version__
from vcr_core.cli import logging_setup
from vcr_core.cli.options import add_common_options, common_options

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("list_", "Show every installed component."),
    "info": ("info", "Explain one component: parameters, access, reference, example."),
    "run": ("run", "Make the records of a run file or preset that are missing."),
    "prepare": ("prepare", "Make what an attack needs once before its runs."),
    "sweep": ("sweep", "Run every combination of a sweep file."),
    "demo": ("demo", "Run a small sweep on generated videos and make a report."),
    "status": ("status", "Show how far runs are."),
    "report": ("report", "Show results as tables or pages."),
    "compare": ("compare", "Compare two runs or sweeps on the same videos."),
    "leaderboard": ("leaderboard", "Make a site from runs, and check submissions."),
    "export": ("export", "Write records, tables or videos in other formats."),
    "weights": ("weights", "List, fetch and check weight files of models."),
    "cache": ("cache", "Show or delete adversarial clips that runs keep for each other."),
    "doctor": ("doctor", "Check this installation and say what to do."),
    "config": ("config", "Show, explain and check configuration."),
    "new-plugin": ("new_plugin", "Write a new plugin distribution to start from."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is invoked."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the core's commands in reading order, then those of plugins."""
        return [*COMMANDS, *self._plugin_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing its module; plugins are asked only on a miss."""
        found = self.commands.get(cmd_name)
        if found is not None:
            return found
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"vcr_core.cli.{COMMANDS[cmd_name][0]}")
            command: click.Command = module.command
            add_common_options(command)
            self.commands[cmd_name] = command
            return command
        if cmd_name.startswith("-"):
            return None
        return self._plugin_commands().get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the static table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in COMMANDS.items()])
        others = self._plugin_commands()
        if others:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(
                    [(name, command.get_short_help_str(60)) for name, command in others.items()]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; on a miss say which names are near."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from vcr_core.refs import did_you_mean

            guess = did_you_mean(name, self.list_commands(ctx)) or (
                "; 'vcr --help' lists the commands"
            )
            raise click.UsageError(f"there is no command {name!r}{guess}", ctx)
        return super().resolve_command(ctx, args)

    def _plugin_commands(self) -> dict[str, click.Command]:
        from vcr_core.plugins import registry

        return registry().commands(taken=COMMANDS)


class PipeClosed(Exception):
    """The reader of stdout went away; click itself would end the process with code 1."""


class _Root(LazyGroup):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise PipeClosed from error
            raise
        return result

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        # Before any option is read: loading plugins for --help already logs.
        logging_setup.install()
        return super().make_context(*args, **kwargs)


@click.command(
    cls=_Root,
    params=[*common_options()],
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: vcr demo --output demo-results",
)
@click.version_option(__version__, prog_name="vcr")
def root() -> None:
    """Measure how robust video classifiers are: attacks, defenses, metrics, one loop."""
