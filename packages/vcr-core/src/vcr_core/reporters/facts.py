"""Names and values as text, for lists of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A name and a value, as text."""

    name: str
    value: str


def facts_of(table: Mapping[str, Any], prefix: str = "") -> tuple[Fact, ...]:
    """Return nested tables as ``a.b`` names; values that are missing are left out."""
    facts: list[Fact] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            facts += facts_of(value, f"{name}.")
        elif value is not None and value != []:
            facts.append(Fact(name=name, value=one_line_of(value)))
    return tuple(facts)


def one_line_of(value: Any) -> str:
    """Return a value as text: yes and no for booleans, six digits of a float, lists by commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        pairs = (f"{key} = {one_line_of(item)}" for key, item in value.items() if item is not None)
        return ", ".join(pairs)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(one_line_of(item) for item in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
