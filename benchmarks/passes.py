"""What half precision, compilation and the order of channels change: logits, decisions, CPU time.

For every option: the largest difference of a clean logit, how many of the videos' clean predictions
and how many outcomes of ``ifgsm`` at 2/255 differ from those without it, and the CPU time of a
forward and backward pass over that without it, the least of some rounds.

Run: ``python benchmarks/passes.py [videos] [model …]``. There is no budget: the numbers stand in
``docs/explanations/speed.md``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from vcr_core.config.resolve import resolve_run
from vcr_core.engine.decode import decode
from vcr_core.engine.execution import execute
from vcr_core.engine.run import open_run
from vcr_core.engine.setup import Setup, build_setup
from vcr_core.engine.subset import select_videos
from vcr_core.records import read_records

OPTIONS = {
    "as it is": [],
    "bfloat16": ["protocol.autocast=bfloat16"],
    "float16": ["protocol.autocast=float16"],
    "channels_last": ["runtime.channels_last=true"],
    "compile": ["runtime.compile=true"],
}
ROUNDS = 5


def resolved(model: str, videos: int, options: list[str]) -> Any:
    tables = {
        "schema": 1,
        "dataset": {"name": "motion", "limit": videos},
        "model": {"name": model},
        "attack": {"name": "ifgsm"},
        "threat": {"eps": "2/255"},
        "metrics": {"names": []},
        "output": {"keep_clips": 0},
        "runtime": {"device": "cpu", "threads": 1, "reuse": False},
    }
    return resolve_run(tables, overrides=options)


def clips_of(setup: Setup) -> Tensor:
    videos = select_videos(setup.experiment, setup.dataset)
    decoded = [decode(setup, video) for video, _ in videos]
    return torch.cat([one.frames[one.gather] for one in decoded])


def seconds(setup: Setup, clips: Tensor) -> float:
    """Return the CPU time of the fastest pass of 8 clips."""
    best = float("inf")
    for _ in range(ROUNDS):
        leaf = clips[:8].clone().requires_grad_()
        began = time.process_time()
        setup.model.logits(leaf).sum().backward()
        best = min(best, time.process_time() - began)
    return best


def outcomes(model: str, videos: int, options: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run = open_run(resolved(model, videos, options), results=Path(folder))
        if execute(run).exit_code:
            raise SystemExit(f"{model} {options}: failed")
        return {
            r["video"]: (r["status"], r.get("success", {}).get("changed"))
            for r in read_records(run.folder)
        }


def main(videos: int, models: list[str]) -> int:
    torch.set_num_threads(1)
    os.environ.setdefault("VCR_CACHE_DIR", tempfile.mkdtemp())
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {videos} videos")
    for model in models:
        plain: Any = None
        for name, options in OPTIONS.items():
            setup = build_setup(resolved(model, videos, options).experiment)
            clips = clips_of(setup)
            with torch.no_grad():
                logits = setup.model.logits(clips)
            found = (logits, outcomes(model, videos, options), seconds(setup, clips))
            plain = plain or found
            gap = float((found[0] - plain[0]).abs().max())
            guesses = int((found[0].argmax(-1) != plain[0].argmax(-1)).sum())
            flags = sum(found[1][video] != flag for video, flag in plain[1].items())
            ratio = found[2] / plain[2]
            print(
                f"{model:10} {name:14} {gap:9.2g} {guesses:3d} {flags:3d} {ratio:6.2f}", flush=True
            )
    return 0


if __name__ == "__main__":
    count, *names = sys.argv[1:] or ["16"]
    sys.exit(main(int(count), names or ["tiny-r3d", "tiny-vit"]))
