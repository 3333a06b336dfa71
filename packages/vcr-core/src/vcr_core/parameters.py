"""A component's parameters in words, from its msgspec struct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from vcr_core.config.wording import allowed, members

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        name: key in a run file.
        type: what it is, in TOML's words.
        allowed: type with range or words.
        default: default as plain data; ``None`` also where there is none, see ``required``.
        required: whether it has to be given.
        description: one or more sentences.
    """

    name: str
    type: str
    allowed: str
    default: Any
    required: bool
    description: str


def parameters(struct: type[msgspec.Struct] | None) -> list[Parameter]:
    """Return the parameters of a struct in their order; an empty list for ``None``."""
    if struct is None:
        return []
    info = inspect.type_info(struct)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{struct!r} is no msgspec.Struct")
    return [_parameter(field) for field in info.fields]


def _parameter(field: inspect.Field) -> Parameter:
    default = field.default
    if default is msgspec.NODEFAULT:
        factory = field.default_factory
        default = None if factory is msgspec.NODEFAULT else factory()
    return Parameter(
        name=field.encode_name,
        type=" or ".join(dict.fromkeys(_words(field.type))),
        allowed=allowed(field.type),
        default=None if default is msgspec.UNSET else msgspec.to_builtins(default),
        required=field.required,
        description=_description(field.type),
    )


def _description(node: inspect.Type) -> str:
    if isinstance(node, inspect.Metadata):
        schema = node.extra_json_schema or {}
        return str(schema.get("description", "")) or _description(node.type)
    if isinstance(node, inspect.UnionType):
        return next((text for part in node.types if (text := _description(part))), "")
    return ""


def _words(node: inspect.Type) -> Iterator[str]:
    for part in members(node):
        for kind, word in _WORDS:
            if isinstance(part, kind):
                yield word
                break
        else:
            yield "any"


_WORDS: tuple[tuple[type, str], ...] = (
    (inspect.BoolType, "boolean"),
    (inspect.IntType, "integer"),
    (inspect.FloatType, "number"),
    (inspect.StrType, "text"),
    (inspect.LiteralType, "word"),
    (inspect.EnumType, "word"),
    (inspect.NoneType, "none"),
    (inspect.CollectionType, "list"),
    (inspect.TupleType, "list"),
    (inspect.DictType, "table"),
    (inspect.StructType, "table"),
)
