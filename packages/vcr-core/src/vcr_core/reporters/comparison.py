"""Comparisons of runs for people: tables, notes and gates, in the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.comparing import Change, Comparison
from vcr_core.gates import GateOn, Verdict
from vcr_core.power import ALPHA, POWER
from vcr_core.reporters.cells import MISSING, format_number, one_line
from vcr_core.reporters.markdown import escape
from vcr_core.stats import RESAMPLES

if TYPE_CHECKING:
    from vcr_core.run_pairs import Matching

MAX_DIFFERENCES = 12


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything that ``vcr compare`` found.

    Attributes:
        matching: which runs were paired.
        comparisons: one a pair.
        overall: the mean over several pairs.
        tests: how many tests were made.
        verdicts: of the gates.
        gate_on: what gates were judged on.
        detect: the difference that necessary videos were asked for, as a fraction.
        seed: of the bootstrap.
    """

    matching: Matching
    comparisons: Sequence[Comparison]
    overall: Comparison | None
    tests: int
    verdicts: Sequence[Verdict]
    gate_on: GateOn
    detect: float | None
    seed: int

    @property
    def passed(self) -> bool:
        """Whether every gate holds; true without gates."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def shown(self) -> list[Comparison]:
        """The pairs, then their mean."""
        return [*self.comparisons, *([self.overall] if self.overall else [])]


@dataclass(frozen=True, slots=True)
class Section:
    """One table: all quantities of one pair, or one quantity of all pairs."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sections(found: Compared) -> list[Section]:
    """Return the tables."""
    columns = _columns(found)
    if len(found.comparisons) == 1:
        (one,) = found.comparisons
        rows = tuple((_quantity(change), *_cells(change, found)) for change in one.changes)
        return [Section("", ("Quantity", *columns), rows)]
    return [
        Section(
            _quantity(change),
            ("Pair", *columns),
            tuple((one.label, *_cells(one.changes[i], found)) for one in found.shown),
        )
        for i, change in enumerate(found.comparisons[0].changes)
    ]


def head_lines(found: Compared) -> list[str]:
    """Return what is compared with what."""
    if len(found.comparisons) == 1:
        (one,) = found.comparisons
        lines = [f"A: {one.a}", f"B: {one.b}", f"Videos: {len(one.videos.common)}"]
        lines += [f"Differs: {text}" for text in _differences(one)]
        return lines
    varied = ", ".join(found.matching.varied) or "nothing: every pair is one experiment run twice"
    videos = {video for one in found.comparisons for video in one.videos.common}
    return [
        f"Pairs: {len(found.comparisons)}, differing in {varied}",
        f"Videos: {len(videos)}",
        *_shared_differences(found.comparisons),
    ]


def note_lines(found: Compared) -> list[str]:
    """Return what a reader has to know, without repeating what many pairs share."""
    lines = [*legend_lines(found)]
    noted: dict[str, list[str]] = {}
    for one in found.comparisons:
        for text in one.notes:
            noted.setdefault(text, []).append(one.label)
    several = len(found.comparisons) > 1
    for text, labels in noted.items():
        where = "every pair" if len(labels) == len(found.comparisons) else "; ".join(labels)
        lines.append(f"Note ({where}): {text}." if several else f"Note: {text}.")
    reasons: dict[str, list[str]] = {}
    for one in found.shown:
        for change in one.changes:
            text = change.reason or change.no_test
            if text and not (change.kind != "rate" and not change.reason):
                reasons.setdefault(text, []).append(change.name)
    lines += [
        f"{MISSING} ({', '.join(dict.fromkeys(names))}): {text}." for text, names in reasons.items()
    ]
    for side, runs in (("A", found.matching.only_a), ("B", found.matching.only_b)):
        if runs:
            names = ", ".join(run.name for run in runs)
            lines.append(f"Not paired, only in {side}: {names}.")
    return lines


def legend_lines(found: Compared) -> list[str]:
    """Return what the numbers are."""
    lines = [
        f"B - A: rates in points; brackets hold 95 % intervals, the videos of both runs resampled "
        f"together ({RESAMPLES} times, seed {found.seed})."
    ]
    if found.tests:
        lines.append(
            "A only, B only: videos for which the rate holds in that run alone. p: exact McNemar "
            f"test of these counts; {_count(found.tests, 'test')} here, and p (Holm) allows for "
            "their number."
        )
        if any(c.test and c.test.n < len(c.a.terms) for one in found.shown for c in one.changes):
            lines.append(
                "A rate over some of the videos, as attack success over those that were right, is "
                "tested on the n videos that count in both runs; its A, B and B - A are over each "
                "run's own."
            )
        lines.append(
            f"Videos needed: to find the observed difference with probability {POWER:g} at level "
            f"{ALPHA:g}, if it is the true one."
        )
    return lines


def verdict_lines(found: Compared) -> list[str]:
    """Return a line a gate and pair."""
    several = len(found.comparisons) > 1
    lines = []
    for verdict in found.verdicts:
        outcome = "passed" if verdict.passed else "FAILED"
        where = f" [{verdict.pair}]" if several else ""
        numbers = _verdict_numbers(verdict)
        told = "; ".join(text for text in (numbers, verdict.reason) if text)
        lines.append(f"gate {verdict.gate.text}{where}: {outcome} ({told})")
    return lines


def to_markdown(found: Compared) -> str:
    """Return the comparison in Markdown."""
    lines = ["# Comparison", ""]
    lines += [f"- {escape(line)}" for line in head_lines(found)]
    for section in sections(found):
        lines += ["", *([f"## {escape(section.title)}", ""] if section.title else [])]
        lines.append("| " + " | ".join(map(escape, section.columns)) + " |")
        lines.append("| --- |" + " ---: |" * (len(section.columns) - 1))
        lines += [f"| {escape(label)} | {' | '.join(cells)} |" for label, *cells in section.rows]
    for line in note_lines(found):
        lines += ["", escape(line)]
    if found.verdicts:
        lines += ["", "## Gates", ""]
        lines += [f"- {escape(line)}" for line in verdict_lines(found)]
    return "\n".join(lines) + "\n"


def _columns(found: Compared) -> tuple[str, ...]:
    columns = ["A", "B", "B - A", "n"]
    if found.tests:
        columns += ["A only", "B only", "p", "p (Holm)", "Videos needed"]
        if found.detect is not None:
            columns.append(f"for {100 * abs(found.detect):g} pp")
    return tuple(columns)


def _cells(change: Change, found: Compared) -> tuple[str, ...]:
    rate = change.kind == "rate"
    if change.reason:
        return (MISSING,) * len(_columns(found))
    cells = [_value(change.value_a, rate), _value(change.value_b, rate), _difference(change)]
    cells.append(str(change.n))
    if found.tests:
        test = change.test
        cells += (
            [str(test.only_a), str(test.only_b), _p(test.p), _p(test.p_adjusted)]
            if test
            else [MISSING] * 4
        )
        cells.append(_needed(change.needed))
        if found.detect is not None:
            cells.append(_needed(change.needed_given))
    return tuple(cells)


def _quantity(change: Change) -> str:
    return f"{change.name} (%)" if change.kind == "rate" else change.name


def _value(value: float | None, rate: bool) -> str:
    if value is None:
        return MISSING
    return f"{100 * value:.1f}" if rate else format_number(value)


def _difference(change: Change) -> str:
    found = change.difference
    if found.value is None:
        return MISSING
    rate = change.kind == "rate"
    text = _signed(found.value, rate)
    if found.low is None or found.high is None:
        return text
    return f"{text} [{_signed(found.low, rate)}, {_signed(found.high, rate)}]"


def _signed(value: float, rate: bool) -> str:
    if rate:
        text = f"{100 * value:+.1f}"
        return "0.0" if text in ("+0.0", "-0.0") else text
    return ("+" if value > 0 else "") + format_number(value)


def _p(value: float | None) -> str:
    if value is None:
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _needed(count: int | None) -> str:
    return MISSING if count is None else str(count)


def _verdict_numbers(verdict: Verdict) -> str:
    if verdict.value is None:
        return ""
    unit = {"": "", "pp": " pp", "%": " %", "x": "x"}[verdict.gate.unit]
    text = f"{verdict.value:.4g}{unit}"
    if verdict.low is None or verdict.high is None:
        return text
    return f"{text} [{verdict.low:.4g}, {verdict.high:.4g}]"


def _differences(one: Comparison) -> list[str]:
    texts = [one_line(difference.text) for difference in one.differs]
    more = len(texts) - MAX_DIFFERENCES
    return texts if more <= 0 else [*texts[:MAX_DIFFERENCES], f"and {more} more (see --json)"]


def _shared_differences(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the differences that all pairs have."""
    common = set.intersection(*(set(one.differs) for one in comparisons))
    ordered = [d for d in comparisons[0].differs if d in common]
    return [f"Differs in every pair: {one_line(d.text)}" for d in ordered[:MAX_DIFFERENCES]]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
