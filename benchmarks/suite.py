"""Every figure of docs/explanations/figures.md in one go, on the CPU or on a GPU.

Each is a benchmark of this folder in a process of its own, and each measures its ratio in one run.
What they print goes to the screen and, with ``--output``, into a Markdown file.

Run: ``python benchmarks/suite.py [--device cuda:0] [--only NAME ...] [--output FILE]``
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import torch

HERE = Path(__file__).parent

FIGURES = {
    "engine": ("engine over the bare loop, 20 steps", ["engine_overhead.py", "tiny-r3d", "3"]),
    "batching": ("batched over one by one", ["batching.py"]),
    "sweep": ("sweep of 6 x 6 over its runs", ["sweep_cost.py", "tiny-r3d", "16"]),
    "warm": ("warm caches, up to the attacks", ["warm_caches.py", "16"]),
    "workers": ("two workers over one", ["workers.py"]),
    "decode": ("reading a video over a bare loop", ["read_video.py"]),
    "memory": ("memory over the number of clips", ["chunk_memory.py"]),
    "passes": ("half precision, compilation, channels last", ["passes.py"]),
    "model": ("cost model over measurements", ["cost_model.py"]),
    "records": ("status and report of 100,000 records", ["records_scale.py"]),
}
ON_ANY_DEVICE = {"engine", "batching", "sweep", "warm", "workers", "model"}
"""The others measure what no device takes part in, or are written for the CPU."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu, or a GPU such as cuda:0")
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--output", type=Path, help="Markdown file")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    on_cpu = asked.device == "cpu"
    where = platform.processor() or platform.machine()
    device = where if on_cpu else torch.cuda.get_device_name(asked.device)
    parts = [f"# Benchmarks on {device}", f"torch {torch.__version__}, {os.cpu_count()} cores"]
    failed = []
    for name in asked.only:
        title, command = FIGURES[name]
        if not on_cpu and name not in ON_ANY_DEVICE:
            continue
        print(f"## {title}", flush=True)
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(HERE / command[0]), *command[1:]],
            env={**os.environ, "VCR_BENCHMARK_DEVICE": asked.device},
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        print(done.stdout, f"({time.perf_counter() - started:.0f} s)\n", sep="", flush=True)
        parts.append(f"## {title}\n\n```text\n{done.stdout.rstrip()}\n```")
        if done.returncode:
            failed.append(name)
    if asked.output:
        asked.output.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    if failed:
        print(f"over their budget, or failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
