"""Time a video in a batch of 8 over one by one, and what a batch changes in the results.

I-FGSM with 10 steps through the whole contest, without metrics. A video's result must not depend on
its neighbours: predictions, successes and stored values are compared. A network's sums may be
ordered by batch size, which can turn the sign of a gradient that is zero but for rounding. So a few
of the stored values may differ, but no prediction and no success.

Run: ``python benchmarks/batching.py [model ...]``. Budget: not slower than one by one.
"""

from __future__ import annotations

import statistics
import sys

import torch
import vcr_core as vcr
from device import DEVICE, clock
from vcr_core.config.objects import resolve_objects
from vcr_core.engine.contest import Contest, Result
from vcr_core.engine.decode import decode
from vcr_core.engine.setup import build_setup

VIDEOS, STEPS, ROUNDS, EPS = 8, 10, 5, 4 / 255


def judged(result: Result) -> tuple[int, bool | None]:
    """Return prediction and success."""
    return result.fields["attacked"]["pred"], result.fields.get("success", {}).get("changed")


def main() -> None:
    for reference in sys.argv[1:] or ["tiny-r3d", "tiny-r2plus1d", "tiny-tsm", "tiny-vit"]:
        tables = {
            "threat": {"norm": "linf", "eps": EPS},
            "runtime": {"device": DEVICE, "threads": 1},
        }
        attack = vcr.load("attack", "ifgsm", steps=STEPS)
        resolved, parts = resolve_objects(
            tables, model=reference, attack=attack, defenses=[], dataset="motion", metrics=[],
            limit=VIDEOS,
        )  # fmt: skip
        setup = build_setup(resolved.experiment, parts)
        torch.set_num_threads(1)
        videos = [decode(setup, video) for video in list(setup.dataset.ids())[:VIDEOS]]

        def run(groups: list, setup=setup) -> list[Result]:
            return [r for g in groups for r in Contest(setup, g, None, lambda _stage: None).run()]

        ways = {"together": [videos], "alone": [[video] for video in videos]}
        results = {name: run(groups) for name, groups in ways.items()}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, groups in ways.items():
                started = clock()
                run(groups)
                seconds[name].append(clock() - started)
        ratios = [a / b for a, b in zip(*seconds.values(), strict=True)]
        pairs = [
            (a, b)
            for a, b in zip(results["together"], results["alone"], strict=True)
            if a.adversarial_frames is not None
        ]
        same = all(judged(a) == judged(b) for a, b in pairs)
        gap = max(abs(a.fields["attacked"]["p_label"] - b.fields["attacked"]["p_label"])
                  for a, b in pairs)  # fmt: skip
        differ = [(a.adversarial_frames != b.adversarial_frames).float().mean() for a, b in pairs]
        together, alone = (1e3 * min(s) / VIDEOS for s in seconds.values())
        print(f"{reference}: {statistics.median(ratios):.3f} of the time one by one "
              f"({together:.1f} / {alone:.1f} ms a video); predictions and successes "
              f"{'equal' if same else 'DIFFER'}, p(label) within {gap:.1e}, "
              f"{float(sum(differ)) / len(differ):.2%} of stored values differ",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
