"""CPU time of one attack judged against many defenses over the attack alone and the judging.

The sweep attacks the bare model once and judges eight defenses on what came out. It is compared
with the least that this can cost: the attacked run on its own, and for every defense the same run
with an attack that does nothing, so that decoding, predictions, metrics and records are paid for
and the attack is not. ``without reuse`` is the sweep with ``runtime.reuse = false``.

Run: ``python benchmarks/defend_many.py [model] [videos]``. Budget: the sweep costs at most 1.5
times the least.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from vcr_core.config.sweep import expand
from vcr_core.sweeping import run_sweep

DEFENSES = [
    "bit-depth", "crop-resize", "flip", "gaussian-blur", "jpeg", "median", "rotate",
    "temporal-median",
]  # fmt: skip
BUDGET = 1.5
ROUNDS = 3


def cost(folder: Path, model: str, videos: int, *, matrix: dict[str, Any], **more: Any) -> float:
    """Return the CPU seconds of a sweep in an empty folder."""
    tables = {
        "schema": 1,
        "dataset": {"name": "motion", "limit": videos},
        "model": {"name": model},
        "attack": {"name": "pgd", "steps": 20},
        "threat": {"eps": more.pop("eps", "2/255")},
        "protocol": {"attacker_knows_defense": False, "stop": "budget", "eval_repeats": 1},
        "metrics": {"names": ["psnr", "ssim"]},
        "output": {"keep_clips": 0},
        "runtime": {"device": "cpu", "threads": 1, "batch_videos": 8, **more},
        "matrix": matrix,
    }
    combinations = expand(tables)
    started = time.process_time()
    outcome = run_sweep(combinations, results=folder / "results")
    spent = time.process_time() - started
    if outcome.exit_code:
        raise SystemExit("\n".join(outcome.messages))
    return spent


def main(model: str = "tiny-r3d", videos: str = "16") -> int:
    torch.set_num_threads(1)
    many: dict[str, Any] = {"defense": ["none", *DEFENSES]}
    kinds: dict[str, dict[str, Any]] = {
        "warm-up": {"matrix": {"defense": ["none"]}, "reuse": False, "eps": 0},
        "sweep": {"matrix": many},
        "attack alone": {"matrix": {"defense": ["none"]}, "reuse": False},
        # A radius of 0 skips the attack and nothing else.
        "judging alone": {"matrix": {"defense": DEFENSES}, "reuse": False, "eps": 0},
        "without reuse": {"matrix": many, "reuse": False},
    }
    best: dict[str, float] = {}
    for turn in range(ROUNDS):
        for name, options in kinds.items():
            if turn and name in ("warm-up", "without reuse"):
                continue
            with tempfile.TemporaryDirectory() as folder:
                os.environ["VCR_CACHE_DIR"] = str(Path(folder) / "cache")
                spent = cost(Path(folder), model, int(videos), **options)
            best[name] = min(spent, best.get(name, spent))
    least = best["attack alone"] + best["judging alone"]
    for name in ("attack alone", "judging alone", "sweep", "without reuse"):
        print(f"{name:14} {best[name]:7.2f} s CPU")
    ratio = best["sweep"] / least
    print(f"sweep over attack and judging alone: {ratio:.2f} (budget {BUDGET})")
    print(f"sweep over the same without reuse:   {best['sweep'] / best['without reuse']:.2f}")
    return int(ratio > BUDGET)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
