"""Checks of a table against a struct: every problem of the table, each at its key path.

msgspec stops at the first problem and names types in its own words; here each field is converted
on its own, and messages say what was found, what is allowed and what is near.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import inspect

from vcr_core.config.fraction_text import parse_number
from vcr_core.config.wording import Node, allowed, choices, found, hint, members

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KeyPath = tuple[str, ...]
T = TypeVar("T", bound=msgspec.Struct)


@dataclass(slots=True)
class Problems:
    """Collects problems; ``layer_of`` says which file or option set a key."""

    layer_of: Callable[[KeyPath], str] = lambda _path: ""
    found: list[str] = field(default_factory=list)
    unavailable: list[str] = field(default_factory=list)
    keys: set[KeyPath] = field(default_factory=set)

    def add(self, path: KeyPath, text: str) -> None:
        """Add a problem of the key ``path``, headed by where the key was set."""
        self.keys.add(path)
        self.found.append(self._headed(path, text))

    def add_unavailable(self, path: KeyPath, text: str) -> None:
        """Add a problem that is nobody's mistake: something is not available here."""
        self.unavailable.append(self._headed(path, text))

    def _headed(self, path: KeyPath, text: str) -> str:
        layer = self.layer_of(path)
        head = [layer] if layer and layer != "default" else []
        place = [".".join(path)] if path else []
        return ": ".join([*head, *place, text])

    def __bool__(self) -> bool:
        """Return whether there is any problem."""
        return bool(self.found or self.unavailable)


def check_table(
    struct: type[T], table: Mapping[str, Any], path: KeyPath, problems: Problems, owner: str
) -> T | None:
    """Return ``table`` as ``struct``, or ``None`` after adding every problem.

    Fractions such as ``"8/255"`` become numbers wherever a number may stand, and the word
    ``"none"`` becomes ``None`` wherever that may stand and text may not.

    Args:
        struct: what the table must be.
        table: what was found.
        path: key path of the table.
        problems: where problems go.
        owner: who takes these keys, for messages.
    """
    fields = {f.encode_name: f for f in msgspec.structs.fields(struct)}
    before = len(problems.found)
    for key in table:
        if key not in fields:
            problems.add((*path, key), unknown_key(key, list(fields), owner))
    values: dict[str, Any] = {}
    for key, info in fields.items():
        if key in table:
            values[key] = _check_value(info.type, table[key], (*path, key), problems)
        elif info.required:
            node = inspect.type_info(info.type)
            problems.add((*path, key), f"missing; {owner} needs it (allowed: {allowed(node)})")
    if len(problems.found) > before:
        return None
    try:
        return msgspec.convert(values, struct)
    except msgspec.ValidationError as error:  # a rule over several fields, from __post_init__
        problems.add(path, str(error))
        return None


def unknown_key(key: str, known: list[str], owner: str) -> str:
    """Return the message for a key that nobody takes."""
    takes = f"{owner} takes: {', '.join(known)}" if known else f"{owner} takes no parameters"
    return f"unknown key{hint(key, known)} ({takes})"


def _check_value(kind: Any, value: Any, path: KeyPath, problems: Problems) -> Any:
    node = inspect.type_info(kind)
    ready = _prepare(node, value)
    try:
        msgspec.convert(ready, kind)
    except msgspec.ValidationError as error:
        _, _, where = str(error).partition(" - at `$")
        place = (*path[:-1], path[-1] + where.rstrip("`"))
        problems.add(place, _refusal(node, value, ready))
        return ready
    if not _is_finite(ready):
        problems.add(path, f"found {found(value)}; allowed: finite numbers only")
    return ready


def _refusal(node: Node, value: Any, ready: Any) -> str:
    text = f"found {found(value)}; allowed: {allowed(node)}"
    if isinstance(value, str):
        near = hint(value.strip().lower(), choices(node))
        fraction_like = "/" in value and ready is value and _takes(node, inspect.FloatType)
        return text + near + ("; write a fraction as '8/255'" if fraction_like else "")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and _takes(node, inspect.StrType) and not _takes(node, inspect.FloatType):
        return f"{text}; in quotes it is text: '\"{value}\"'"
    if _reads_as_levels(node, value):
        return f"{text}; values are fractions of the pixel range: did you mean '{value:g}/255'?"
    return text


def _reads_as_levels(node: Node, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    bounded = any(isinstance(p, inspect.FloatType) and p.le == 1 for p in members(node))
    return bounded and 1 < value <= 255


def _takes(node: Node, kind: type[Node]) -> bool:
    return any(isinstance(part, kind) for part in members(node))


def _prepare(node: Node, value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, str):
        return _prepare_text(node, value)
    for part in members(node):
        if isinstance(value, list | tuple) and isinstance(part, inspect.CollectionType):
            return [_prepare(part.item_type, item) for item in value]
        if isinstance(value, list | tuple) and isinstance(part, inspect.TupleType):
            kinds = part.item_types + (inspect.AnyType(),) * len(value)
            return [_prepare(kind, item) for kind, item in zip(kinds, value, strict=False)]
        if isinstance(value, dict) and isinstance(part, inspect.DictType):
            return {key: _prepare(part.value_type, item) for key, item in value.items()}
        if isinstance(value, dict) and isinstance(part, inspect.StructType):
            kinds_of = {f.encode_name: f.type for f in part.fields}
            return {k: _prepare(kinds_of.get(k, inspect.AnyType()), v) for k, v in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _prepare_text(node: Node, value: str) -> Any:
    words = choices(node)
    if value in words:
        return value
    if _takes(node, inspect.FloatType):
        number = parse_number(value)
        if number is not None:
            return number
    if value == "none" and _takes(node, inspect.NoneType) and not _takes(node, inspect.StrType):
        return None
    return value


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_is_finite(part) for part in value.values())
    if isinstance(value, list | tuple):
        return all(_is_finite(part) for part in value)
    return True


def plain(value: Any) -> Any:
    """Return a struct, or a part of one, as JSON-ready data with every default written out."""
    if isinstance(value, msgspec.Struct):
        shown = ((f.encode_name, getattr(value, f.name)) for f in msgspec.structs.fields(value))
        return {name: plain(part) for name, part in shown if part is not msgspec.UNSET}
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, float):
        return value + 0.0  # -0.0 and 0.0 are one number
    if isinstance(value, str | int) or value is None:
        return value
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(plain(part) for part in value)
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return msgspec.to_builtins(value)
