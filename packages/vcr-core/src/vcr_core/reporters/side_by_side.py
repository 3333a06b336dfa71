"""One row a model: clean, attacked, a moment later, corrupted, tampered with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core.manifest import is_adaptive, table
from vcr_core.reporters.cells import Cell, cell_from
from vcr_core.reporters.robustness import Head, Line, Shown, Table, absent_notes
from vcr_core.reporters.rows import NONE, Row
from vcr_core.robustness.systems import System
from vcr_core.transformation import is_transformation

if TYPE_CHECKING:
    from vcr_core.robustness.collect import Robustness, Section
    from vcr_core.summary import RunView

LEGEND = (
    "All numbers are per cent with 95 % intervals, of the model behind its defense where it has "
    "one. They answer different questions on different grounds: compare models within a column, "
    "not columns with each other."
)
LEGEND_WORST = (
    "Attacked: robust accuracy under the attack that leaves least, of those that were run under "
    "the threat; the attack and how many there were stand beside it."
)


def side_by_side(ordered: Sequence[tuple[Row, RunView]], found: Robustness) -> list[Table]:
    """Return a table a dataset in which natural, corrupted or tampered videos were evaluated."""
    datasets = dict.fromkeys(section.dataset for section in found.sections)
    return [
        _table(dataset, [pair for pair in ordered if pair[0].dataset == dataset], found)
        for dataset in datasets
    ]


def _table(dataset: str, ordered: Sequence[tuple[Row, RunView]], found: Robustness) -> Table:
    sections = [section for section in found.sections if section.dataset == dataset]
    usual = _on_usual_videos(ordered)
    names = {name: system for section in sections for name, system in section.names.items()} | {
        _name(row): (row.model, "" if row.defense == NONE else row.defense) for row, _ in usual
    }
    order = sorted(names, key=lambda name: names[name])
    columns = [_clean(usual, sections), *_attacked(usual)]
    for section in sections:
        columns += [] if section.within else _of_section(section)
    lines = tuple(Line(name=name, cells=tuple(get(name) for _, get in columns)) for name in order)
    heads = tuple(head for head, _ in columns)
    notes = [LEGEND]
    if any(head.group == "Attacked" for head in heads):
        notes.append(LEGEND_WORST)
        notes += _unequal(usual)
    notes += _basis(sections)
    if len(usual) < sum(not is_transformation(run.manifest) for _, run in ordered):
        notes.append(
            "Runs on other videos of the dataset are not in the columns Clean and Attacked."
        )
    return Table(
        title=f"Side by side on {dataset}",
        rows="Model",
        heads=heads,
        lines=lines,
        notes=(*notes, *absent_notes(lines, heads)),
    )


Column = tuple[Head, Callable[[str], Shown]]


def _clean(usual: Sequence[tuple[Row, RunView]], sections: Sequence[Section]) -> Column:
    cells: dict[str, Cell] = {}
    for row, _ in sorted(usual, key=lambda pair: pair[0].attack != NONE):
        cells.setdefault(_name(row), row.system.clean)
    for section in sections:
        if section.family != "natural":
            for name, numbers in section.systems.items():
                cells.setdefault(name, cell_from(numbers["overall"]["clean"], share=True))
    absent = Cell(reason="no run without an attack", share=True)
    return Head(title="Clean %"), lambda name: Shown(cell=cells.get(name, absent))


def _attacked(usual: Sequence[tuple[Row, RunView]]) -> list[Column]:
    """Return a column a threat: the lowest accuracy that any attack under it leaves."""
    threats: dict[tuple[str, float, str], dict[str, list[tuple[Row, RunView]]]] = {}
    for row, run in usual:
        if row.attack != NONE and row.system.robust.value is not None:
            goal = ", targeted" if row.targeted else ""
            threat = (row.norm, row.eps or 0.0, row.threat + goal)
            threats.setdefault(threat, {}).setdefault(_name(row), []).append((row, run))
    return [
        (Head(title=f"{text} %", group="Attacked"), _least(systems))
        for (_, _, text), systems in sorted(threats.items())
    ]


def _least(systems: Mapping[str, Sequence[tuple[Row, RunView]]]) -> Callable[[str], Shown]:
    def shown(name: str) -> Shown:
        pairs = systems.get(name)
        if not pairs:
            return Shown(cell=Cell(reason="not attacked under this threat", share=True))
        row, run = min(pairs, key=lambda pair: (pair[0].system.robust.value or 0.0, pair[0].attack))
        known = ", adaptive" if is_adaptive(run.manifest) else ""
        return Shown(cell=row.system.robust, word=f"{row.attack}{known}, of {len(pairs)}")

    return shown


def _of_section(section: Section) -> list[Column]:
    if section.family == "natural":
        reach = max(map(abs, section.levels), default=0)
        chosen = [
            ("Anchor %", "anchor_accuracy"),
            ("NR %", "retention"),
            (f"±{reach} worst %", "worst_accuracy"),
        ]
        group = "Natural"
    elif section.family == "corruption":
        chosen = [("mPC %", "mpc"), ("rPC %", "rpc")]
        group = section.suite or "Corruptions"
    else:
        chosen = [("Mean %", "mean"), ("Worst %", "worst")]
        group = f"Tampering, {section.suite}" if section.suite else "Tampering"
        if section.setting:
            group += f", {setting_text(section.setting)}"
    return [
        (Head(title=title, group=group), _number(section.systems, key)) for title, key in chosen
    ]


def _number(systems: Mapping[str, Mapping[str, Any]], key: str) -> Callable[[str], Shown]:
    def shown(name: str) -> Shown:
        numbers = systems.get(name)
        if numbers is None:
            return Shown(cell=Cell(reason="not evaluated", share=True))
        entry = numbers["overall"][key]
        return Shown(cell=cell_from(entry, share=True), word=str(entry.get("type") or ""))

    return shown


def setting_text(setting: Mapping[str, Any]) -> str:
    """Return where and how long a segment is, in words."""
    length = setting.get("duration_frames")
    words = f"{length} frames" if length is not None else f"{setting.get('duration_s', '?'):g} s"
    return f"{words} at {setting.get('location', '?')}"


def _on_usual_videos(ordered: Sequence[tuple[Row, RunView]]) -> list[tuple[Row, RunView]]:
    """Return clean and attacked runs on the videos that most of them use.

    Attacks that were computed on another model are left out.
    """
    pairs = [
        (row, run) for row, run in ordered if not is_transformation(run.manifest) and not row.source
    ]
    keys = [json.dumps(dict(table(run.manifest, "dataset")), sort_keys=True) for _, run in pairs]
    if not keys:
        return []
    usual = Counter(keys).most_common(1)[0][0]
    return [pair for pair, key in zip(pairs, keys, strict=True) if key == usual]


def _unequal(usual: Sequence[tuple[Row, RunView]]) -> list[str]:
    """Say where models met different attacks under one threat."""
    met: dict[str, dict[str, set[str]]] = {}
    for row, _ in usual:
        if row.attack != NONE:
            met.setdefault(row.threat, {}).setdefault(_name(row), set()).add(row.attack_text)
    return [
        f"{threat}: the models did not all meet the same attacks, so their numbers differ in that, "
        "too."
        for threat, systems in sorted(met.items())
        if len({frozenset(attacks) for attacks in systems.values()}) > 1
    ]


def _basis(sections: Sequence[Section]) -> list[str]:
    found = []
    for section in sections:
        if section.within:
            continue
        name = {
            "natural": "Natural: neighbouring clips",
            "corruption": section.suite or "Corruptions",
            "tampering": f"Tampering, {section.suite}" if section.suite else "Tampering",
        }[section.family]
        words = [name]
        if section.extent:
            words.append(f"only {section.extent}" if section.suite else section.extent)
        if section.variant:
            words.append(section.variant)
        words.append(f"{section.videos} videos")
        found.append(", ".join(words) + ".")
    return list(dict.fromkeys(found))


def _name(row: Row) -> str:
    return System(row.model, "" if row.defense == NONE else row.defense).name
