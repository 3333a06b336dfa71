"""Plugins that could not be loaded: what is kept of them and what users read."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADLINES = {
    "metadata": "its metadata is damaged",
    "import": "import of {value} failed",
    "hooks": "{value} does not fit this vcr-core",
    "specs": "{value} does not describe its components correctly",
}


class PluginError(Exception):
    """A plugin broke a rule of the loader; the message says which."""


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """Why a plugin is not there.

    Attributes:
        distribution: normalised name of the distribution.
        version: its version.
        value: value of the entry point.
        stage: ``metadata``, ``import``, ``hooks`` or ``specs``.
        error: what was raised.
        location: the folder on the import path that holds the distribution's metadata.
        names: components it had described before it failed.
    """

    distribution: str
    version: str
    value: str
    stage: str
    error: BaseException
    location: str = ""
    names: frozenset[str] = frozenset()

    @property
    def headline(self) -> str:
        """What failed, without the reason."""
        return _HEADLINES[self.stage].format(value=self.value)

    @property
    def reason(self) -> str:
        """The error on one line, with its type unless the loader raised it."""
        if isinstance(self.error, SystemExit):
            return f"it called sys.exit({self.error.code!r})"
        lines = str(self.error).strip().splitlines() or [""]
        if isinstance(self.error, PluginError):
            return lines[0]
        return f"{type(self.error).__name__}: {lines[0]}".rstrip(": ")


def format_failure(failure: PluginFailure, *, silence: bool = False) -> str:
    """Return three lines for people, without the word in front of a warning.

    Args:
        failure: the failure.
        silence: also say how to silence the message.
    """
    hint = "`vcr doctor` shows details"
    if silence:
        hint += f"; VCR_DISABLE_PLUGINS={failure.distribution} silences this"
    return (
        f"plugin {failure.distribution} {failure.version} could not be loaded: {failure.headline}\n"
        f"  {failure.reason}\n"
        f"  Its components are unavailable. {hint}."
    )


def mentions(failure: PluginFailure, name: str) -> bool:
    """Return whether the failed plugin provides a component of this name, as far as one can tell.

    What a plugin would have registered is unknown when its import failed. Its files are then read,
    not run: a component's name stands there in quotes.
    """
    if name in failure.names:
        return True
    quoted = re.compile(rf"""(["']){re.escape(name)}\1""")
    return any(quoted.search(text) for text in _sources(failure.value))


def _sources(value: str) -> Iterator[str]:
    """Yield the Python and TOML files of an entry point's package without importing anything."""
    top = value.partition(":")[0].partition(".")[0]
    try:
        spec = PathFinder.find_spec(top, sys.path)
    except (ImportError, OSError, ValueError):
        return
    if spec is None:
        return
    files = [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []
    for folder in spec.submodule_search_locations or ():
        files += [file for file in Path(folder).rglob("*") if file.suffix in (".py", ".toml")]
    for file in files:
        try:
            yield file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
