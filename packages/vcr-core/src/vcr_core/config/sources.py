"""Where a run or a sweep is read from: a file, a run folder, a preset, a dict, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vcr_core import preset_files
from vcr_core.config.toml_text import read_toml
from vcr_core.preset_files import FileKind

Source: TypeAlias = str | Path | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Document:
    """A document as read.

    Attributes:
        label: its name in messages and in provenance.
        tables: its content.
    """

    label: str
    tables: dict[str, Any]


def read_source(source: Source, kind: FileKind, cwd: Path) -> Document:
    """Return the document that ``source`` names.

    A file of that name wins over a preset; a run folder stands for its ``resolved.toml``.

    Raises:
        ConfigError: if it names nothing, or what it names is not TOML.
    """
    if source is None:
        return Document("", {})
    if isinstance(source, Mapping):
        return Document("arguments", dict(source))
    path = cwd / Path(source).expanduser()
    if path.is_dir() and (path / "resolved.toml").is_file():
        path = path / "resolved.toml"
        return Document(str(Path(source) / "resolved.toml"), read_toml(path, str(path)))
    if path.is_file():
        return Document(str(source), read_toml(path, str(source)))
    preset = preset_files.find_preset(kind, str(source))
    if preset is None:
        raise preset_files.no_such_file_or_preset(kind, str(source))
    return Document(preset.shown, preset.read())
