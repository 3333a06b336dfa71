"""TOML in and out: errors with line and column, plain data written as tables."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from vcr_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PLACE = re.compile(r"\s*\((?:at line (\d+), column (\d+)|at end of document)\)$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(path: Path, shown: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Args:
        path: the file.
        shown: its name in messages.

    Raises:
        ConfigError: if it cannot be read or is not TOML; with line and column.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"{shown}: no such file") from error
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{shown}: not a text file in UTF-8 (byte {error.start}); save it as UTF-8"
        ) from error
    return parse_toml(text, shown)


def parse_toml(text: str, shown: str) -> dict[str, Any]:
    """Return TOML text as data.

    Raises:
        ConfigError: ``demo.toml:3:7: not valid TOML: …``.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        if place and place[1]:
            line, column = int(place[1]), int(place[2])
        else:
            lines = text.split("\n")
            line, column = len(lines), len(lines[-1]) + 1
        reason = _PLACE.sub("", message)
        raise ConfigError(f"{shown}:{line}:{column}: not valid TOML: {reason}") from error


def parse_key_path(text: str, shown: str) -> tuple[str, ...]:
    """Return the parts of a dotted key, with TOML's quoting rules.

    Raises:
        ConfigError: if it is none.

    Example:
        >>> parse_key_path('defense."a.b".sigma', "--set")
        ('defense', 'a.b', 'sigma')
    """
    try:
        node: Any = tomllib.loads(f"{text} = 0") if "\n" not in text else {}
    except tomllib.TOMLDecodeError:
        node = {}
    parts: list[str] = []
    while isinstance(node, dict) and len(node) == 1:
        [(part, node)] = node.items()
        parts.append(part)
    if node != 0 or not parts:
        raise ConfigError(f"{shown}: {text!r} is not a key path such as attack.steps")
    return tuple(parts)


def parse_value(text: str) -> Any:
    """Return ``text`` read as one TOML value, or as it stands where that is none.

    A comma, a ``#`` or a date never gives it another meaning.

    Example:
        >>> parse_value("2"), parse_value("[1, 2]"), parse_value('"4/255"'), parse_value("4/255")
        (2, [1, 2], '4/255', '4/255')
        >>> parse_value("1,2"), parse_value("5 # x"), parse_value("2024-01-02"), parse_value("")
        ('1,2', '5 # x', '2024-01-02', '')
    """
    try:
        parsed = tomllib.loads(f"v = {text}")
        # Inside brackets, a trailing comment or a second value shows itself.
        wrapped = tomllib.loads(f"v = [{text}]")["v"]
    except tomllib.TOMLDecodeError:
        return text
    if list(parsed) != ["v"] or len(wrapped) != 1:
        return text
    value = parsed["v"]
    is_moment = isinstance(value, datetime.date | datetime.time)
    return text if is_moment else value


def to_toml(document: Mapping[str, Any]) -> str:
    """Return plain data as TOML: scalars first, then tables; lists of tables as ``[[…]]``.

    Only what configurations hold is written: text, numbers, booleans, lists and tables. Keys whose
    value is ``None`` are left out.
    """
    return "\n".join(_table(document, ())).strip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    later: list[tuple[str, Any]] = []
    for key, value in table.items():
        if value is None:
            continue
        if isinstance(value, dict) or _is_table_list(value):
            later.append((key, value))
        else:
            yield f"{_key(key)} = {_inline(value)}"
    for key, value in later:
        here = (*path, key)
        name = ".".join(_key(part) for part in here)
        if isinstance(value, dict):
            has_own = not value or any(not isinstance(v, dict) for v in value.values())
            if has_own:
                yield f"\n[{name}]"
            yield from _table(value, here)
        else:
            for item in value:
                yield f"\n[[{name}]]"
                yield from _table(item, here)


def _is_table_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, except that TOML wants U+007F escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_inline(v) for v in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inner} }}" if inner else "{}"
    raise TypeError(f"no TOML form for {type(value).__name__}")
