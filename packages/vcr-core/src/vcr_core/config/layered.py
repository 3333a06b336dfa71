"""Nested tables that remember which layer set each key."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vcr_core.config.check import KeyPath

DEFAULT = "default"


@dataclass(slots=True)
class Layered:
    """Tables merged key by key; lists replace, except that a chain's tables can be reached.

    Attributes:
        data: the merged tables.
        origin: the layer of every leaf, by key path; a chain's items count as keys ``"0"``, …
    """

    data: dict[str, Any] = field(default_factory=dict)
    origin: dict[KeyPath, str] = field(default_factory=dict)

    def copy(self) -> Layered:
        """Return an independent copy."""
        return Layered(copy.deepcopy(self.data), dict(self.origin))

    def merge(self, table: Mapping[str, Any], layer: str, at: KeyPath = ()) -> None:
        """Merge ``table`` into the table at key path ``at``."""
        for key, value in table.items():
            path = (*at, key)
            if isinstance(value, dict) and isinstance(self.get(path, {} if value else None), dict):
                self.merge(value, layer, path)
            else:
                self.put(path, value, layer)

    def merge_layered(self, other: Layered) -> None:
        """Merge another tree, keeping the layers of its keys."""
        for path, value in other.leaves():
            self.put(path, value, other.origin.get(path, DEFAULT))

    def put(self, path: KeyPath, value: Any, layer: str) -> None:
        """Set one key, making the tables above it; what was below it is forgotten."""
        self.drop(path)
        node: Any = self.data
        for depth, part in enumerate(path[:-1], start=1):
            inner = node[int(part)] if isinstance(node, list) else node.get(part)
            if not (isinstance(inner, dict) or _is_link(inner, path[depth])):
                inner = {}
                node[int(part) if isinstance(node, list) else part] = inner
                self.origin.pop(path[:depth], None)
            node = inner
        last = path[-1]
        node[int(last) if isinstance(node, list) else last] = copy.deepcopy(value)
        for leaf, _ in _leaves(value, path):
            self.origin[leaf] = layer

    def drop(self, path: KeyPath) -> None:
        """Forget a key and everything below it; chain items keep their place."""
        for known in [p for p in self.origin if p[: len(path)] == path]:
            del self.origin[known]
        parent = self.get(path[:-1], None)
        if isinstance(parent, dict):
            parent.pop(path[-1], None)

    def get(self, path: KeyPath, default: Any = None) -> Any:
        """Return what is at a key path, or ``default``."""
        node: Any = self.data
        for part in path:
            if isinstance(node, dict) and part in node:
                node = node[part]
            elif isinstance(node, list) and part.isdecimal() and int(part) < len(node):
                node = node[int(part)]
            else:
                return default
        return node

    def leaves(self) -> Iterator[tuple[KeyPath, Any]]:
        """Yield every leaf with its key path."""
        for key, value in self.data.items():
            yield from _leaves(value, (key,))

    def layer_of(self, path: KeyPath) -> str:
        """Return the layer that set a key, or set something below it; else ``"default"``."""
        if path in self.origin:
            return self.origin[path]
        below = [layer for known, layer in self.origin.items() if known[: len(path)] == path]
        return below[-1] if below else DEFAULT

    def nearest_layer(self, path: KeyPath) -> str:
        """Return the layer of a key, or of the closest table around it: where to look for it."""
        for length in range(len(path), 0, -1):
            layer = self.layer_of(path[:length])
            if layer != DEFAULT:
                return layer
        return DEFAULT


def _is_link(value: Any, key: str) -> bool:
    """Return whether ``value`` is a list of tables and ``key`` the place of one of them."""
    is_place = isinstance(value, list) and key.isdecimal() and int(key) < len(value)
    return is_place and all(isinstance(item, dict) for item in value)


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    is_chain = isinstance(value, list) and value and all(isinstance(v, dict) for v in value)
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(part, (*path, key))
    elif is_chain:
        for index, part in enumerate(value):
            yield from _leaves(part, (*path, str(index)))
    else:
        yield path, value
