"""Two runs on the same videos: what changed, how sure that is, and how many videos it would take.

Everything is paired: only videos that both runs evaluated count, and they are resampled together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vcr_core import power, quantities
from vcr_core.run_settings import Difference, differences
from vcr_core.shared_videos import Videos, check_comparable, shared_videos
from vcr_core.stats import (
    RESAMPLES,
    Estimate,
    Term,
    mcnemar,
    paired_difference,
    paired_ratio,
)

if TYPE_CHECKING:
    from vcr_core.quantities import Kind, Side
    from vcr_core.run_pairs import RunPair


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The exact McNemar test of one rate.

    Attributes:
        only_a: videos for which it holds in the first run alone.
        only_b: videos for which it holds in the second run alone.
        n: videos in the population of both.
        p: two-sided p-value.
        p_adjusted: p-value by Holm's method among all tests that were made, once these are known.
    """

    only_a: int
    only_b: int
    n: int
    p: float
    p_adjusted: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One quantity in both runs.

    Attributes:
        name: as in :mod:`vcr_core.quantities`.
        kind: ``rate``, ``metric`` or ``cost``.
        a: the first run's part.
        b: the second run's part.
        value_a: its value over the videos that are compared, ``None`` if it has none.
        value_b: that of the second run.
        difference: second minus first, with its interval.
        test: McNemar's test, for rates that hold or do not hold for a video.
        reason: why there is no value.
        no_test: why there is no test.
        needed: videos at which the observed difference would be found 4 times in 5.
        needed_given: the same for the difference that was asked for.
        resamples: of the bootstrap.
        seed: of the bootstrap.
    """

    name: str
    kind: Kind
    a: Side
    b: Side
    value_a: float | None
    value_b: float | None
    difference: Estimate
    test: PairedTest | None = None
    reason: str = ""
    no_test: str = ""
    needed: int | None = None
    needed_given: int | None = None
    resamples: int = field(default=RESAMPLES, repr=False)
    seed: int = field(default=0, repr=False)

    @property
    def n(self) -> int:
        """Videos that have the quantity in both runs."""
        return sum(
            bool(term.den) and bool(self.b.terms[video].den)
            for video, term in self.a.terms.items()
            if video in self.b.terms
        )

    def ratio(self) -> Estimate:
        """Return second divided by first, with its interval."""
        return paired_ratio(self.a.terms, self.b.terms, resamples=self.resamples, seed=self.seed)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, or the mean over several pairs of runs.

    Attributes:
        label: what tells this pair from others.
        a: name of the first run; ``""`` for a mean.
        b: name of the second run.
        differs: in what the runs differ.
        videos: what it rests on.
        notes: what a reader has to know.
        changes: one per quantity.
    """

    label: str
    a: str
    b: str
    differs: tuple[Difference, ...]
    videos: Videos
    notes: tuple[str, ...]
    changes: tuple[Change, ...]

    def change(self, name: str) -> Change | None:
        """Return the change of one quantity, if it was compared."""
        return next((change for change in self.changes if change.name == name), None)


def compare_runs(
    pair: RunPair,
    names: Sequence[str],
    *,
    detect: float | None = None,
    across_versions: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare two runs on the videos that both evaluated.

    Args:
        pair: baseline and other run.
        names: quantities, as in :mod:`vcr_core.quantities`.
        detect: a difference of rates, in [-1, 1], to say the necessary number of videos for.
        across_versions: whether runs of different evaluation versions may be compared.
        resamples: of the bootstrap.
        seed: of the bootstrap; the same seed gives the same numbers.

    Raises:
        UsageError: if the runs cannot be paired: other datasets, other content under the same
            video id, no video in common, other evaluation versions.
    """
    a, b = pair.a, pair.b
    notes = check_comparable(a, b, across_versions=across_versions)
    videos = shared_videos(a, b)
    changes = []
    for name in names:
        kind = quantities.kind_of(name, (a, b))
        first = quantities.side_of(name, kind, a, videos.common)
        second = quantities.side_of(name, kind, b, videos.common)
        changes.append(
            make_change(name, kind, first, second, detect=detect, resamples=resamples, seed=seed)
        )
    found = tuple(differences(a, b))
    if not found:
        notes.append("the runs have the same settings and versions")
    return Comparison(
        pair.label, a.name, b.name, found, videos, (*notes, *videos.notes), tuple(changes)
    )


def make_change(
    name: str,
    kind: Kind,
    a: Side,
    b: Side,
    *,
    detect: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Change:
    """Return how one quantity changed; means are over videos that have a value in both runs."""
    if kind != "rate":
        shared = [video for video in a.terms if video in b.terms]
        a, b = (
            replace(side, terms={video: side.terms[video] for video in shared}) for side in (a, b)
        )
    reason = _reason(a, b)
    found = paired_difference(a.terms, b.terms, resamples=resamples, seed=seed)
    change = Change(
        name, kind, a, b, _value(a.terms), _value(b.terms), found,
        reason=reason, resamples=resamples, seed=seed,
    )  # fmt: skip
    if kind != "rate" or reason:
        return replace(change, no_test="" if kind == "rate" else "a mean, see its interval")
    if not quantities.is_share(name):
        return replace(change, no_test="a difference of rates, see its interval")
    if not all(
        term.num in (0, 1) and term.den in (0, 1) for t in (a, b) for term in t.terms.values()
    ):
        return replace(change, no_test="several outcomes a video, see its interval")
    return _tested(change, detect)


def pool(comparisons: Sequence[Comparison]) -> Comparison:
    """Return the mean over pairs: outcomes of a video are summed first, videos are resampled.

    Every outcome has the same weight. A quantity that some pair lacks is over the others, and its
    reason says so.
    """
    changes = []
    for change in comparisons[0].changes:
        found = [c for c in (one.change(change.name) for one in comparisons) if c and not c.reason]
        first, second = (
            replace(getattr(change, side), terms=_summed(found, side), reason="")
            for side in ("a", "b")
        )
        pooled = make_change(
            change.name, change.kind, first, second, resamples=change.resamples, seed=change.seed
        )
        missing = len(comparisons) - len(found)
        note = f"without {missing} of {len(comparisons)} pairs" if missing and found else ""
        changes.append(replace(pooled, test=None, needed=None, needed_given=None, no_test=note))
    videos = [one.videos for one in comparisons]
    joined = Videos(
        *(
            tuple(dict.fromkeys(video for one in videos for video in getattr(one, part)))
            for part in ("common", "lost", "extra")
        )
    )
    label = f"all {len(comparisons)} pairs"
    return Comparison(label, "", "", (), joined, joined.notes, tuple(changes))


def adjust(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], int]:
    """Return the comparisons with p-values adjusted for all tests among them, and their number."""
    tests = [change.test for one in comparisons for change in one.changes if change.test]
    adjusted = iter(power.holm([test.p for test in tests]))
    return [
        replace(
            one,
            changes=tuple(
                replace(change, test=replace(change.test, p_adjusted=next(adjusted)))
                if change.test
                else change
                for change in one.changes
            ),
        )
        for one in comparisons
    ], len(tests)


def _tested(change: Change, detect: float | None) -> Change:
    both = [
        (term.num == 1, change.b.terms[video].num == 1)
        for video, term in change.a.terms.items()
        if video in change.b.terms and term.den and change.b.terms[video].den
    ]
    only_a = sum(a and not b for a, b in both)
    only_b = sum(b and not a for a, b in both)
    if not both:
        return replace(change, no_test="no video is in the population of both runs")
    shares = only_a / len(both), only_b / len(both)
    given = None if detect is None else power.detectable(detect, *shares)
    # A rate over some of the videos needs as many more in all.
    scale = len(change.a.terms) / len(both)
    return replace(
        change,
        test=PairedTest(only_a, only_b, len(both), mcnemar(only_a, only_b)),
        needed=_scaled(power.videos_needed(*shares), scale),
        needed_given=None if given is None else _scaled(power.videos_needed(*given), scale),
    )


def _scaled(count: int | None, scale: float) -> int | None:
    return None if count is None else round(count * scale + 0.4999)


def _reason(a: Side, b: Side) -> str:
    if a.reason or b.reason:
        texts = {f"{name}: {side.reason}" for name, side in (("A", a), ("B", b)) if side.reason}
        return "; ".join(sorted(texts))
    return "" if a.terms else "no video has a value in both runs"


def _value(terms: Mapping[str, Term]) -> float | None:
    den = sum(term.den for term in terms.values())
    return sum(term.num for term in terms.values()) / den if den else None


def _summed(changes: Iterable[Change], side: str) -> dict[str, Term]:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for change in changes:
        for video, term in getattr(change, side).terms.items():
            sums[video][0] += term.num
            sums[video][1] += term.den
    return {video: Term(num, den) for video, (num, den) in sums.items()}
