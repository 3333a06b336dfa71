"""Log records of the command line: to stderr, as plain lines."""

from __future__ import annotations

import logging

import click

_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}


class _Lines(logging.Formatter):
    """``warning: message``; the traceback only where details are asked for."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"{record.levelname.lower()}: {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            if logging.getLogger("vcr_core").isEnabledFor(logging.DEBUG):
                return f"{text}\n{self.formatException(record.exc_info)}"
            error = record.exc_info[1]
            return f"{text}\n  {type(error).__name__}: {error}"
        return text


class _Stderr(logging.Handler):
    """Writes to whatever ``sys.stderr`` is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            click.echo(self.format(record), err=True)
        except (OSError, ValueError):  # stderr is gone
            self.handleError(record)


def install() -> None:
    """Send warnings of every library to stderr, once; called by the root command."""
    root = logging.getLogger()
    if not any(isinstance(handler, _Stderr) for handler in root.handlers):
        handler = _Stderr()
        handler.setFormatter(_Lines())
        root.addHandler(handler)
    set_verbosity(0)


def set_verbosity(verbosity: int) -> None:
    """Choose what is shown: -1 errors, 0 warnings, 1 information, 2 everything of ours."""
    level = _LEVELS.get(max(verbosity, -1), logging.DEBUG)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Stderr):
            handler.setLevel(level)
    logging.getLogger("vcr_core").setLevel(min(level, logging.INFO))
