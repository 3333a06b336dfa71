"""Wall time of a run whose metrics are measured beside the judging, over that of one in turn.

    python benchmarks/metrics_beside.py
    python benchmarks/metrics_beside.py --pairs 9 --repeats 40
    python benchmarks/metrics_beside.py --wait-ms 4

One thread of torch; VMAF has a process of its own. Runs with and without take turns, and the median
of the pairs counts, since a machine is seldom idle. ``--wait-ms`` lets every clip in the model wait
besides, which takes time and no core: a stand-in for a device that works while the cores are idle.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from torch import Tensor
from vcr_core.api import evaluate, load
from vcr_core.record_schema import stable_part

STAGES = ("decode", "clean", "attack", "eval", "metrics")


def model(wait_s: float) -> Any:
    """Return ``tiny-r3d``, each clip of which takes so many seconds more."""
    found = load("model", "tiny-r3d")
    logits = found.logits

    def waiting(clips: Tensor) -> Tensor:
        time.sleep(wait_s * len(clips))
        return logits(clips)

    found.logits = waiting
    return found


def run(args: argparse.Namespace, overlap: bool) -> tuple[float, list[dict[str, Any]]]:
    """Return the seconds of one run and its records."""
    began = time.perf_counter()
    result = evaluate(
        model=model(args.wait_ms / 1000), dataset="motion", attack="pgd",
        defense="random-resize-pad", metrics=["vmaf"], limit=args.videos,
        protocol={"attacker_knows_defense": False, "eval_repeats": args.repeats},
        runtime={"device": "cpu", "threads": 1, "overlap_metrics": overlap, "reuse": False},
    )  # fmt: skip
    return time.perf_counter() - began, result.records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5, help="draws that judge a video")
    parser.add_argument("--wait-ms", type=float, default=0.0, help="a clip's wait in the model")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs")
    args = parser.parse_args()
    run(args, overlap=False)  # loads everything
    ratios = []
    for number in range(args.pairs):
        taken, records = {}, {}
        for overlap in (False, True) if number % 2 else (True, False):
            taken[overlap], records[overlap] = run(args, overlap)
        apart, beside = ([stable_part(r) for r in records[way]] for way in (False, True))
        ratios.append(taken[True] / taken[False])
        parts = " ".join(
            f"{stage} {sum(r['cost'].get(f't_{stage}_s', 0) for r in records[False]):.2f}"
            for stage in STAGES
        )
        same = "equal" if apart == beside else "NOT EQUAL"
        print(
            f"in turn {taken[False]:.2f} s ({parts}), beside {taken[True]:.2f} s, "
            f"ratio {ratios[-1]:.2f}; records {same}"
        )
    print(f"median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
