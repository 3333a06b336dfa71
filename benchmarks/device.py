"""Where benchmarks compute, and the clock that fits: ``VCR_BENCHMARK_DEVICE``, else the CPU."""

from __future__ import annotations

import os
import time

import torch

DEVICE = os.environ.get("VCR_BENCHMARK_DEVICE", "cpu")
ON_CPU = DEVICE == "cpu"
KIND = "CPU time" if ON_CPU else f"time on {DEVICE}"


def clock() -> float:
    """Return seconds: of the CPU, so that a busy machine does not count; else of a synced clock."""
    if ON_CPU:
        return time.process_time()
    torch.cuda.synchronize(DEVICE)
    return time.perf_counter()
