"""Comparisons of runs as columns and JSON for machines; rates are fractions in [0, 1]."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core.power import ALPHA, POWER
from vcr_core.reporters.cells import one_line
from vcr_core.stats import RESAMPLES

if TYPE_CHECKING:
    from vcr_core.comparing import Comparison
    from vcr_core.reporters.comparison import Compared

SCHEMA = 1


def to_delimited(found: Compared, delimiter: str) -> str:
    """Return one row a pair and quantity, with a header; no number is an empty cell."""
    rows = list(_flat(found))
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer, fieldnames=list(rows[0]) if rows else [], delimiter=delimiter, lineterminator="\n"
    )
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _plain(value) for key, value in row.items()})
    return buffer.getvalue()


def to_plain(found: Compared) -> dict[str, Any]:
    """Return the comparison as JSON-ready data; rates and their differences are fractions."""
    rows = list(_flat(found))
    size = len(found.comparisons[0].changes)
    blocks = [rows[i * size : (i + 1) * size] for i in range(len(found.shown))]
    return {
        "schema": SCHEMA,
        "passed": found.passed,
        "varied": list(found.matching.varied),
        "tests": found.tests,
        "alpha": ALPHA,
        "power": POWER,
        "detect": found.detect,
        "resamples": RESAMPLES,
        "seed": found.seed,
        "pairs": [
            _plain_pair(one, block)
            for one, block in zip(found.comparisons, blocks, strict=False)
        ],
        "overall": _plain_pair(found.overall, blocks[-1]) if found.overall else None,
        "unpaired": {
            "a": [run.name for run in found.matching.only_a],
            "b": [run.name for run in found.matching.only_b],
        },
        "gate_on": found.gate_on,
        "gates": [
            {
                "gate": v.gate.text, "pair": v.pair, "passed": v.passed, "value": v.value,
                "low": v.low, "high": v.high, "unit": v.gate.unit, "reason": v.reason or None,
            }
            for v in found.verdicts
        ],
    }  # fmt: skip


def _plain_pair(one: Comparison, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    dropped = ("pair", "a", "b")
    return {
        "label": one.label,
        "a": one.a or None,
        "b": one.b or None,
        "videos": {
            "common": len(one.videos.common),
            "lost": list(one.videos.lost),
            "extra": list(one.videos.extra),
        },
        "differs": [{"name": d.name, "a": d.a or None, "b": d.b or None} for d in one.differs],
        "notes": list(one.notes),
        "quantities": [{k: v for k, v in row.items() if k not in dropped} for row in rows],
    }


def _flat(found: Compared) -> Iterator[dict[str, Any]]:
    for one in found.shown:
        for change in one.changes:
            test = change.test
            yield {
                "pair": one.label,
                "a": one.a or None,
                "b": one.b or None,
                "quantity": change.name,
                "kind": change.kind,
                "a_of": change.a.of,
                "b_of": change.b.of,
                "value_a": None if change.reason else change.value_a,
                "value_b": None if change.reason else change.value_b,
                "difference": change.difference.value,
                "low": change.difference.low,
                "high": change.difference.high,
                "method": change.difference.method,
                "n": change.n,
                "only_a": test.only_a if test else None,
                "only_b": test.only_b if test else None,
                "p": test.p if test else None,
                "p_holm": test.p_adjusted if test else None,
                "videos_needed": change.needed,
                "videos_needed_to_detect": change.needed_given,
                "reason": change.reason or None,
            }


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(round(value, 9))
    text = one_line(str(value))
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
