"""Words for what a configuration field takes and for what was found in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

from vcr_core.refs import near

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Node = inspect.Type


def members(node: Node) -> Iterator[Node]:
    """Yield the alternatives of a type, through unions and annotations."""
    if isinstance(node, inspect.Metadata):
        yield from members(node.type)
    elif isinstance(node, inspect.UnionType):
        for part in node.types:
            yield from members(part)
    else:
        yield node


def is_path(node: Node) -> bool:
    """Return whether a field is marked as a path with ``Meta(extra={"path": True})``."""
    if isinstance(node, inspect.Metadata):
        return bool(node.extra and node.extra.get("path")) or is_path(node.type)
    if isinstance(node, inspect.UnionType):
        return any(is_path(part) for part in node.types)
    if isinstance(node, inspect.ListType | inspect.VarTupleType):
        return is_path(node.item_type)
    return False


def choices(node: Node) -> list[str]:
    """Return the words that a field accepts, if it accepts words from a list."""
    found: list[str] = []
    for part in members(node):
        if isinstance(part, inspect.LiteralType):
            found += [value for value in part.values if isinstance(value, str)]
        elif isinstance(part, inspect.EnumType):
            found += [str(member.value) for member in part.cls]
    return found


def allowed(node: Node) -> str:
    """Return what a field accepts: words, range, type.

    Example:
        >>> from typing import Annotated, Literal
        >>> from msgspec import Meta
        >>> field = Annotated[int, Meta(ge=1)] | Literal["auto"] | None
        >>> allowed(inspect.type_info(field))
        "integer >= 1, 'auto' or none"
    """
    words = list(dict.fromkeys(_one(part) for part in members(node)))
    words.sort(key=lambda word: word == "none")
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def hint(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` with the nearest word, or ``""`` if none is near.

    Example:
        >>> hint("stepz", ["steps", "step_size"]), hint("epsilon", ["region", "eps"])
        ("; did you mean 'steps'?", "; did you mean 'eps'?")
    """
    words = sorted(set(known))
    longer = [w for w in words if min(len(w), len(word)) > 2 and word.startswith(w)]
    best = longer[-1:] or near(word, words, count=1)
    return f"; did you mean {best[0]!r}?" if best else ""


def found(value: Any) -> str:
    """Return a value as a message shows it, with its type in TOML's words.

    Example:
        >>> found("x"), found(2.5), found(True), found([1])
        ("'x' (text)", '2.5 (number)', 'true (boolean)', '[1] (list)')
    """
    if isinstance(value, bool):
        return f"{'true' if value else 'false'} (boolean)"
    if value is None:
        return "none"
    names = {str: "text", int: "integer", float: "number", list: "list", tuple: "list"}
    kind = names.get(type(value), "table" if isinstance(value, dict) else type(value).__name__)
    text = repr(value)
    return f"{text if len(text) <= 60 else f'{text[:57]}…'} ({kind})"


def _one(node: Node) -> str:
    if isinstance(node, inspect.LiteralType):
        return ", ".join(repr(value) for value in node.values)
    if isinstance(node, inspect.EnumType):
        return ", ".join(repr(member.value) for member in node.cls)
    if isinstance(node, inspect.IntType):
        return f"integer{_range(node)}"
    if isinstance(node, inspect.FloatType):
        return f"number{_range(node)}"
    if isinstance(node, inspect.StrType):
        pattern = f" matching {node.pattern!r}" if node.pattern else ""
        return f"text{_length(node)}{pattern}"
    if isinstance(node, inspect.BoolType):
        return "true or false"
    if isinstance(node, inspect.NoneType):
        return "none"
    if isinstance(node, inspect.TupleType):
        return f"list of {len(node.item_types)}: {', '.join(map(allowed, node.item_types))}"
    if isinstance(node, inspect.CollectionType):
        return f"list of {allowed(node.item_type)}{_length(node)}"
    if isinstance(node, inspect.DictType):
        return f"table of {allowed(node.value_type)}"
    if isinstance(node, inspect.StructType):
        return f"table with {', '.join(field.encode_name for field in node.fields)}"
    return "any value"


def _range(node: inspect.IntType | inspect.FloatType) -> str:
    low = f">= {node.ge:g}" if node.ge is not None else ""
    low = f"> {node.gt:g}" if node.gt is not None else low
    high = f"<= {node.le:g}" if node.le is not None else ""
    high = f"< {node.lt:g}" if node.lt is not None else high
    step = f"a multiple of {node.multiple_of:g}" if node.multiple_of is not None else ""
    both = " and ".join(part for part in (low, high, step) if part)
    return f" {both}" if both else ""


def _length(node: inspect.StrType | inspect.CollectionType) -> str:
    if node.min_length is not None and node.min_length == node.max_length:
        return f" (exactly {node.min_length})"
    low = f"at least {node.min_length}" if node.min_length is not None else ""
    high = f"at most {node.max_length}" if node.max_length is not None else ""
    both = ", ".join(part for part in (low, high) if part)
    return f" ({both})" if both else ""
