"""Fractions of the pixel range as people write them: ``"8/255"``."""

from __future__ import annotations

import math

LEVELS = 255
"""Steps of an 8-bit pixel; the usual unit of a perturbation's size."""

_HALF = 0.5 / LEVELS
_SNAP = 1e-12


def parse_number(text: str) -> float | None:
    """Return the finite number that ``text`` writes, plainly or as a fraction, else ``None``.

    Example:
        >>> parse_number("8/255") == 8 / 255, parse_number("0.5 / 255") == 0.5 / 255
        (True, True)
        >>> parse_number("1/0"), parse_number("auto"), parse_number("1/2/3")
        (None, None, None)
    """
    top, slash, bottom = text.partition("/")
    try:
        value = float(top) / float(bottom) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None


def snap(value: float) -> float:
    """Return ``value``, or the multiple of 0.5/255 that it equals within 1e-12.

    So 0.031372549 with enough digits and ``"8/255"`` are one experiment.

    Example:
        >>> snap(8 / 255 + 1e-13) == 8 / 255
        True
    """
    halves = round(value / _HALF)
    exact = halves / 2 / LEVELS
    return exact if abs(exact - value) <= _SNAP else value


def levels_text(value: float) -> str | float:
    """Return ``"8/255"`` for a multiple of 0.5/255 (within 1e-12), any other number as it is.

    Example:
        >>> levels_text(8 / 255), levels_text(0.5 / 255), levels_text(0.05)
        ('8/255', '0.5/255', 0.05)
    """
    exact = snap(value)
    halves = round(exact * LEVELS * 2)
    if halves / 2 / LEVELS != exact:
        return value
    return f"{halves // 2}/{LEVELS}" if halves % 2 == 0 else f"{halves / 2}/{LEVELS}"


def short_text(value: float) -> str | float:
    """Return a fraction of 255 for a number that is exactly one and long in decimals.

    Example:
        >>> short_text(1 / 255), short_text(0.2), short_text(1.0), short_text(1 / 7) == 1 / 7
        ('1/255', 0.2, 1.0, True)
    """
    if not 0 < abs(value) < 1 or len(repr(value)) < 10:
        return value
    text = levels_text(value)
    return text if isinstance(text, str) and parse_number(text) == value else value
