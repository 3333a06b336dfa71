"""Throughput of two worker processes over one, on the same sweep; each with one thread.

Both start from nothing and load what they need, which is part of the time: the more videos, the
less it counts. Meaningful where two cores (or devices) are free: the clock on the wall counts.

Run: ``python benchmarks/workers.py [model] [videos] [steps]``. Budget: 1.8.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from device import ON_CPU

SWEEP = """\
schema = 1
[dataset]
name = "motion"
limit = {videos}
[model]
name = "{model}"
[attack]
name = "pgd"
steps = {steps}
[protocol]
stop = "budget"
[runtime]
device = "{device}"
threads = 1
batch_videos = 4
reuse = false
[matrix]
"threat.eps" = ["1/255", "2/255"]
"""
BUDGET = 1.8


def seconds(folder: Path, workers: int) -> float:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "vcr_core", "sweep", str(folder / "sweep.toml"), "-q",
         "--results", str(folder / f"results-{workers}"), "--workers", str(workers)],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - started


def main(model: str = "tiny-r3d", videos: str = "256", steps: str = "40") -> int:
    device = "cpu" if ON_CPU else "auto"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = SWEEP.format(videos=videos, model=model, steps=steps, device=device)
        (folder / "sweep.toml").write_text(text)
        one, two = seconds(folder, 1), seconds(folder, 2)
    busy = os.getloadavg()[0]
    print(f"{model}, 2 runs x {videos} videos x {steps} steps, {os.cpu_count()} cores, "
          f"load {busy:.1f} at the end")  # fmt: skip
    print(f"  1 worker {one:6.1f} s   2 workers {two:6.1f} s   ratio {one / two:.2f}   "
          f"budget {BUDGET}")  # fmt: skip
    return int(one / two < BUDGET)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
