"""A changed segment of the video: does the class survive, and whatever was done to it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vcr_core.robustness.replicates import Floats, entry, missing, over, proportion
from vcr_core.robustness.tallies import Tally, clean_sums, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.robustness.replicates import Resampler
    from vcr_core.robustness.systems import Ground, Kind, System
    from vcr_core.summary import RunView


def describe_tampering(
    ground: Ground, system: System, kinds: Sequence[Kind], resampler: Resampler
) -> dict[str, Any]:
    """Return everything about one system under the operators of one list.

    Returns:
        ``types``: accuracy ``acc_t``, ``drop``, ``relative`` (``acc_t / acc``), ``retention``
        (``R_t``), ``recovery``, ``consistency`` (``C_t``), the mean ``overlap`` of sampled
        frames with the segment and its mean length ``segment_s``; ``overall``: ``clean``,
        ``mean``, ``worst`` (with ``type``), ``relative``, ``retention``, ``consistency`` and
        ``coefficient``, which is ``1 - std_t / mean_t`` of ``acc_t`` with the population's
        standard deviation.
    """
    count = len(ground.videos)
    tallies: dict[Kind, Tally] = {}
    for kind in kinds:
        run = system.runs.get((kind, 0))
        if run is not None:
            tallies[kind] = tally(run, ground.videos, resampler)
    right, valid = clean_sums(list(tallies.values()), resampler)
    clean = over(right, valid)
    whole = all(found.whole for found in tallies.values())
    known = proportion(right, valid, count, whole=whole)
    return {
        "types": {
            ground.label(kind): {
                **found.entries(),
                "drop": entry(clean - found.accuracy, found.n, count),
                "relative": entry(
                    over(found.accuracy, clean), found.n, count, reason="clean accuracy is 0"
                ),
                "overlap": _mean_fact(system.runs[(kind, 0)], "overlap"),
                "segment_s": _mean_fact(system.runs[(kind, 0)], "duration_effective"),
                "n": found.n,
            }
            for kind, found in tallies.items()
        },
        "overall": _overall(ground, kinds, tallies, clean, known),
        "videos": count,
        "n": known["n"],
    }


def robustness_coefficient(accuracies: Floats) -> Floats:
    """Return ``1 - std / mean`` over the first axis, NaN where the mean is 0.

    Example:
        >>> float(robustness_coefficient(np.array([0.5, 0.5])))
        1.0
    """
    return 1 - over(np.std(accuracies, axis=0), np.mean(accuracies, axis=0))


def _overall(
    ground: Ground,
    kinds: Sequence[Kind],
    tallies: dict[Kind, Tally],
    clean: Floats,
    known: dict[str, Any],
) -> dict[str, Any]:
    count, n = len(ground.videos), known["n"]
    found = {"clean": known}
    names = ("mean", "worst", "relative", "retention", "consistency", "coefficient")
    lost = [ground.label(kind) for kind in kinds if kind not in tallies]
    if lost:
        return {**found, **dict.fromkeys(names, missing(f"incomplete: no {', '.join(lost)}"))}
    accuracies = np.array([tallies[kind].accuracy for kind in kinds])
    mean = np.mean(accuracies, axis=0)
    worst = min(kinds, key=lambda kind: (float(tallies[kind].accuracy[0]), ground.label(kind)))
    numbers = {
        "mean": (mean, ""),
        "worst": (np.min(accuracies, axis=0), ""),
        "relative": (over(mean, clean), "clean accuracy is 0"),
        "retention": (
            np.mean([tallies[kind].retention for kind in kinds], axis=0),
            "no right prediction before",
        ),
        "consistency": (
            np.mean([over(tallies[k].same, tallies[k].valid) for k in kinds], axis=0),
            "",
        ),
        "coefficient": (robustness_coefficient(accuracies), "no right prediction at all"),
    }
    for name, (values, reason) in numbers.items():
        found[name] = entry(values, n, count, reason=reason)
    if len(kinds) == 1:
        found["coefficient"] = missing("one type has no spread")
    found["worst"]["type"] = ground.label(worst)
    return found


def _mean_fact(run: RunView, name: str) -> float | None:
    """Return the mean of what records say about the segment, where it is known."""
    known = [
        float(record["transform"][name])
        for record in run.records
        if (record.get("transform") or {}).get(name) is not None
    ]
    return sum(known) / len(known) if known else None
