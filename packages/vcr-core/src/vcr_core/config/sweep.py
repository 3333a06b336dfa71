"""Sweeps: a run file with a ``[matrix]``, expanded into runs before anything is loaded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from vcr_core.config.check import KeyPath, Problems, unknown_key
from vcr_core.config.document import COMPONENTS, SWEEP_TABLES, TOP_LEVEL, component_value
from vcr_core.config.fraction_text import parse_number
from vcr_core.config.resolve import (
    Request,
    Resolved,
    Setting,
    add_outside_settings,
    read_local,
    resolve_request,
)
from vcr_core.config.sources import Document, Source, read_source
from vcr_core.config.sweep_transfer import SOURCE, Pairing, pairings
from vcr_core.config.toml_text import parse_key_path
from vcr_core.config.wording import found
from vcr_core.errors import ConfigError, UsageError, VcrError
from vcr_core.preset_files import find_preset
from vcr_core.refs import parse

Point: TypeAlias = "dict[KeyPath, Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One point of a sweep.

    Attributes:
        values: what the matrix sets, as text by key path.
        resolved: the run, or ``None`` if it is impossible.
        problem: why it is impossible, or ``None``.
        notes: what is worth saying, such as points that are the same run as this one.
    """

    values: dict[str, str]
    resolved: Resolved | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()


def expand(
    source: Source,
    overrides: Sequence[str] = (),
    shortcuts: Mapping[str, Any] | None = None,
    *,
    cwd: Path | None = None,
    require_available: bool = True,
    transfer: bool = False,
) -> list[Combination]:
    """Return every combination of a sweep file, in the order of the file; the last axis is fastest.

    A key that the command line sets is no axis any more. Points that are the same run, such as
    radii without an attack, are one combination with a note.

    Args:
        source: a sweep file, the name of a sweep preset, or a dict of tables.
        overrides: ``key=value`` texts of ``--set``; those of an attack or a defense are left out
            where a point has none.
        shortcuts: as for :func:`~vcr_core.config.resolve.resolve_run`.
        cwd: where local files and relative paths are looked for.
        require_available: whether a missing requirement makes a combination impossible.
        transfer: whether every attack on a model is shown to all other models of the sweep, too.

    Raises:
        ConfigError: if the sweep itself is wrong: its file, its matrix, an override.
    """
    where = cwd or Path.cwd()
    document = read_source(source, "sweep", where)
    tables = {key: value for key, value in document.tables.items() if key not in SWEEP_TABLES}
    base = Request(Document(document.label, tables))
    add_outside_settings(base, overrides, shortcuts or {})
    read_local(base, where)
    points = _points(document, base)
    if base.problems:
        raise ConfigError(base.problems)
    label = f"{document.label} [matrix]".strip()
    combinations = [_combination(point, base, label, require_available) for point in points]
    if transfer:
        combinations += [
            _shown_to_another(pairing, base, label, require_available)
            for pairing in pairings(points, combinations)
        ]
    return _merged(combinations)


def is_sweep(source: Source, cwd: Path | None = None) -> bool:
    """Return whether ``source`` names a sweep: a document with a table that only sweeps have.

    Raises:
        ConfigError: if it names neither a file nor a preset, or is not TOML.
    """
    where = cwd or Path.cwd()
    try:
        tables = read_source(source, "run", where).tables
    except ConfigError:
        if not isinstance(source, str) or find_preset("sweep", source) is None:
            raise
        return True
    return any(name in tables for name in SWEEP_TABLES)


def _points(document: Document, base: Request) -> list[Point]:
    problems = Problems(layer_of=lambda _path: document.label)
    axes = dict(_axes(document.tables.get("matrix", {}), ("matrix",), problems))
    exclude = list(_rules(document.tables.get("exclude", []), "exclude", problems))
    include = list(_rules(document.tables.get("include", []), "include", problems))
    if not axes and not include and not problems.found:
        problems.add(("matrix",), "missing; a sweep needs [matrix] with lists of values by key")
    base.problems += problems.found
    for setting in base.settings:
        for key in [key for key in axes if _covers(setting.path, key)]:
            del axes[key]
    product = itertools.product(*axes.values()) if axes else ()
    points: list[Point] = [dict(zip(axes, values, strict=True)) for values in product]
    if not axes and document.tables.get("matrix") and not problems.found:
        points = [{}]  # every axis was fixed from outside
    kept = [point for point in points if not any(_matches(rule, point) for rule in exclude)]
    return kept + [rule for rule in include if rule not in kept]


def _axes(table: Any, path: KeyPath, problems: Problems) -> Iterator[tuple[KeyPath, list[Any]]]:
    if not isinstance(table, dict):
        problems.add(path, f"found {found(table)}; allowed: a table of lists by key")
        return
    for key, values in table.items():
        here = (*path, key)
        if isinstance(values, dict):
            yield from _axes(values, here, problems)
        elif not isinstance(values, list | tuple):
            problems.add(here, f"found {found(values)}; allowed: a list of values")
        elif not values:
            problems.add(here, "found an empty list; a sweep over nothing has no runs")
        else:
            target = _key(here[1:], here, problems)
            if target is not None:
                yield target, list(values)


def _rules(rules: Any, name: str, problems: Problems) -> Iterator[Point]:
    tables = rules if isinstance(rules, list) else [rules]
    for index, rule in enumerate(tables):
        path = (name, str(index))
        if not isinstance(rule, dict) or not rule:
            problems.add(path, f"found {found(rule)}; allowed: a table of values, [[{name}]]")
            continue
        yield dict(_flat(rule, path, problems))


def _flat(rule: dict[str, Any], path: KeyPath, problems: Problems) -> Iterator[tuple[KeyPath, Any]]:
    for key, value in rule.items():
        here = (*path, key)
        is_component = len(here) == 3 and key in COMPONENTS
        if isinstance(value, dict) and not is_component:
            yield from _flat(value, here, problems)
        else:
            target = _key(here[2:], here, problems)
            if target is not None:
                yield target, value


def _key(parts: KeyPath, shown: KeyPath, problems: Problems) -> KeyPath | None:
    """Return a key path in full: an axis may be written ``"threat.eps"`` or as nested tables."""
    try:
        target = tuple(
            itertools.chain.from_iterable(parse_key_path(part, ".".join(shown)) for part in parts)
        )
    except ConfigError as error:
        problems.found += error.problems
        return None
    if target[0] not in TOP_LEVEL:
        problems.add(shown, unknown_key(target[0], list(TOP_LEVEL), "a run file"))
        return None
    return target[:1] if target[1:] == ("name",) and target[0] in COMPONENTS else target


def _covers(setting: KeyPath, axis: KeyPath) -> bool:
    if setting[1:] == ("name",) and setting[0] in COMPONENTS:
        setting = setting[:1]
    return axis[: len(setting)] == setting


def _matches(rule: Point, point: Point) -> bool:
    return all(
        key in point and _comparable(key, value) == _comparable(key, point[key])
        for key, value in rule.items()
    )


def _comparable(key: KeyPath, value: Any) -> Any:
    if key[0] in COMPONENTS and len(key) == 1:
        try:
            table = component_value(key[0], value)
        except ConfigError:
            return value
        tables = table if isinstance(table, list) else [table]
        return [{**t, "name": _normal_ref(t.get("name"))} if t else None for t in tables]
    if isinstance(value, str):
        number = parse_number(value)
        return value if number is None else number
    return value


def _normal_ref(ref: Any) -> Any:
    try:
        return str(parse(ref)) if isinstance(ref, str) else ref
    except UsageError:
        return ref


def _combination(point: Point, base: Request, label: str, require_available: bool) -> Combination:
    # Components first: naming one drops the parameters of another.
    order = sorted(point, key=lambda key: len(key) > 1)
    matrix = [Setting(key, point[key], label) for key in order]
    absent = {
        key[0]
        for key in (("attack",), ("defense",))
        if key in point and _comparable(key, point[key]) == [None]
    }
    outside = [s for s in base.settings if not (s.path[0] in absent and len(s.path) > 1)]
    matrix = [s for s in matrix if not (s.path[0] in absent and len(s.path) > 1)]
    if "attack" in absent:
        # Where nothing is attacked there is nothing to take over from another model.
        matrix = [*(s for s in matrix if s.path[:1] != SOURCE), Setting(SOURCE, None, label)]
        outside = [s for s in outside if s.path[:1] != SOURCE]
    request = replace(base, settings=[*matrix, *outside])
    values = {".".join(key): _text(value) for key, value in point.items()}
    try:
        resolved = resolve_request(request, require_available=require_available)
    except VcrError as error:
        return Combination(values=values, problem=str(error))
    return Combination(values=values, resolved=resolved, notes=resolved.notes)


def _shown_to_another(
    pairing: Pairing, base: Request, label: str, require_available: bool
) -> Combination:
    point = {**pairing.point, SOURCE: pairing.source}
    found = _combination(point, base, label, require_available)
    return replace(found, values={**found.values, ".".join(SOURCE): pairing.shown})


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and "name" in value:
        rest = ", ".join(f"{key}={_text(part)}" for key, part in value.items() if key != "name")
        return f"{value['name']}({rest})" if rest else str(value["name"])
    if isinstance(value, list | tuple) and all(isinstance(v, dict | str) for v in value):
        return "+".join(_text(part) for part in value) or "none"
    return json.dumps(value, default=str)


def _merged(combinations: list[Combination]) -> list[Combination]:
    """Return the combinations with every identity once; the first one speaks for the others."""
    firsts: dict[str, int] = {}
    twins: dict[int, list[Combination]] = {}
    kept: list[Combination] = []
    for combination in combinations:
        if combination.resolved is not None:
            identity = json.dumps(combination.resolved.identity, sort_keys=True)
            if identity in firsts:
                twins.setdefault(firsts[identity], []).append(combination)
                continue
            firsts[identity] = len(kept)
        kept.append(combination)
    for index, others in twins.items():
        first = kept[index]
        differing = "; ".join(_difference(first, other) for other in others)
        note = f"the same run as with {differing}"
        kept[index] = replace(first, notes=(*first.notes, note))
    return kept


def _difference(first: Combination, other: Combination) -> str:
    keys = dict.fromkeys([*first.values, *other.values])
    changed = [
        f"{key} = {other.values.get(key, 'unset')}"
        for key in keys
        if first.values.get(key) != other.values.get(key)
    ]
    return ", ".join(changed) or "the same values again"
