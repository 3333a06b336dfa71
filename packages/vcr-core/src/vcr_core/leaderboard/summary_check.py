"""Checks that the numbers of a run are those of its records."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vcr_core.leaderboard.checks import Check, failed, impossible, judged
from vcr_core.summary import SUMMARY_FILE

_RELATIVE = 1e-9
"""JSON keeps every digit of a number; the last ones may be another machine's arithmetic."""


def check_summary(folder: Path, summary: Mapping[str, Any]) -> Check:
    """Compare ``summary.json`` to the numbers and intervals that the records give.

    Args:
        folder: the run folder.
        summary: what :func:`vcr_core.summary.summarize` makes of its records.
    """
    try:
        theirs = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return impossible("summary", f"there is no {SUMMARY_FILE}; it can be made from the records")
    except (OSError, ValueError, RecursionError) as error:
        return failed("summary", f"{SUMMARY_FILE} cannot be read: {error}")
    found = list(_differences(theirs, json.loads(json.dumps(summary)), ""))
    count = sum(1 for _ in _numbers(theirs))
    return judged("summary", found, f"{count} numbers are those of the records")


def _differences(theirs: Any, ours: Any, place: str) -> Iterator[str]:
    """Yield where a summary says something else; what it does not say, it need not say."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for key, value in theirs.items():
            where = f"{place}.{key}" if place else str(key)
            if key not in ours:
                yield f"{where} does not come from the records"
            else:
                yield from _differences(value, ours[key], where)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from _differences(one, other, f"{place}[{index}]")
    elif not _same(theirs, ours):
        yield f"{place} is {_short(theirs)}, the records give {_short(ours)}"


def _same(one: Any, other: Any) -> bool:
    numbers = [v for v in (one, other) if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == 2:
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=1e-12)
    return bool(one == other)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _numbers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
