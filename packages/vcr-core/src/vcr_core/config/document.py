"""A run file's shape: short forms, chains, and how a single key is set from outside."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from vcr_core.config.check import unknown_key
from vcr_core.config.schema import RunFile
from vcr_core.config.wording import found
from vcr_core.errors import ConfigError, UsageError
from vcr_core.refs import normal_name, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vcr_core.config.check import KeyPath, Problems
    from vcr_core.config.layered import Layered

TOP_LEVEL: tuple[str, ...] = RunFile.__struct_fields__
SCALARS = ("schema", "seed")
COMPONENTS = ("dataset", "model", "source", "attack", "defense")
OPTIONAL = ("source", "attack", "defense")
LOCAL_TABLES = ("paths", "runtime", "executor")
SWEEP_TABLES = ("matrix", "exclude", "include")

_KEPT_WITH_DATASET = ("rule", "limit")


def normalised(document: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return a run file's tables in one form; problems of shape are added and left out.

    A component may be written as its reference alone. An absent attack or defense becomes
    ``None``; a defense becomes a list of tables.
    """
    result: dict[str, Any] = {}
    for key, value in document.items():
        if key in COMPONENTS:
            try:
                result[key] = component_value(key, value)
            except ConfigError as error:
                problems.add((key,), str(error))
        elif key in SCALARS:
            result[key] = value
        elif key in TOP_LEVEL:
            if isinstance(value, dict):
                result[key] = value
            else:
                problems.add((key,), f"found {found(value)}; allowed: a table, [{key}]")
        elif key in SWEEP_TABLES:
            problems.add((key,), "belongs to a sweep, and this is read as one run; use vcr sweep")
        else:
            problems.add((key,), unknown_key(key, list(TOP_LEVEL), "a run file"))
    return result


def component_value(kind: str, value: Any) -> dict[str, Any] | list[dict[str, Any]] | None:
    """Return a component's value as a table; a defense as a list of tables; absent as ``None``.

    Raises:
        ConfigError: if it is neither a reference nor a table (nor a list of them for a defense).
    """
    if kind == "defense":
        return _chain(value)
    table = _table(kind, value)
    if table is None and kind not in OPTIONAL:
        raise ConfigError(f"found 'none'; every run has a {kind} (vcr list {kind})")
    return table


def _chain(value: Any) -> list[dict[str, Any]] | None:
    items = value if isinstance(value, list | tuple) else _split_chain(value)
    tables = [table for table in (_table("defense", item) for item in items) if table is not None]
    return tables or None


def _split_chain(value: Any) -> list[Any]:
    if isinstance(value, dict) and set(value) == {"name"} and isinstance(value["name"], str):
        value = value["name"]
    if isinstance(value, str) and "+" in value:
        return [part.strip() for part in value.split("+")]
    return [value]


def _table(kind: str, value: Any) -> dict[str, Any] | None:
    if isinstance(value, str | PurePath) or value is None:
        value = {"name": "none" if value is None else str(value).strip()}
    if not isinstance(value, dict):
        also = " (a chain: a list of them)" if kind == "defense" else ""
        raise ConfigError(
            f"found {found(value)}; allowed: a reference such as 'name.variant' or "
            f"a table [{kind}] with name = …{also}"
        )
    is_absent = isinstance(value.get("name"), str) and normal_name(value["name"]) in ("none", "")
    return None if is_absent else dict(value)


def assign(tree: Layered, path: KeyPath, value: Any, layer: str) -> None:
    """Set one key of a run file from an option, an override or a matrix.

    Naming another component, or another executor, drops the parameters of the one that was there;
    a dataset's ``rule`` and ``limit`` stay.

    Raises:
        ConfigError: if the key cannot be set; the message has no prefix.
    """
    head, rest = path[0], path[1:]
    if head not in TOP_LEVEL:
        raise ConfigError(f"{'.'.join(path)}: {unknown_key(head, list(TOP_LEVEL), 'a run file')}")
    if head in COMPONENTS and (not rest or (rest == ("name",) and head != "defense")):
        try:
            new = component_value(head, {"name": value} if rest else value)
        except ConfigError as error:
            raise ConfigError(f"{'.'.join(path)}: {error}") from error
        _replace(tree, head, new, layer)
    elif head == "defense":
        _assign_in_chain(tree, rest, value, layer)
    elif not rest and isinstance(value, dict):
        tree.merge(value, layer, path)
    elif not rest and head not in SCALARS:
        raise ConfigError(f"{head}: found {found(value)}; allowed: a table; set {head}.<key>")
    else:
        if path == ("executor", "name"):
            leave_executor(tree, value, layer)
        tree.put(path, value, layer)


def leave_executor(tree: Layered, name: Any, layer: str) -> None:
    """Forget the executor that a tree names, if ``layer`` is about to name another one.

    What that layer itself has said already stays.
    """
    table = tree.get(("executor",))
    if not isinstance(table, dict) or name is None or table.get("name", name) == name:
        return
    for key in list(table):
        if tree.layer_of(("executor", key)) != layer:
            tree.drop(("executor", key))


def _replace(tree: Layered, head: str, new: Any, layer: str) -> None:
    old = tree.get((head,))
    if isinstance(old, dict) and isinstance(new, dict) and _is_same(old, new):
        tree.merge({key: value for key, value in new.items() if key != "name"}, layer, (head,))
        return
    kept = {}
    if head == "dataset" and isinstance(old, dict):
        kept = {
            key: (old[key], tree.layer_of((head, key))) for key in _KEPT_WITH_DATASET if key in old
        }
    tree.put((head,), new, layer)
    for key, (value, its_layer) in kept.items():
        if key not in new:
            tree.put((head, key), value, its_layer)


def _is_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    if "name" not in new:
        return True
    if not isinstance(old.get("name"), str) or not isinstance(new["name"], str):
        return False
    try:
        before, after = parse(old["name"]), parse(new["name"])
    except UsageError:
        return False
    one_dist = before.distribution == after.distribution
    open_dist = not (before.distribution and after.distribution)
    return (before.name, before.variant) == (after.name, after.variant) and (one_dist or open_dist)


def _assign_in_chain(tree: Layered, rest: KeyPath, value: Any, layer: str) -> None:
    chain = tree.get(("defense",)) or []
    index = _link(chain, rest)
    if index is not None:
        rest = rest[1:]
        if not rest:
            raise ConfigError(f"defense.{index}: name a key of it, as in defense.{index}.name")
    elif len(chain) > 1:
        links = ", ".join(f"defense.{i}.{rest[0]}" for i in range(len(chain)))
        raise ConfigError(
            f"defense.{'.'.join(rest)}: the chain has {len(chain)} defenses; write one of: "
            f"{links}, or the defense's name in place of the number"
        )
    elif rest == ("name",):
        new = _chain({"name": value})
        old = chain[0] if chain else None
        if not (old and new and len(new) == 1 and _is_same(old, new[0])):
            tree.put(("defense",), new, layer)
        return
    elif not chain:
        raise ConfigError(
            f"defense.{'.'.join(rest)}: the run has no defense; name one with --defense or "
            "defense.name"
        )
    place: KeyPath = ("defense", str(index or 0))
    if rest == ("name",):
        tree.put(place, {"name": value}, layer)
    else:
        tree.put((*place, *rest), value, layer)


def _link(chain: list[dict[str, Any]], rest: KeyPath) -> int | None:
    """Return which defense of the chain the first key means, or ``None`` if it is a parameter."""
    if rest[0].isdecimal():
        if int(rest[0]) >= len(chain):
            last = f"0 to {len(chain) - 1}" if chain else "none: the run has no defense"
            raise ConfigError(f"defense.{'.'.join(rest)}: no such defense; allowed: {last}")
        return int(rest[0])
    if len(rest) == 1:
        return None
    names = [_bare_name(link.get("name")) for link in chain]
    wanted = normal_name(rest[0])
    if names.count(wanted) > 1:
        places = " or ".join(f"defense.{i}" for i, name in enumerate(names) if name == wanted)
        raise ConfigError(f"defense.{'.'.join(rest)}: the chain has it twice; write {places}")
    return names.index(wanted) if wanted in names else None


def _bare_name(ref: Any) -> str:
    try:
        return parse(ref).name if isinstance(ref, str) else ""
    except UsageError:
        return ""
