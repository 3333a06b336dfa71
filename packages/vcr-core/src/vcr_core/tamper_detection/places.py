"""Where: how well the segment that a detector names meets the one that was changed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vcr_core.tamper_detection.ledger import mean_of, over

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.tamper_detection.judged import Judged
    from vcr_core.tamper_detection.ledger import Ledger, Sums

HIT_IOU: Final = 0.5
CUT_FRAMES: Final = 3
"""A cut is found if it is named within so many frames."""

_ROUNDING: Final = 1e-9


def temporal_iou(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the length of the common part of two segments over that of their union.

    Example:
        >>> temporal_iou((1.0, 2.0), (1.5, 2.5))
        0.3333333333333333
    """
    common = min(first[1], second[1]) - max(first[0], second[0])
    together = max(first[1], second[1]) - min(first[0], second[0])
    return max(0.0, common) / together if together > 0 else float(first[0] == second[0])


def tally_places(ledger: Ledger, rows: Sequence[Judged]) -> bool:
    """Add how well segments are met; return whether the detector names any at all."""
    named = [row for row in rows if any("segment_s" in corner for corner in row.corners)]
    for row in named:
        truth = _truth(row.facts)
        if truth is None:
            continue
        found = [_met(corner.get("segment_s"), truth, row.facts) for corner in row.corners]
        ledger.add(f"placed:{row.type}", row.source, 1.0)
        ledger.add(f"hit:{row.type}", row.source, sum(hit for _, hit in found) / len(found))
        if truth[0] != truth[1]:
            iou = sum(iou for iou, _ in found) / len(found)
            ledger.add(f"spans:{row.type}", row.source, 1.0)
            ledger.add(f"iou:{row.type}", row.source, iou)
    return bool(named)


def describe_places(ledger: Ledger, types: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the mean temporal IoU and the hit rate of each effect, and their means.

    A hit is an IoU of at least 0.5; of a cut, a middle of the named segment within 3 frames of it.
    Where a detector names no segment the IoU is 0. A cut has no length and no IoU.
    """
    found: dict[str, dict[str, Any]] = {}
    for kind in types:
        spans, placed = ledger.total(f"spans:{kind}"), ledger.total(f"placed:{kind}")
        why = _NOT_PLACED if not placed else _CUT
        found[kind] = {
            "iou": ledger.estimate(partial(_iou, kind), spans, why),
            "hit_rate": ledger.share(f"hit:{kind}", f"placed:{kind}", _NOT_PLACED),
        }
    with_length = [kind for kind in types if ledger.total(f"spans:{kind}")]
    placed_kinds = [kind for kind in types if ledger.total(f"placed:{kind}")]
    found["macro"] = {
        "iou": ledger.estimate(
            lambda s: mean_of([_iou(kind, s) for kind in with_length]),
            sum(ledger.total(f"spans:{kind}") for kind in types),
            "no segment with a length",
        ),
        "hit_rate": ledger.estimate(
            lambda s: mean_of([_hit(kind, s) for kind in placed_kinds]),
            sum(ledger.total(f"placed:{kind}") for kind in types),
            _NOT_PLACED,
        ),
    }
    return found


_NOT_PLACED: Final = "no video with a known segment and frame rate"
_CUT: Final = "a cut has no length"


def _truth(facts: Mapping[str, Any]) -> tuple[float, float] | None:
    start, end = facts.get("start_s"), facts.get("end_s")
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        return None
    return float(start), float(end)


def _met(segment: Any, truth: tuple[float, float], facts: Mapping[str, Any]) -> tuple[float, bool]:
    """Return the IoU and whether the segment is a hit."""
    if not isinstance(segment, list | tuple) or len(segment) != 2:
        return 0.0, False
    if truth[0] == truth[1]:
        fps = facts.get("fps")
        tolerance = CUT_FRAMES / fps if isinstance(fps, int | float) and fps > 0 else 0.0
        away = abs((segment[0] + segment[1]) / 2 - truth[0])
        return 0.0, away <= tolerance + _ROUNDING
    iou = temporal_iou(segment, truth)
    return iou, iou >= HIT_IOU - _ROUNDING


def _iou(kind: str, s: Sums) -> float | None:
    return over(s[f"iou:{kind}"], s[f"spans:{kind}"])


def _hit(kind: str, s: Sums) -> float | None:
    return over(s[f"hit:{kind}"], s[f"placed:{kind}"])
