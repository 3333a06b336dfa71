"""What a record says about one video: right or wrong, in each of the four corners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, TypeAlias

RecordMap: TypeAlias = Mapping[str, Any]
Corner: TypeAlias = Mapping[str, Any]
Draws: TypeAlias = Literal["mean", "any", "majority"]
"""How several draws of a random defense become one outcome.

``mean``: the fraction of draws. ``any``: the attack wins if it wins in any draw. ``majority``: the
defender is right if more than half of the draws are.
"""

EVALUATED = ("ok", "ineligible")

OWN_LABEL = "clean-prediction"
"""The record's ``label_source`` where the bare model's clean prediction is the label."""


def is_evaluated(record: RecordMap) -> bool:
    """Return whether the record counts in rates: it has predictions, attacked or not."""
    return record.get("status") in EVALUATED


def has_own_label(record: RecordMap) -> bool:
    """Return whether the label is what the bare model says of the clean video."""
    return record.get("label_source") == OWN_LABEL


def clean_corners(record: RecordMap, *, defended: bool) -> list[Corner]:
    """Return the predictions on the clean video: one, or one a draw; none if not evaluated."""
    return _corners(record.get("clean_defended" if defended else "clean"))


def attacked_corners(record: RecordMap, *, defended: bool) -> list[Corner]:
    """Return the predictions on the attacked video; an ineligible video is its own attack."""
    found = _corners(record.get("attacked_defended" if defended else "attacked"))
    if not found and record.get("status") == "ineligible":
        return clean_corners(record, defended=defended)
    return found


def is_right(record: RecordMap, corner: Corner) -> bool:
    """Return whether a prediction is the true label; an abstention is not."""
    return corner.get("pred") is not None and corner["pred"] == record.get("label")


def is_misled(record: RecordMap, corner: Corner) -> bool:
    """Return whether a prediction is a label other than the true one; an abstention is not."""
    return corner.get("pred") is not None and corner["pred"] != record.get("label")


def clean_right(record: RecordMap, *, defended: bool, draws: Draws = "mean") -> float | None:
    """Return how right the system is on the clean video, in [0, 1], or ``None`` if unknown.

    With ``any`` and ``majority`` the clean side is decided by the majority of its draws: a video
    is the attack's to win only if the system usually gets it right.
    """
    right = _right(record, clean_corners(record, defended=defended))
    if not right:
        return None
    return sum(right) / len(right) if draws == "mean" else float(2 * sum(right) > len(right))


def stays_right(record: RecordMap, *, defended: bool, draws: Draws = "mean") -> float | None:
    """Return how right the system is on the clean video *and* on the attacked one, in [0, 1].

    Draw ``r`` of the attacked side belongs to draw ``r`` of the clean side where both have equally
    many; otherwise every pair counts.
    """
    clean = _right(record, clean_corners(record, defended=defended))
    attacked = _right(record, attacked_corners(record, defended=defended))
    if not clean or not attacked:
        return None
    if draws == "mean":
        return _both(clean, attacked)
    if 2 * sum(clean) <= len(clean):
        return 0.0
    return float(all(attacked) if draws == "any" else 2 * sum(attacked) > len(attacked))


def is_lost(record: RecordMap, *, defended: bool, draws: Draws = "mean") -> float | None:
    """Return how often a clean prediction that is right becomes another label, in [0, 1].

    What neither stays right nor is lost is an abstention: the system made no mistake, and no
    prediction either. Draws pair up as in :func:`stays_right`; a tie is the attack's.
    """
    clean = _right(record, clean_corners(record, defended=defended))
    misled = _misled(record, attacked_corners(record, defended=defended))
    if not clean or not misled:
        return None
    if draws == "mean":
        return _both(clean, misled)
    if 2 * sum(clean) <= len(clean):
        return 0.0
    return float(any(misled) if draws == "any" else 2 * sum(misled) >= len(misled))


def hits_target(record: RecordMap, *, defended: bool, draws: Draws = "mean") -> float | None:
    """Return how often the attacked video is given the target label, in [0, 1].

    ``None`` unless the video was eligible (status ``ok``) and had a target.
    """
    target = record.get("target")
    if record.get("status") != "ok" or target is None:
        return None
    return _share(record, defended, draws, lambda corner: corner.get("pred") == target)


def attack_rejected(record: RecordMap) -> float | None:
    """Return how often a detector rejects the attacked video; ``None`` without a detector."""
    corners = attacked_corners(record, defended=True)
    if record.get("status") != "ok" or not _has_detector(corners):
        return None
    return _share(record, True, "mean", lambda corner: bool(corner.get("rejected")))


def rejected_or_right(record: RecordMap) -> float | None:
    """Return how often the attacked video is rejected or classified correctly."""
    corners = attacked_corners(record, defended=True)
    if record.get("status") != "ok" or not _has_detector(corners):
        return None
    return _share(
        record,
        True,
        "mean",
        lambda corner: bool(corner.get("rejected")) or is_right(record, corner),
    )


def clean_rejected(record: RecordMap) -> float | None:
    """Return how often a detector rejects the clean video; ``None`` without a detector."""
    corners = clean_corners(record, defended=True)
    if not _has_detector(corners):
        return None
    return sum(bool(corner.get("rejected")) for corner in corners) / len(corners)


def clean_abstained(record: RecordMap) -> float | None:
    """Return how often the defense abstains on the clean video; ``None`` if it never could."""
    return _abstained(clean_corners(record, defended=True))


def attack_abstained(record: RecordMap) -> float | None:
    """Return how often the defense abstains on the attacked video; ``None`` if it never could."""
    if record.get("status") != "ok":
        return None
    return _abstained(attacked_corners(record, defended=True))


def source_right(record: RecordMap) -> float | None:
    """Return whether the model that the attack was computed on was right on the clean video.

    ``None`` where that is the evaluated model itself.
    """
    found = _source(record)
    return None if found is None else float(is_right(found, found["clean"]))


def source_lost(record: RecordMap) -> float | None:
    """Return whether that model was right on the clean video and is not on the attacked one."""
    found = _source(record)
    return None if found is None else is_lost(found, defended=False)


def source_hit(record: RecordMap) -> float | None:
    """Return whether that model gives the attacked video the target; ``None`` without one."""
    found = _source(record)
    return None if found is None else hits_target(
        {**found, "status": record.get("status")}, defended=False
    )  # fmt: skip


def certificate(record: RecordMap) -> Mapping[str, Any] | None:
    """Return what the defense guarantees about the clean video, where it was asked."""
    found = record.get("certificate")
    return found if isinstance(found, Mapping) else None


def certified_radius(record: RecordMap) -> float | None:
    """Return the certified radius, 0 if the certified class is not the true one or there is none.

    ``None`` where no certificate was asked for.
    """
    found = certificate(record)
    if found is None:
        return None
    right = found.get("class") is not None and found["class"] == record.get("label")
    return float(found["radius"]) if right else 0.0


def has_defense(record: RecordMap) -> bool:
    """Return whether the record has defended predictions."""
    return bool(clean_corners(record, defended=True))


def has_attack(record: RecordMap) -> bool:
    """Return whether the record has predictions on an attacked video."""
    return bool(record.get("attacked") or record.get("attacked_defended"))


def succeeded(record: RecordMap) -> bool:
    """Return whether the attack reached its goal, as the engine judged it."""
    success = record.get("success")
    if not isinstance(success, Mapping):
        return False
    return bool(success.get("changed" if record.get("target") is None else "target"))


def draw_count(records: Sequence[RecordMap]) -> int:
    """Return the largest number of draws of any corner, at least 1."""
    lists = (
        found
        for record in records
        for name in ("clean_defended", "attacked_defended")
        if isinstance(found := record.get(name), list | tuple)
    )
    return max((len(_corners(found)) for found in lists if len(found) > 1), default=1) or 1


def _right(record: RecordMap, corners: Sequence[Corner]) -> list[bool]:
    """Return :func:`is_right` of each; in one go, as every rate asks this of every record."""
    label = record.get("label")
    return [(pred := c.get("pred")) is not None and pred == label for c in corners]


def _misled(record: RecordMap, corners: Sequence[Corner]) -> list[bool]:
    """Return :func:`is_misled` of each."""
    label = record.get("label")
    return [(pred := c.get("pred")) is not None and pred != label for c in corners]


def _source(record: RecordMap) -> RecordMap | None:
    found = record.get("source")
    return found if isinstance(found, Mapping) and found.get("clean") else None


def _corners(value: Any) -> list[Corner]:
    # A dictionary is what JSON makes of an object; the general question takes ten times as long.
    if type(value) is dict or isinstance(value, Mapping):
        return [value]
    if not value:
        return []
    return [c for c in value if type(c) is dict or isinstance(c, Mapping)]


def _share(
    record: RecordMap, defended: bool, draws: Draws, meets: Callable[[Corner], bool]
) -> float | None:
    met = [meets(corner) for corner in attacked_corners(record, defended=defended)]
    if not met:
        return None
    if draws == "mean":
        return sum(met) / len(met)
    return float(any(met) if draws == "any" else 2 * sum(met) > len(met))


def _both(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Return how often both hold, over draws that belong together or else over all pairs."""
    if len(first) == len(second) == 1:
        return float(first[0] and second[0])
    if len(first) == len(second):
        pairs = list(zip(first, second, strict=True))
    else:
        pairs = list(product(first, second))
    return sum(a and b for a, b in pairs) / len(pairs)


def _abstained(corners: Sequence[Corner]) -> float | None:
    if not any("abstained" in corner for corner in corners):
        return None
    return sum(bool(corner.get("abstained")) for corner in corners) / len(corners)


def _has_detector(corners: Sequence[Corner]) -> bool:
    return any("rejected" in corner for corner in corners)
