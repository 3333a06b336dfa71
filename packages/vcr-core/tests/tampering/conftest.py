from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

CLASSES = ("original", "drop", "mask")
SEGMENTS = {"drop": (1.0, 1.0), "mask": (1.0, 2.0)}
YES_FIRST, NO_FIRST = ["yes", "no"], ["no", "yes"]

# Source: type: (tampered, predicted class, score, segment, order of the options). None: no answer.
Said: TypeAlias = tuple[bool | None, str | None, float, list[float] | None, list[str]]
TABLE: dict[str, dict[str, Said]] = {
    "A": {
        "original": (False, "original", 0.1, None, YES_FIRST),
        "drop": (True, "drop", 0.9, [1.0, 1.0], YES_FIRST),
        "mask": (True, "mask", 0.8, [1.0, 2.0], YES_FIRST),
    },
    "B": {
        "original": (True, "drop", 0.6, [0.0, 0.0], NO_FIRST),
        "drop": (False, "original", 0.3, None, NO_FIRST),
        "mask": (True, "mask", 0.7, [1.5, 2.5], NO_FIRST),
    },
    "C": {
        "original": (False, "original", 0.2, None, YES_FIRST),
        "drop": (None, None, 0.4, [1.3, 1.3], YES_FIRST),
        "mask": (True, "drop", 0.6, [0.5, 2.0], YES_FIRST),
    },
    "D": {
        "original": (None, None, 0.5, None, NO_FIRST),
        "drop": (True, "drop", 0.5, [1.2, 1.6], YES_FIRST),
        "mask": (False, "mask", 0.1, None, NO_FIRST),
    },
}  # fmt: skip


@pytest.fixture
def make() -> Callable[..., dict[str, Any]]:
    """Make the record of one version of a source, with the prediction given as keywords."""

    def record(source: str, kind: str, **corner: Any) -> dict[str, Any]:
        tamper: dict[str, Any] = {"type": kind}
        if kind != "original":
            start, end = SEGMENTS.get(kind, (1.0, 2.0))
            tamper |= {"start_s": start, "end_s": end, "fps": 10.0}
        return {
            "video": f"{source}#{kind}",
            "status": "ok",
            "label": CLASSES.index(kind) if kind in CLASSES else 9,
            "sample": {"source": source, "tamper": tamper},
            "clean": {"pred": None, "p_pred": None, **corner},
        }

    return record


@pytest.fixture
def twelve(make: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """Four sources in three versions; every number of them is worked out in the tests."""
    records = []
    for source, versions in TABLE.items():
        for kind, (tampered, pred, score, segment, options) in versions.items():
            corner: dict[str, Any] = {
                "score": score,
                "segment_s": segment,
                "evidence": {"options": options},
            }
            if tampered is not None:
                corner["tampered"] = tampered
            if pred is None:
                corner["abstained"] = True
            else:
                corner |= {"pred": CLASSES.index(pred), "p_pred": 0.75}
            record = make(source, kind, **corner)
            record["cost"] = {"t_decode_s": 0.25, "t_clean_s": 0.5}
            record["input"] = {"indices": list(range(8))}
            records.append(record)
    return records
