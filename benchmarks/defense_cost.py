"""CPU time of the cheap input defenses on a clip of 16 frames of 224x224 pixels.

One thread; every defense is run several times, interleaved with the others so that a busy machine
slows all of them alike, and its fastest run counts. The yardstick is one forward pass of
`tiny-r3d` at that size: its network on the clip after its own 2x2 pooling.

    python benchmarks/defense_cost.py
    python benchmarks/defense_cost.py --runs 9 --only median tvm

Budget for each: a tenth of that forward pass, or 15 ms a frame, whichever is larger.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from vcr_core.api import load
from vcr_core.randomness import VideoRandom
from vcr_models.tiny.build import TinyClassifier
from vcr_models.tiny.front import pool

FRAMES, SIZE = 16, 224
MS_PER_FRAME = 15.0
CHEAP = (
    "bilateral", "bit-depth", "crop-resize", "domain-transform", "flip", "gaussian-blur", "jpeg",
    "median", "random-resize-pad", "rotate", "temporal-median", "temporal-shuffle",
    "temporal-subsample", "tvm", "video-codec",
)  # fmt: skip


def clip() -> Tensor:
    """Return ``[1, 1, 16, 3, 224, 224]``: a moving pattern with some noise, on the 8-bit grid."""
    t, y, x = torch.meshgrid(
        torch.arange(FRAMES), torch.arange(SIZE), torch.arange(SIZE), indexing="ij"
    )
    planes = [
        0.5 + 0.3 * torch.sin((x + 2 * t) / (9 + c)) * torch.cos((y - t) / (7 + c))
        for c in range(3)
    ]
    noise = torch.randn(FRAMES, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    frames = (torch.stack(planes, dim=1) + 0.02 * noise).clamp(0, 1)
    return (frames * 255).round().div(255).view(1, 1, FRAMES, 3, SIZE, SIZE)


def jobs(names: list[str]) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name; the yardstick has the name ``""``."""
    clips = clip()
    model = TinyClassifier.load("tiny-r3d")
    pooled = pool(clips[0])
    made: dict[str, Callable[[], object]] = {"": lambda: model.network(pooled)}
    for name in names:
        defense = load("defense", name)
        made[name] = lambda defense=defense: defense.apply(clips, VideoRandom([0]))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=CHEAP, default=list(CHEAP))
    options = parser.parse_args()
    torch.set_num_threads(1)
    work = jobs(options.only)
    times: dict[str, list[float]] = {name: [] for name in work}
    with torch.no_grad():
        for _ in range(options.runs + 1):  # the first round warms up
            for name, run in work.items():
                start = time.process_time()
                run()
                times[name].append(time.process_time() - start)
    best = {name: 1000 * min(rounds[1:]) for name, rounds in times.items()}
    forward = best.pop("")
    budget = max(forward / 10, MS_PER_FRAME * FRAMES)
    print(f"{FRAMES} frames of {SIZE}x{SIZE}, one thread, fastest of {options.runs}")
    print(f"forward pass of tiny-r3d: {forward:.0f} ms; budget of a defense: {budget:.0f} ms")
    print(f"{'defense':<20} {'ms a clip':>10} {'ms a frame':>11} {'of a forward':>13}")
    for name, ms in sorted(best.items(), key=lambda item: item[1]):
        mark = "" if ms <= budget else "  OVER BUDGET"
        print(f"{name:<20} {ms:>10.1f} {ms / FRAMES:>11.2f} {ms / forward:>12.1%}{mark}")
    return int(max(best.values()) > budget)


if __name__ == "__main__":
    raise SystemExit(main())
