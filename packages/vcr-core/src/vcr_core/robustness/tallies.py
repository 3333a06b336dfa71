"""How the videos of one cell fared, as sums over videos and over resamples of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vcr_core import outcomes
from vcr_core.manifest import defense_refs
from vcr_core.robustness.replicates import Floats, entry, over, proportion
from vcr_core.transformation import OutcomePair, outcome_pair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.robustness.replicates import Resampler
    from vcr_core.summary import RunView


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the videos of one cell, each ``[1 + B]``.

    Attributes:
        pairs: the videos' outcomes by position, ``None`` where a video has none.
        videos: how many videos were resampled.
        whole: whether every outcome is right or wrong, none a share of draws.
        valid: videos with an outcome.
        before: right before.
        after: right after.
        kept: right before and after.
        gained: right after, not before.
        same: the same label.
        moved: changes of the label's probability.
        told: videos of which that change is known.
    """

    pairs: tuple[OutcomePair | None, ...]
    videos: int
    whole: bool
    valid: Floats
    before: Floats
    after: Floats
    kept: Floats
    gained: Floats
    same: Floats
    moved: Floats
    told: Floats

    @property
    def n(self) -> int:
        """Videos with an outcome."""
        return round(float(self.valid[0]))

    @property
    def accuracy(self) -> Floats:
        """``A_{c,s}``."""
        return over(self.after, self.valid)

    @property
    def retention(self) -> Floats:
        """``R``: right after, of those that were right before."""
        return over(self.kept, self.before)

    def entries(self) -> dict[str, Any]:
        """Return accuracy before and after, R, Q and consistency as summaries have them."""
        wrong = self.valid - self.before
        return {
            "accuracy_before": self.share(self.before, self.valid),
            "accuracy": self.share(self.after, self.valid),
            "retention": self.share(self.kept, self.before),
            "recovery": self.share(self.gained, wrong),
            "consistency": self.share(self.same, self.valid),
        }

    def share(self, numerator: Floats, denominator: Floats) -> dict[str, Any]:
        """Return a proportion of videos."""
        return proportion(numerator, denominator, self.videos, whole=self.whole)

    def mean_change(self) -> dict[str, Any]:
        """Return the mean absolute change of the label's probability."""
        return entry(over(self.moved, self.told), round(float(self.told[0])), self.videos)


_SUMS = ("before", "after", "kept", "gained", "same")


def tally(run: RunView, videos: Sequence[str], resampler: Resampler) -> Tally:
    """Return the tally of a run over ``videos``; of the defended model where there is a defense."""
    found = run_pairs(run, videos)
    columns = np.zeros((len(_SUMS) + 3, len(videos)))
    for index, pair in enumerate(found):
        if pair is None:
            continue
        columns[0, index] = 1.0
        columns[1:6, index] = [getattr(pair, name) for name in _SUMS]
        if pair.moved is not None:
            columns[6:, index] = pair.moved, 1.0
    return Tally(
        tuple(found),
        len(videos),
        all(pair is None or pair.whole for pair in found),
        *resampler.sums(columns),
    )


def run_pairs(run: RunView, videos: Sequence[str]) -> list[OutcomePair | None]:
    """Return the outcome of each video; ``None`` for one that was skipped or failed."""
    defended = bool(defense_refs(run.manifest))
    records = {record["video"]: record for record in run.records if outcomes.is_evaluated(record)}
    return [
        None if record is None else outcome_pair(record, defended=defended)
        for record in (records.get(video) for video in videos)
    ]


def clean_sums(tallies: Sequence[Tally], resampler: Resampler) -> tuple[Floats, Floats]:
    """Return sums of right predictions before anything was done, and of videos that have one.

    Every cell has the clean prediction; a video that one cell skipped is taken from another.
    """
    columns = np.zeros((2, resampler.videos))
    for index in range(resampler.videos):
        known = next((t.pairs[index] for t in tallies if t.pairs[index] is not None), None)
        if known is not None:
            columns[:, index] = known.before, 1.0
    right, valid = resampler.sums(columns)
    return right, valid


def skipped(run: RunView) -> Mapping[str, int]:
    """Return how many videos of a run were left out, by the first words of the reason."""
    counts: dict[str, int] = {}
    for record in run.records:
        if record.get("status") != "skipped":
            continue
        notes = record.get("notes") or {}
        texts = list(notes.values()) if hasattr(notes, "values") else list(notes)
        word = str(texts[0]).partition(":")[0] if texts else "skipped"
        counts[word] = counts.get(word, 0) + 1
    return counts
