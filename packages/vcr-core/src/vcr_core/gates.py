"""Conditions on a comparison that a build can fail on: ``robust_accuracy>=-2pp``.

A gate that cannot be decided has failed: a missing number is no good news.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vcr_core.errors import UsageError

if TYPE_CHECKING:
    from vcr_core.comparing import Comparison
    from vcr_core.quantities import Kind

GateOn = Literal["value", "interval"]
GATE_ON: tuple[GateOn, ...] = ("value", "interval")
OVERALL = "overall"
SLACK = 1e-9
"""Rounding of a difference must not decide a gate that is met exactly."""

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_SLACK_SIGN = {">=": -1, "<=": 1, ">": 1, "<": -1}
_FORM = re.compile(
    r"\s*(?:(?P<scope>overall):)?(?P<name>[A-Za-z][\w.-]*?)\s*(?P<op>>=|<=|>|<)\s*"
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>pp|%|x)?\s*"
)
GRAMMAR = (
    "[overall:]NAME OP NUMBER[UNIT] with OP one of >= <= > < and UNIT pp (points, B minus A), % "
    "(change in per cent of A), x (B divided by A), or none (B minus A in the metric's own unit), "
    "as in robust_accuracy>=-2pp, forwards<=1.1x, psnr>=-0.5"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on one quantity.

    Attributes:
        text: as it was written.
        name: quantity.
        op: ``>= <= > <``.
        number: the limit, in ``unit``.
        unit: ``pp``, ``%``, ``x`` or ``""``.
        overall: whether it is about the mean over all pairs instead of about each of them.
    """

    text: str
    name: str
    op: str
    number: float
    unit: str
    overall: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a gate for one pair.

    Attributes:
        gate: the gate.
        pair: label of the pair.
        passed: whether it holds; never for a number that is missing.
        value: the observed change in the gate's unit.
        low: lower end of its interval.
        high: upper end.
        reason: why it could not be decided.
    """

    gate: Gate
    pair: str
    passed: bool
    value: float | None
    low: float | None
    high: float | None
    reason: str = ""


def parse_gate(text: str) -> Gate:
    """Return the gate that ``text`` writes.

    Example:
        >>> gate = parse_gate("robust_accuracy >= -2pp")
        >>> gate.name, gate.op, gate.number, gate.unit
        ('robust_accuracy', '>=', -2.0, 'pp')

    Raises:
        UsageError: if it is no gate; the message has the grammar.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no gate; it has to be {GRAMMAR}")
    unit = found["unit"] or ""
    number = float(found["number"])
    if unit == "x" and number < 0:
        raise UsageError(f"{text!r} is no gate: a ratio cannot be negative")
    return Gate(text.strip(), found["name"], found["op"], number, unit, bool(found["scope"]))


def parse_points(text: str) -> float:
    """Return a difference of rates written in points, ``5pp``, as a fraction.

    Raises:
        UsageError: for anything else, and for differences of 0 or of more than 100 points.
    """
    found = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?)\s*pp\s*", text)
    value = float(found[1]) / 100 if found else 0.0
    if not 0 < abs(value) <= 1:
        raise UsageError(f"{text!r} is no difference in points; write it like 5pp")
    return value


def check_unit(gate: Gate, kind: Kind) -> None:
    """Raise :class:`UsageError` for a unit that the quantity does not have."""
    if kind == "rate" and not gate.unit:
        raise UsageError(
            f"{gate.text!r}: {gate.name} is a rate; say whether {gate.number:g} is in points (pp), "
            "per cent of A (%) or a ratio (x)"
        )
    if kind != "rate" and gate.unit == "pp":
        raise UsageError(
            f"{gate.text!r}: {gate.name} is no rate, so there are no points; leave the unit out "
            "for its own one, or write % or x"
        )


def judge(
    gate: Gate, comparison: Comparison, *, on: GateOn = "value", allow_missing: bool = False
) -> Verdict:
    """Return whether a gate holds for a comparison.

    Args:
        gate: the gate.
        comparison: one pair, or the mean over all of them.
        on: ``value``: the observed change has to meet the limit. ``interval``: all of its 95 %
            interval has to, so that chance alone hardly ever passes it.
        allow_missing: whether a gate may be decided though videos of A have no result in B.

    Returns:
        The verdict; it has failed, with a reason, where anything that is needed is missing.
    """
    change = comparison.change(gate.name)
    if change is None:
        return Verdict(gate, comparison.label, False, None, None, None, "not compared")
    if not change.reason and gate.unit in ("%", "x") and (change.value_a or 0.0) <= 0:
        reason = "A is not above 0, so there is nothing to relate B to"
        return Verdict(gate, comparison.label, False, None, None, None, reason)
    estimate = change.ratio() if gate.unit in ("%", "x") else change.difference
    value, low, high = (_in_unit(n, gate) for n in (estimate.value, estimate.low, estimate.high))
    lost = len(comparison.videos.lost)
    tested = value if on == "value" else low if gate.op in (">=", ">") else high
    reason = ""
    if value is None:
        reason = change.reason or "there is no value"
    elif lost and not allow_missing:
        reason = f"{lost} videos of A have no result in one of the runs"
    elif tested is None:
        reason = "there is no interval"
    passed = not reason and tested is not None and _holds(tested, gate)
    return Verdict(gate, comparison.label, passed, value, low, high, reason)


def judge_all(
    gates: Sequence[Gate],
    comparisons: Sequence[Comparison],
    overall: Comparison | None,
    *,
    on: GateOn = "value",
    allow_missing: bool = False,
) -> list[Verdict]:
    """Return a verdict a gate and pair; gates on the mean have one alone.

    A gate on the mean of a single pair is a gate on that pair.
    """
    mean = overall or comparisons[0]
    return [
        judge(gate, one, on=on, allow_missing=allow_missing)
        for gate in gates
        for one in ([mean] if gate.overall else comparisons)
    ]


def _in_unit(number: float | None, gate: Gate) -> float | None:
    if number is None:
        return None
    if gate.unit == "%":
        return 100 * (number - 1)
    return 100 * number if gate.unit == "pp" else number


def _holds(tested: float, gate: Gate) -> bool:
    """Return whether the limit is met; a hair's breadth is as good as the limit itself."""
    slack = SLACK * max(1.0, abs(gate.number))
    return _OPERATORS[gate.op](tested, gate.number + _SLACK_SIGN[gate.op] * slack)
