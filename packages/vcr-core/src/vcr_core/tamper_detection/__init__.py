"""How well a detector of tampering does on the dataset ``tamper``, from records alone.

Everything is either balanced or per effect: there are as many tampered versions of a recording as
effects, so that plain accuracy rewards a detector that suspects everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcr_core.tamper_detection.answers import (
    describe_answers,
    describe_calibration,
    describe_cost,
    tally_answers,
)
from vcr_core.tamper_detection.decisions import (
    describe_decisions,
    describe_ranking,
    tally_decisions,
)
from vcr_core.tamper_detection.judged import SIDES, judge, types_of
from vcr_core.tamper_detection.ledger import Ledger
from vcr_core.tamper_detection.naming import describe_names, tally_names
from vcr_core.tamper_detection.places import describe_places, tally_places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.tamper_detection.judged import Judged

__all__ = ["describe_tamper_detection"]


def describe_tamper_detection(
    records: Sequence[Mapping[str, Any]], *, labels: Sequence[str] = (), seed: int = 0
) -> dict[str, Any] | None:
    """Return the numbers of every side of the contest; ``None`` for other datasets.

    Args:
        records: one per video.
        labels: names of the model's classes, where they are known.
        seed: of the bootstrap.

    Returns:
        By side, ``clean``, ``attacked``, ``clean_defended`` and ``attacked_defended`` as far as
        they exist: ``types``, ``sources``, ``videos``, ``originals``; ``binary`` by effect, with
        ``macro`` and ``original`` (:func:`describe_decisions`, :func:`describe_ranking`);
        ``classes`` (:func:`describe_names`); ``places`` (:func:`describe_places`) where the
        detector names segments; ``answers``, ``calibration`` and ``cost``.
    """
    found: dict[str, Any] = {}
    for side in SIDES:
        rows = judge(records, side, labels)
        if rows:
            found[side] = _describe(rows, labels, seed)
    return found or None


def _describe(rows: Sequence[Judged], labels: Sequence[str], seed: int) -> dict[str, Any]:
    types = types_of(rows)
    sources = sorted({row.source for row in rows})
    ledger = Ledger(sources, seed)
    tally_decisions(ledger, rows)
    tally_names(ledger, rows)
    tally_answers(ledger, rows)
    places = tally_places(ledger, rows)
    binary = describe_decisions(ledger, types)
    for kind, numbers in describe_ranking(rows, types, sources, seed).items():
        binary[kind].update(numbers)
    return {
        "types": types,
        "sources": len(sources),
        "videos": len(rows),
        "originals": sum(not row.tampered for row in rows),
        "binary": binary,
        "classes": describe_names(ledger, rows, labels),
        **({"places": describe_places(ledger, types)} if places else {}),
        "answers": describe_answers(ledger),
        "calibration": describe_calibration(rows),
        "cost": describe_cost(rows),
    }
