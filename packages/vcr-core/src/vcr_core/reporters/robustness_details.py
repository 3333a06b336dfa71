"""Natural shifts, corruptions and tampering in detail: means, by type, by severity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vcr_core.reporters.cells import Cell
from vcr_core.reporters.neighbour_tables import neighbour_tables
from vcr_core.reporters.robustness import (
    Chapter,
    Head,
    Line,
    Shown,
    Table,
    absent_notes,
    video_note,
)
from vcr_core.reporters.robustness_parts import Measure, map_table, overall_table
from vcr_core.reporters.side_by_side import setting_text

if TYPE_CHECKING:
    from vcr_core.robustness.collect import Robustness, Section

_CORRUPTION: tuple[Measure, ...] = (
    ("Clean %", "clean", True),
    ("mPC %", "mpc", True),
    ("rPC %", "rpc", True),
    ("Gamma, absolute", "gamma_a", False),
    ("Gamma, relative", "gamma_r", False),
    ("mR %", "mr", True),
    ("Area %", "area", True),
    ("mCE %", "mce", True),
    ("Relative mCE %", "relative_mce", True),
)
_CORRUPTION_LEGEND = (
    "mPC: accuracy, mean over severities, then types. rPC: mPC / clean accuracy. Gamma: 1 - (clean "
    "- corrupted) and corrupted / clean, mean over severities, types, then groups. mR: right "
    "after, of those right before. Area: under accuracy over severity from 0 on."
)
_ERROR_LEGEND = (
    "mCE: errors divided by those of {reference}; relative: what corruption adds to the error, "
    "divided in the same way. Below 100 is better than the reference."
)

_TAMPERING: tuple[Measure, ...] = (
    ("Clean %", "clean", True),
    ("Mean %", "mean", True),
    ("Worst %", "worst", True),
    ("Mean / clean %", "relative", True),
    ("R %", "retention", True),
    ("Same label %", "consistency", True),
    ("Coefficient", "coefficient", False),
)
_TAMPERING_LEGEND = (
    "Mean and worst accuracy over operators. R: right after, of those right before. Coefficient: "
    "1 - standard deviation / mean of the operators' accuracies, 1 if all operators do the same. "
    "What an operator does to a model depends on how much of the segment it samples."
)
_SEEN = "Frames in segment"


def chapters(found: Robustness) -> list[Chapter]:
    """Return the details of every section, then what correlates over models."""
    shown = []
    for section in found.sections:
        make = {"natural": neighbour_tables, "corruption": _corruption, "tampering": _tampering}
        tables = make[section.family](section, found.reference)
        title = section_title(section)
        shown.append(Chapter(title=title, tables=tuple(tables)))
    for dataset, numbers in found.proxies.items():
        shown.append(
            Chapter(
                title=f"What goes along with natural robustness on {dataset}",
                tables=(_proxies(numbers),),
            )
        )
    return shown


def section_title(section: Section) -> str:
    """Return what a section is about."""
    if section.family == "natural":
        name = "Neighbouring clips"
    elif section.family == "corruption":
        name = f"Corruptions, suite {section.suite}" if section.suite else "Corruptions"
    else:
        name = f"Tampering, list {section.suite}" if section.suite else "Tampering"
        name += f", {setting_text(section.setting)}" if section.setting else ""
    extent = f" ({section.extent})" if section.extent else ""
    where = f", {section.variant}" if section.variant else ""
    return f"{name}{extent} on {section.dataset}{where}"


def _corruption(section: Section, reference: str) -> list[Table]:
    legend = [
        _CORRUPTION_LEGEND,
        *([_ERROR_LEGEND.format(reference=reference)] if reference else []),
    ]
    systems = section.systems
    first = next(iter(systems.values()))
    kinds = sorted(first["types"], key=lambda kind: (first["types"][kind]["group"], kind))
    rows = [
        (kind, first["types"][kind]["group"], [s["types"][kind]["pc"] for s in systems.values()])
        for kind in kinds
    ]
    rows += [
        (f"mean of {group}", group, [s["groups"][group]["pc"] for s in systems.values()])
        for group in first["groups"]
    ]
    means = overall_table(section, _CORRUPTION, "Means over types and severities", legend)
    if section.within:
        return [means]
    note = [video_note(section.videos, section.variant)]
    severities = [str(level) for level in section.levels]
    return [
        means,
        map_table(
            "PC %: accuracy by type, mean over severities",
            "Type",
            list(systems),
            rows,
            note,
            "Group",
        ),
        *(
            map_table(
                f"{name}: accuracy % by type and severity",
                "Type",
                ["0", *severities],
                [
                    (
                        kind,
                        numbers["types"][kind]["group"],
                        [
                            numbers["overall"]["clean"],
                            *(
                                (numbers["types"][kind]["severities"].get(s) or {}).get("accuracy")
                                for s in severities
                            ),
                        ],
                    )
                    for kind in kinds
                ],
                note,
                "Group",
            )
            for name, numbers in systems.items()
        ),
    ]


def _tampering(section: Section, _: str) -> list[Table]:
    systems = section.systems
    kinds = sorted({kind for numbers in systems.values() for kind in numbers["types"]})
    legend = [_TAMPERING_LEGEND, *_segment(systems)]
    means = overall_table(section, _TAMPERING, "Means over operators", legend)
    if section.within:
        return [means]
    note = [video_note(section.videos, section.variant)]

    def rows(key: str) -> list[tuple[str, str, list[Any]]]:
        return [
            (kind, _seen(systems, kind), [
                (numbers["types"].get(kind) or {}).get(key) for numbers in systems.values()
            ])
            for kind in kinds
        ]  # fmt: skip

    return [
        means,
        map_table(
            "Accuracy % by operator", "Operator", list(systems), rows("accuracy"), note, _SEEN
        ),
        map_table("R % by operator", "Operator", list(systems), rows("retention"), note, _SEEN),
    ]


def _segment(systems: Mapping[str, Any]) -> list[str]:
    """Say how long segments are in these videos, where records know it."""
    known = [
        found["segment_s"]
        for numbers in systems.values()
        for found in numbers["types"].values()
        if found["segment_s"] is not None
    ]
    if not known:
        return []
    return [f"The segments of these videos are {sum(known) / len(known):.2f} s long on average."]


def _seen(systems: Mapping[str, Any], kind: str) -> str:
    """Return how much of the segment models see, as a range in per cent."""
    known = [
        numbers["types"][kind]["overlap"]
        for numbers in systems.values()
        if kind in numbers["types"] and numbers["types"][kind]["overlap"] is not None
    ]
    if not known:
        return ""
    low, high = round(100 * min(known)), round(100 * max(known))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _proxies(numbers: Mapping[str, Any]) -> Table:
    heads = (Head(title="Pearson"), Head(title="Spearman"), Head(title="Models"))
    lines = []
    # Where no type has a value, one row says why.
    types = numbers["types"].items()
    told = types if any(found["pearson"] is not None for _, found in types) else ()
    for name, found in [
        ("clean accuracy", numbers["accuracy"]),
        *((f"R under {kind}", found) for kind, found in told),
    ]:
        reason = str(found.get("reason") or "")
        cells = [Cell(value=found[key], reason=reason) for key in ("pearson", "spearman")]
        cells.append(Cell(value=float(found["models"])))
        lines.append(Line(name=name, cells=tuple(Shown(cell=cell) for cell in cells)))
    return Table(
        title="Correlation with NR over models",
        rows="Number",
        heads=heads,
        lines=tuple(lines),
        notes=(
            "Over models without a defense. Few models, chosen by hand: a hint, no test.",
            *absent_notes(lines, heads),
        ),
        is_detail=True,
    )
