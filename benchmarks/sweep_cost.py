"""Cost of a sweep of six attacks by six defenses over the sum of its runs done separately.

The sweep attacks once, judges every defense on what came out, and loads the model once.
``separately`` does the same 36 runs in folders and caches of their own, one after the other in this
process, so that neither imports nor start-up count.

Run: ``python benchmarks/sweep_cost.py [model] [videos]``. Budget: 0.35.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from device import DEVICE, KIND, clock
from vcr_core.config.sweep import expand
from vcr_core.sweeping import run_sweep

GRADIENT_ATTACKS = ["ifgsm", "mifgsm", "pgd", "apgd"]
SCORE_ATTACKS = ["nes", "square"]
DEFENSES = ["none", "gaussian-blur", "median", "jpeg", "bit-depth", "temporal-median"]
BUDGET = 0.35


def tables(model: str, videos: int, **more: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "dataset": {"name": "motion", "limit": videos},
        "model": {"name": model},
        "threat": {"eps": "2/255", "max_forwards": 100},
        "protocol": {"attacker_knows_defense": False, "stop": "budget", "eval_repeats": 1},
        "metrics": {"names": ["psnr", "ssim"]},
        "output": {"keep_clips": 0},
        "runtime": {"device": DEVICE, "threads": 1, "batch_videos": 8, **more},
    }


def seconds(folder: Path, document: dict[str, Any]) -> float:
    """Return the seconds of a sweep."""
    started = clock()
    outcome = run_sweep(expand(document), results=folder)
    if outcome.exit_code:
        raise SystemExit("\n".join(outcome.messages))
    return clock() - started


def main(model: str = "tiny-r3d", videos: str = "16") -> int:
    torch.set_num_threads(1)
    attacks = [*GRADIENT_ATTACKS, *SCORE_ATTACKS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["VCR_CACHE_DIR"] = str(folder / "cache")
        off = tables(model, int(videos), reuse=False)
        seconds(folder / "warm-up", {**off, "matrix": {"attack": ["ifgsm"]}})
        matrix = {"attack": attacks, "defense": DEFENSES}
        together = seconds(folder / "together", {**tables(model, int(videos)), "matrix": matrix})
        alone = 0.0
        for attack in attacks:
            for defense in DEFENSES:
                matrix = {"attack": [attack], "defense": [defense]}
                alone += seconds(folder / f"{attack}-{defense}", {**off, "matrix": matrix})
    ratio = together / alone
    print(f"{model}, {videos} videos, {KIND}, {len(attacks)} attacks x {len(DEFENSES)} defenses")
    print(f"  separately {alone:7.1f} s")
    print(f"  as a sweep {together:7.1f} s   ratio {ratio:.3f}   budget {BUDGET}")
    return int(ratio > BUDGET)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
