"""The ``vcr`` command: one small module per command, imported when it is invoked."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from vcr_core.errors import VcrError

INTERRUPTED = 130
PIPE_CLOSED = 141

EXTRAS = {
    "torch": "engine", "numpy": "engine", "av": "engine", "jinja2": "report", "PIL": "report",
    "pyarrow": "parquet", "submitit": "slurm", "ray": "ray",
}  # fmt: skip
"""Libraries that the core uses and does not require, and the extra that brings them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: arguments without the program's name; those of the process by default.

    Returns:
        0 done; 1 finished with failures; 2 wrong usage or configuration; 3 something named is not
        available; 130 interrupted; 141 the reader of stdout went away.
    """
    import click

    from vcr_core.cli.group import PipeClosed, root
    from vcr_core.cli.options import Settings
    from vcr_core.errors import VcrError

    settings = Settings()
    try:
        result = root.main(
            args=None if argv is None else list(argv),
            prog_name="vcr",
            standalone_mode=False,
            obj=settings,
        )
    except VcrError as error:
        return _fail(error, debug=settings.debug)
    except click.ClickException as error:
        return _misused(error)
    except click.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        return _fail(_needs(missing, error), debug=settings.debug)
    except PipeClosed:
        return _pipe_closed()
    return result if type(result) is int else 0


def _needs(missing: str, cause: ModuleNotFoundError) -> VcrError:
    from vcr_core.errors import NotAvailable

    error = NotAvailable(
        f"this needs {missing}, which is not installed; pip install 'vcr-core[{EXTRAS[missing]}]'"
    )
    error.__cause__ = cause
    return error


def _misused(error: click.ClickException) -> int:
    import click

    context = getattr(error, "ctx", None)
    # New in click 8.2; older releases print the help themselves.
    no_arguments = getattr(click.exceptions, "NoArgsIsHelpError", ())
    if context is not None and isinstance(error, no_arguments):
        click.echo(context.get_help())
        return 0
    if context is not None:
        click.echo(context.get_usage(), err=True)
    click.echo(f"error: {error.format_message()}", err=True)
    return error.exit_code


def _fail(error: VcrError, *, debug: bool) -> int:
    import click

    if debug:
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    problems = getattr(error, "problems", None) or [str(error)]
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    return error.exit_code


def _pipe_closed() -> int:
    # The interpreter flushes stdout once more when it exits; let that go nowhere.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    return PIPE_CLOSED
