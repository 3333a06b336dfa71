"""The local layers: what this machine or this folder says about paths, devices and workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.config.check import Problems
from vcr_core.config.document import LOCAL_TABLES
from vcr_core.config.toml_text import read_toml
from vcr_core.config.wording import found
from vcr_core.errors import ConfigError

if TYPE_CHECKING:
    from vcr_core.config.schema import PathsConfig


def user_file() -> Path:
    """Return where the user's configuration is: ``VCR_CONFIG_DIR``, else the platform's place."""
    folder = os.environ.get("VCR_CONFIG_DIR")
    if folder:
        return Path(folder) / "config.toml"
    import platformdirs

    return platformdirs.user_config_path("vcr") / "config.toml"


def local_layers(cwd: Path, problems: Problems) -> list[tuple[str, dict[str, Any]]]:
    """Return ``(label, tables)`` of the local files that exist, weakest first.

    They may hold ``[paths]``, ``[runtime]`` and ``[executor]`` only, so that a machine cannot
    change what an experiment means; everything else there is a problem.
    """
    places = [
        (f"user file {_with_tilde(user_file())}", user_file()),
        ("vcr.toml", cwd / "vcr.toml"),
        ("vcr.local.toml", cwd / "vcr.local.toml"),
    ]
    layers: list[tuple[str, dict[str, Any]]] = []
    for label, path in places:
        if not path.is_file():
            continue
        try:
            document = read_toml(path, label)
        except ConfigError as error:
            problems.found.extend(error.problems)
            continue
        layers.append((label, _checked(document, label, problems)))
    return layers


def local_paths(cwd: Path) -> PathsConfig:
    """Return ``[paths]`` as the local files say, for commands without an experiment.

    Raises:
        ConfigError: if a local file is wrong.
    """
    import msgspec

    from vcr_core.config.schema import PathsConfig

    problems = Problems()
    merged: dict[str, Any] = {}
    for _, tables in local_layers(cwd, problems):
        merged |= {key: value for key, value in (tables.get("paths") or {}).items() if value}
    if problems.found:
        raise ConfigError(problems.found)
    return msgspec.convert(merged, PathsConfig)


def _checked(document: dict[str, Any], label: str, problems: Problems) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    tables = ", ".join(f"[{name}]" for name in LOCAL_TABLES)
    for key, value in document.items():
        if key == "schema":
            if value != 1:
                problems.found.append(f"{label}: schema: found {found(value)}; allowed: 1")
        elif key not in LOCAL_TABLES:
            problems.found.append(
                f"{label}: {key}: not allowed in a local file; allowed: {tables}, so that a "
                "machine cannot change what an experiment means; put it into the run file"
            )
        elif not isinstance(value, dict):
            problems.found.append(f"{label}: {key}: found {found(value)}; allowed: a table")
        else:
            kept[key] = value
    return kept


def _with_tilde(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
