"""Whether what is said of a file is what the record says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from vcr_core.export_videos.judge import Heard, Said

Verdict: TypeAlias = Literal["same", "tie", "differs", "unreadable"]
Version: TypeAlias = Literal["clean", "adversarial"]

TOLERANCE = 1e-3
"""Difference of a probability that another machine may explain."""

TIE = 1e-5
"""Two classes this close in probability may change places with the videos of a batch."""

CORNERS: dict[Version, tuple[str, str]] = {
    "clean": ("clean", "clean_defended"),
    "adversarial": ("attacked", "attacked_defended"),
}
"""Fields of a record with what the bare and the defended model say of each version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One prediction of the record beside that on the file.

    Attributes:
        video: video id.
        version: which of its files.
        view: ``bare``, ``defended``, or ``defended #2`` where there are several draws.
        recorded: class of the record; ``None`` if the defense abstained.
        found: class on the file, likewise.
        p_recorded: its probability in the record.
        p_found: probability of ``found``.
        verdict: whether they agree. ``tie``: two classes are equally probable.
        problem: why a file cannot be read.
    """

    video: str
    version: Version
    view: str
    recorded: int | None = None
    found: int | None = None
    p_recorded: float | None = None
    p_found: float | None = None
    verdict: Verdict
    problem: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the file shows what the record says."""
        return self.verdict in ("same", "tie")

    def told(self) -> str:
        """Return both predictions in words."""
        if self.problem:
            return f"{self.version}: {self.problem}"
        recorded = _named(self.recorded, self.p_recorded)
        found = _named(self.found, self.p_found)
        return f"{self.version}, {self.view}: {recorded} in the record, {found} here"


def recorded_draws(record: Mapping[str, Any], version: Version) -> list[Mapping[str, Any]]:
    """Return the record's defended corners of a version, one a draw."""
    found = record.get(CORNERS[version][1])
    if found is None:
        return []
    return list(found) if isinstance(found, list) else [found]


def answers(record: Mapping[str, Any], version: Version, said: Said) -> Iterator[Answer]:
    """Yield what record and model say of one version of a video."""
    draws = recorded_draws(record, version)
    pairs = [("bare", record[CORNERS[version][0]], said.bare)]
    for number, (one, other) in enumerate(zip(draws, said.defended, strict=True), start=1):
        pairs.append(("defended" if len(draws) == 1 else f"defended #{number}", one, other))
    for view, one, other in pairs:
        yield Answer(
            video=record["video"],
            version=version,
            view=view,
            recorded=one.get("pred"),
            found=other.corner["pred"],
            p_recorded=one.get("p_pred"),
            p_found=other.corner["p_pred"],
            verdict=_verdict(one, other),
        )


def _verdict(recorded: Mapping[str, Any], heard: Heard) -> Verdict:
    found = heard.corner
    near = all(_near(recorded.get(key), found[key]) for key in ("p_pred", "p_label"))
    one, other = recorded.get("pred"), found["pred"]
    if one == other:
        return "same" if near else "differs"
    known = isinstance(one, int) and 0 <= one < len(heard.probabilities)
    if not (near and known) or one is None or other is None:
        return "differs"
    gap = heard.probabilities[other] - heard.probabilities[one]
    return "tie" if gap <= TIE else "differs"


def _named(pred: int | None, p: float | None) -> str:
    return "no prediction" if pred is None or p is None else f"class {pred} (p = {p:.6f})"


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
