"""What a detector of tampering said of each video, as the records have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from vcr_core import outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vcr_core.outcomes import Corner

ORIGINAL: Final = "original"

Side: TypeAlias = Literal["clean", "attacked", "clean_defended", "attacked_defended"]
SIDES: tuple[Side, ...] = ("clean", "attacked", "clean_defended", "attacked_defended")


@dataclass(frozen=True, slots=True)
class Judged:
    """One video and what was said of it.

    Attributes:
        video: its id.
        source: the recording that it was made from; the video itself where that is not known.
        type: what was done to it, ``original`` if nothing.
        label: index of that class in the model's labels.
        facts: what the dataset knows of the tampering.
        corners: the predictions, one a draw.
        calls: what each of them decides: tampered, not, or ``None`` for no answer.
        record: the whole record.
    """

    video: str
    source: str
    type: str
    label: int
    facts: Mapping[str, Any]
    corners: Sequence[Corner]
    calls: Sequence[bool | None]
    record: Mapping[str, Any]

    @property
    def tampered(self) -> bool:
        """Whether something was done to it."""
        return self.type != ORIGINAL

    def share(self, holds: Callable[[Corner, bool | None], bool]) -> float:
        """Return in which share of the draws something holds."""
        met = [holds(corner, call) for corner, call in zip(self.corners, self.calls, strict=True)]
        return sum(met) / len(met)


def judge(
    records: Sequence[Mapping[str, Any]], side: Side, labels: Sequence[str] = ()
) -> list[Judged]:
    """Return the evaluated videos of the dataset ``tamper`` with what was said of them.

    A detector decides by its own threshold (``tampered`` of a prediction); where none of the
    predictions has that, a class other than the original is the decision. A detector that decides
    some videos and not others gave no answer to those.

    Args:
        records: one per video.
        side: which predictions.
        labels: names of the model's classes, where they are known.
    """
    found: list[tuple[Mapping[str, Any], Mapping[str, Any], list[Corner]]] = []
    for record in records:
        facts = (record.get("sample") or {}).get("tamper")
        corners = _corners(record, side) if outcomes.is_evaluated(record) else []
        if isinstance(facts, dict) and facts.get("type") and corners:
            found.append((record, facts, corners))
    decides = any(
        isinstance(corner.get("tampered"), bool) for _, _, corners in found for corner in corners
    )
    original = _original(found, labels)

    def call(corner: Corner) -> bool | None:
        if decides:
            decision = corner.get("tampered")
            return decision if isinstance(decision, bool) else None
        if corner.get("pred") is None or original is None:
            return None
        return bool(corner["pred"] != original)

    return [
        Judged(
            video=str(record["video"]),
            source=str(record["sample"].get("source") or record["video"]),
            type=str(facts["type"]),
            label=int(record["label"]),
            facts=facts,
            corners=corners,
            calls=[call(corner) for corner in corners],
            record=record,
        )
        for record, facts, corners in found
    ]


def types_of(rows: Sequence[Judged]) -> list[str]:
    """Return the effects that occur, in the order of their labels."""
    return list(dict.fromkeys(r.type for r in sorted(rows, key=lambda r: r.label) if r.tampered))


def class_names(rows: Sequence[Judged], labels: Sequence[str]) -> dict[int, str]:
    """Return the name of every class that occurs as the truth or as a prediction, by index."""
    known = {row.label: row.type for row in rows}
    predicted = {c["pred"] for row in rows for c in row.corners if c.get("pred") is not None}
    names = dict(enumerate(labels))
    return {
        index: known.get(index) or names.get(index) or f"class {index}"
        for index in sorted({*known, *predicted})
    }


def _corners(record: Mapping[str, Any], side: Side) -> list[Corner]:
    defended = side.endswith("_defended")
    if side.startswith("clean"):
        return outcomes.clean_corners(record, defended=defended)
    if not record.get(side) and record.get("status") != "ineligible":
        return []
    return outcomes.attacked_corners(record, defended=defended)


def _original(
    found: Sequence[tuple[Mapping[str, Any], Mapping[str, Any], Any]], labels: Sequence[str]
) -> int | None:
    """Return the index of the class of untouched videos."""
    for record, facts, _ in found:
        if facts["type"] == ORIGINAL:
            return int(record["label"])
    return list(labels).index(ORIGINAL) if ORIGINAL in labels else None
