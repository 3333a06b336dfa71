"""Neighbouring clips of one video: how often a model that is right stays right.

Gu, Yang, Ngiam, Le, Shlens, arXiv 1904.10076, section 2, for videos: the neighbour ``k`` is the
same pattern of frames ``k`` steps later. Worst cases over the neighbourhood follow Shankar et al.,
"Do image classifiers generalize across time?", arXiv 1906.02168.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from vcr_core import outcomes
from vcr_core.manifest import defense_refs
from vcr_core.robustness.brittle import describe_pairs
from vcr_core.robustness.replicates import Floats, entry, missing, over
from vcr_core.robustness.tallies import Tally, clean_sums, skipped, tally
from vcr_core.stats import clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.robustness.replicates import Resampler
    from vcr_core.robustness.systems import Ground, System
    from vcr_core.summary import RunView


class Neighbours:
    """One system's runs by step, tallied over the videos of its ground."""

    def __init__(self, ground: Ground, system: System, resampler: Resampler) -> None:
        self.videos = ground.videos
        self.resampler = resampler
        self.runs: dict[int, RunView] = {
            level: run for (_, level), run in sorted(system.runs.items(), key=lambda i: i[0][1])
        }
        self.tallies = {
            level: tally(run, ground.videos, resampler) for level, run in self.runs.items()
        }
        self.expected = [level for level in ground.levels() if level != 0]
        self.lost = [level for level in self.expected if level not in self.tallies]

    @property
    def steps(self) -> list[int]:
        """Steps that a run was made for, without 0."""
        return [level for level in self.tallies if level != 0]

    @property
    def gap(self) -> str:
        """Why nothing can be pooled, or nothing."""
        if not self.expected:
            return "no neighbour was evaluated"
        if not self.lost:
            return ""
        return f"incomplete: no run for steps {', '.join(map(str, self.lost))}"

    def pooled(self, steps: Sequence[int], top: str, bottom: str) -> tuple[Floats, Floats]:
        """Return sums of two columns over several steps."""
        chosen = [self.tallies[step] for step in steps]
        zero = np.zeros(1 + self.resampler.resamples)
        return (
            sum((getattr(t, top) for t in chosen), zero),
            sum((getattr(t, bottom) for t in chosen), zero),
        )

    def flips(self) -> tuple[Floats, Floats] | None:
        """Return sums of flip probabilities of videos, and of videos; ``None`` with gaps.

        FP of Hendrycks and Dietterich, arXiv 1903.12261, on the sequence of neighbours with the
        anchor in it: the share of consecutive pairs whose labels differ. Videos that lack a
        neighbour have none.
        """
        line = sorted({*self.expected, 0})
        if self.lost or len(line) < 2 or line != list(range(line[0], line[-1] + 1)):
            return None
        labels = {step: _labels(self.runs[step], self.videos) for step in self.steps}
        columns = np.zeros((2, len(self.videos)))
        for index in range(len(self.videos)):
            found = {step: told[index] for step, told in labels.items()}
            if any(pair is None for pair in found.values()):
                continue
            anchor = next(iter(found.values()))
            sequence = [
                (anchor[0] if step == 0 else found[step][1])  # type: ignore[index]
                for step in line
            ]
            flips = [_differ(a, b) for a, b in pairwise(sequence)]
            columns[:, index] = sum(flips) / len(flips), 1.0
        flips, valid = self.resampler.sums(columns)
        return flips, valid


def describe_natural(neighbours: Neighbours, reference: Neighbours | None = None) -> dict[str, Any]:
    """Return everything about a system's neighbours.

    Args:
        neighbours: of the system.
        reference: of the model that flip rates are divided by; the same resampler.

    Returns:
        ``steps`` (by ``k``), ``distances`` (``+k`` and ``-k`` pooled), ``overall`` and ``pairs``:
        how far apart the neighbours are that a right prediction is lost on, and all of them.
    """
    count = len(neighbours.videos)
    return {
        "steps": {str(step): _step(neighbours, step) for step in neighbours.steps},
        "distances": {
            str(distance): _distance(neighbours, distance)
            for distance in sorted({abs(step) for step in neighbours.expected})
        },
        "overall": _overall(neighbours, reference),
        "pairs": describe_pairs(
            [neighbours.runs[step] for step in neighbours.steps],
            [neighbours.tallies[step].pairs for step in neighbours.steps],
            neighbours.videos,
            neighbours.resampler,
        ),
        "videos": count,
    }


def _step(neighbours: Neighbours, step: int) -> dict[str, Any]:
    found = neighbours.tallies[step]
    return {
        **found.entries(),
        "confidence_change": found.mean_change(),
        "n": found.n,
        "skipped": dict(skipped(neighbours.runs[step])),
    }


def _distance(neighbours: Neighbours, distance: int) -> dict[str, Any]:
    """Return ``NR_|k|``, consistency, and the worst case within that distance."""
    steps = [s for s in neighbours.expected if abs(s) == distance]
    lost = [s for s in steps if s in neighbours.lost]
    if lost:
        gap = missing(f"incomplete: no run for steps {', '.join(map(str, lost))}")
        return {"retention": gap, "consistency": gap, **_worst(neighbours, distance)}
    return {
        "retention": _ratio(neighbours, steps, "kept", "before"),
        "consistency": _ratio(neighbours, steps, "same", "valid"),
        **_worst(neighbours, distance),
    }


def _ratio(neighbours: Neighbours, steps: Sequence[int], top: str, bottom: str) -> dict[str, Any]:
    above, below = neighbours.pooled(steps, top, bottom)
    return entry(over(above, below), round(float(below[0])), len(neighbours.videos))


def _overall(neighbours: Neighbours, reference: Neighbours | None) -> dict[str, Any]:
    count = len(neighbours.videos)
    tallies = [neighbours.tallies[step] for step in neighbours.steps]
    right, valid = clean_sums(tallies, neighbours.resampler)
    anchor = _exact(right, valid, tallies, count)
    reach = max((abs(step) for step in neighbours.expected), default=0)
    if neighbours.gap:
        gap = missing(neighbours.gap)
        names = ("retention", "consistency", "flip_rate", "confidence_change")
        pooled = dict.fromkeys(names, gap)
    else:
        closest = min(map(abs, neighbours.steps))
        near = [step for step in neighbours.steps if abs(step) == closest]
        same, pairs = neighbours.pooled(near, "same", "valid")
        moved, told = neighbours.pooled(neighbours.steps, "moved", "told")
        pooled = {
            "retention": _ratio(neighbours, neighbours.steps, "kept", "before"),
            "consistency": _ratio(neighbours, neighbours.steps, "same", "valid"),
            "flip_rate": entry(over(pairs - same, pairs), round(float(pairs[0])), count),
            "confidence_change": entry(over(moved, told), round(float(told[0])), count),
        }
    return {
        "reach": reach,
        "anchor_accuracy": anchor,
        **pooled,
        **_worst(neighbours, reach),
        **_flips(neighbours, reference),
    }


def _worst(neighbours: Neighbours, distance: int) -> dict[str, Any]:
    """Return ``acc_pm``: right on the anchor and on every neighbour within a distance.

    A neighbour outside of the video asks nothing; ``complete`` counts the videos that have all.
    """
    within = [s for s in neighbours.expected if 0 < abs(s) <= distance]
    lost = [s for s in within if s in neighbours.lost]
    if not within or lost:
        why = f"incomplete: no run for steps {', '.join(map(str, lost))}" if lost else "no step"
        return {"worst_accuracy": missing(why), "worst_drop": missing(why)}
    tallies = [neighbours.tallies[s] for s in within]
    columns = np.zeros((3, len(neighbours.videos)))
    complete = 0
    for index in range(len(neighbours.videos)):
        pairs = [t.pairs[index] for t in tallies]
        found = [pair for pair in pairs if pair is not None]
        if not found:
            continue
        complete += len(found) == len(pairs)
        columns[:, index] = min(pair.kept for pair in found), found[0].before, 1.0
    worst, before, valid = neighbours.resampler.sums(columns)
    count = len(neighbours.videos)
    return {
        "worst_accuracy": {**_exact(worst, valid, tallies, count), "complete": complete},
        "worst_drop": entry(over(before - worst, valid), round(float(valid[0])), count),
    }


def _exact(
    numerator: Floats, valid: Floats, tallies: Sequence[Tally], count: int
) -> dict[str, Any]:
    """Return a share with its Clopper-Pearson interval, as Shankar et al. give it."""
    n = round(float(valid[0]))
    if n == 0 or not all(t.whole for t in tallies):
        return entry(over(numerator, valid), n, count)
    k = round(float(numerator[0]))
    return {
        "value": k / n,
        "n": n,
        "ci95": list(clopper_pearson(k, n)),
        "method": "clopper-pearson",
    }


def _flips(neighbours: Neighbours, reference: Neighbours | None) -> dict[str, Any]:
    own = neighbours.flips()
    count = len(neighbours.videos)
    if own is None:
        why = neighbours.gap or "the steps are not consecutive"
        return {"flip_probability": missing(why)}
    probability, n = over(*own), round(float(own[1][0]))
    found = {
        "flip_probability": entry(probability, n, count, reason="no video has every neighbour")
    }
    if reference is not None:
        other = reference.flips()
        found["flip_ratio"] = (
            missing("the reference has no flip probability")
            if other is None
            else entry(
                over(probability, over(*other)), n, count, reason="the reference never flips"
            )
        )
    return found


def _labels(
    run: RunView, videos: Sequence[str]
) -> list[tuple[tuple[Any, ...], tuple[Any, ...]] | None]:
    """Return the labels before and after of each video, one a draw."""
    defended = bool(defense_refs(run.manifest))
    records: Mapping[str, Any] = {
        record["video"]: record for record in run.records if outcomes.is_evaluated(record)
    }
    found: list[tuple[tuple[Any, ...], tuple[Any, ...]] | None] = []
    for video in videos:
        record = records.get(video)
        sides = [] if record is None else [
            tuple(c.get("pred") for c in corners(record, defended=defended))
            for corners in (outcomes.clean_corners, outcomes.attacked_corners)
        ]  # fmt: skip
        found.append((sides[0], sides[1]) if sides and all(sides) else None)
    return found


def _differ(first: Sequence[Any], second: Sequence[Any]) -> float:
    pairs = (
        list(zip(first, second, strict=True))
        if len(first) == len(second)
        else list(product(first, second))
    )
    return float(sum(a != b for a, b in pairs)) / len(pairs)
