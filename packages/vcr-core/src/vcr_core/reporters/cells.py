"""One number of a table: its value, its interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MISSING = "\u2013"
"""What stands where there is no number. Never 0."""

NO_ATTACK, NO_DEFENSE, NOT_PART = "no attack", "no defense", "not part of the run"
NOT_APPLICABLE = frozenset({NO_ATTACK, NO_DEFENSE, NOT_PART})
"""Reasons that say that a number would mean nothing, so nothing is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value as a report shows it.

    Attributes:
        value: the number, or ``None``; shares are fractions in [0, 1].
        low: lower end of the 95 % interval, same unit as ``value``.
        high: upper end.
        k: numerator, where the value is a count over a count; a sum of shares of draws where
            a random defense was judged more than once.
        n: denominator, or how many values a mean is over.
        nulls: how many videos had no value (means only).
        method: how the interval was computed.
        reason: why ``value`` is ``None``.
        share: whether the value is shown in per cent.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    k: float | None = None
    n: int | None = None
    nulls: int | None = None
    method: str = ""
    reason: str = ""
    share: bool = False

    @property
    def text(self) -> str:
        """The value alone, in per cent for shares, a dash where it is missing.

        Example:
            >>> Cell(value=0.625, share=True).text
            '62.5'
            >>> Cell(reason="no attack").text == MISSING
            True
        """
        return MISSING if self.value is None else self._number(self.value)

    @property
    def is_missing(self) -> bool:
        """Whether there should be a value and is none.

        Example:
            >>> Cell(reason="identical").is_missing, Cell(reason=NO_DEFENSE).is_missing
            (True, False)
        """
        return self.value is None and self.reason not in NOT_APPLICABLE

    @property
    def interval(self) -> str:
        """The 95 % interval in brackets, or nothing.

        Example:
            >>> Cell(value=0.5, low=0.25, high=0.75, share=True).interval
            '[25.0, 75.0]'
        """
        if self.value is None or self.low is None or self.high is None:
            return ""
        return f"[{self._number(self.low)}, {self._number(self.high)}]"

    @property
    def both(self) -> str:
        """Value and interval on one line."""
        return f"{self.text} {self.interval}".rstrip()

    @property
    def fraction(self) -> str:
        """Numerator and denominator, ``10/16``, or nothing."""
        return f"{self.k:g}/{self.n}" if self.k is not None and self.n is not None else ""

    def _number(self, value: float) -> str:
        return f"{100 * value:.1f}" if self.share else format_number(value)


def format_number(value: float) -> str:
    """Return a measurement with about four significant digits and no trailing noise.

    Example:
        >>> [format_number(v) for v in (0, 0.94961, 43.8812, 1234.5, 0.00021)]
        ['0', '0.950', '43.88', '1234', '2.10e-04']
    """
    size = abs(value)
    if value == int(value) and size < 1e9:
        return str(int(value))
    if size >= 1000:
        return f"{value:.0f}"
    if size >= 100:
        return f"{value:.1f}"
    if size >= 10:
        return f"{value:.2f}"
    if size >= 0.001:
        return f"{value:.3f}"
    return f"{value:.2e}"


def one_line(text: str) -> str:
    r"""Return text on one line without control characters, which could steer a terminal.

    Example:
        >>> one_line("a\tb\x1b[31m c")
        'a b [31m c'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def cell_from(entry: Any, *, share: bool = False, absent: str = "not measured") -> Cell:
    """Return a cell from an entry of ``summary.json``.

    Args:
        entry: ``{value, k, n, ci95, method, reason}`` (a mean may say ``mean``, ``used``,
            ``nulls``), a plain number, or ``None``.
        share: whether the value is a fraction shown in per cent.
        absent: the reason to give when there is no entry or no reason in it.
    """
    if isinstance(entry, bool) or entry is None:
        return Cell(reason=absent, share=share)
    if isinstance(entry, int | float):
        return Cell(value=float(entry), share=share)
    if not isinstance(entry, Mapping):
        return Cell(reason=absent, share=share)
    value = _first(entry, "value", "mean")
    low, high = _interval(_first(entry, "ci95", "interval"))
    n = _count(_first(entry, "n", "used"))
    reason = ""
    if value is None:
        reason = _reason(entry) or ("denominator is 0" if n == 0 else absent)
    return Cell(
        value=None if value is None else float(value),
        low=low,
        high=high,
        k=_number(entry.get("k")),
        n=n,
        nulls=_count(_first(entry, "null", "nulls", "missing")),
        method=str(entry.get("method") or ""),
        reason=reason,
        share=share,
    )


def _first(entry: Mapping[str, Any], *keys: str) -> Any:
    return next((entry[key] for key in keys if entry.get(key) is not None), None)


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return round(float(value), 3) if isinstance(value, int | float) else None


def _interval(value: Any) -> tuple[float | None, float | None]:
    if isinstance(value, list | tuple) and len(value) == 2 and None not in value:
        return float(value[0]), float(value[1])
    return None, None


def _reason(entry: Mapping[str, Any]) -> str:
    """Return the reason as text; reasons with counts become ``identical (3)``."""
    reason = _first(entry, "reason", "reasons", "note")
    if isinstance(reason, Mapping):
        return "; ".join(f"{text} ({count})" for text, count in reason.items())
    if isinstance(reason, list | tuple):
        return "; ".join(str(text) for text in reason)
    return str(reason or "")
