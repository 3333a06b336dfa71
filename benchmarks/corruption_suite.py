"""CPU time of every corruption against clean forward passes of a model, on one clip.

A clip of 16 frames of 112x112 pixels, coloured clouds that drift. ``tiny-r3d`` looks at it at that
size (its own is smaller), so that the forward pass and the damage are of the same pixels. Each
severity of a type and the forward pass take turns in one process on one thread; the best of a few
rounds counts. Types that act on the whole video encode and decode it or reorder its frames; they
are listed apart.

Run: ``python benchmarks/corruption_suite.py [rounds] [device]``. Budget: the median over the suite
``gu10`` in five severities is at most 3 forward passes.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import torch
import vcr_core as vcr
from vcr_attacks.corruptions.weather import plasma
from vcr_attacks.specs import corruptions, video_corruptions
from vcr_core.protocols import TransformContext, WholeVideo
from vcr_core.randomness import VideoRandom

FRAMES, SIDE = 16, 112
BUDGET = 3.0


def clip() -> torch.Tensor:
    """Return ``[1, T, 3, H, W]`` on the 8-bit grid."""
    generator = torch.Generator().manual_seed(0)
    clouds = torch.stack([plasma(128, 1.7, generator) for _ in range(3)])
    frames = [clouds.roll((2 * t, -t), dims=(-2, -1))[:, :SIDE, :SIDE] for t in range(FRAMES)]
    return (torch.stack(frames) * 255).round()[None] / 255


def spent(work: Callable[[], Any], device: str) -> float:
    """Return seconds: of the processor, or of the wall clock where a device does the work."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    started = clock()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - started


def of_frames(name: str, severity: int, video: torch.Tensor) -> Callable[[], Any]:
    attack = vcr.load("attack", name, severity=severity)
    context: Any = SimpleNamespace(random=VideoRandom([1]))
    return lambda: attack.attack(None, video, None, context)


def of_source(name: str, severity: int, video: WholeVideo) -> Callable[[], Any]:
    attack = vcr.load("attack", name, severity=severity)
    return lambda: attack.transform(video, TransformContext(VideoRandom([1])))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    torch.set_num_threads(1)
    video = clip().to(device)
    model = vcr.load("model", "tiny-r3d").to(device)
    network = model.network

    def forward() -> None:
        # Past the model's own resizing: the pixels that are damaged are the ones it looks at.
        with torch.no_grad():
            network(video)

    pixels = (video[0].permute(0, 2, 3, 1) * 255).byte().cpu().numpy()
    whole = WholeVideo("clip", 0, pixels, Fraction(25))
    work: dict[tuple[str, int], Callable[[], Any]] = {}
    for spec in corruptions.SPECS:
        work |= {(spec.name, s): of_frames(spec.name, s, video) for s in range(1, 6)}
    for spec in video_corruptions.SPECS:
        work |= {(spec.name, s): of_source(spec.name, s, whole) for s in range(1, 6)}
    passes, times = [], {key: [] for key in work}
    for _ in range(rounds + 1):  # the first one warms up
        for key, call in work.items():
            times[key].append(spent(call, device))
            if key[1] == 1:
                passes.append(spent(forward, device))
    unit = min(passes)
    ratio = {key: min(found[1:]) / unit for key, found in times.items()}
    print(f"forward pass: {1e3 * unit:.2f} ms ({device}, best of {len(passes)})\n")
    for title, specs in (("frames", corruptions.SPECS), ("video", video_corruptions.SPECS)):
        print(f"| of the {title} | gu10 | 1 | 2 | 3 | 4 | 5 | ms at worst |")
        print("|---|---|---|---|---|---|---|---|")
        for spec in sorted(specs, key=lambda s: -max(ratio[s.name, k] for k in range(1, 6))):
            cells = [ratio[spec.name, s] for s in range(1, 6)]
            shown = " | ".join(f"{cell:.2f}" for cell in cells)
            mark = "x" if "gu10" in spec.tags else ""
            print(f"| `{spec.name}` | {mark} | {shown} | {1e3 * unit * max(cells):.1f} |")
        print()
    suite = [r for (name, _), r in ratio.items() if "gu10" in _tags(name)]
    median = statistics.median(suite)
    slow = sorted({name for (name, _), r in ratio.items() if r > BUDGET})
    verdict = "within" if median <= BUDGET else "over"
    print(f"gu10: median {median:.2f} forward passes, worst {max(suite):.2f}: {verdict} the budget")
    print(f"types over {BUDGET:g} forward passes: {', '.join(slow) or 'none'}")


def _tags(name: str) -> frozenset[str]:
    specs = (*corruptions.SPECS, *video_corruptions.SPECS)
    return next(spec.tags for spec in specs if spec.name == name)


if __name__ == "__main__":
    main()
