"""Wall time and peak memory of ``vcr demo`` from an installed environment.

Run: ``python benchmarks/demo.py``. Budget: 90 s on 2 cores, 2 GB.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "vcr_core", "demo", "--results", str(Path(name) / "demo"), "-q"],
            capture_output=True, text=True, check=False,
            # Without what an earlier demo has left to be reused.
            env={**os.environ, "VCR_CACHE_DIR": str(Path(name) / "cache")},
        )  # fmt: skip
        wall = time.perf_counter() - started
        report = Path(name) / "demo" / "report.html"
        size = report.stat().st_size / 1024 if report.is_file() else 0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = len(done.stdout.splitlines()) - 1
    print(f"exit code {done.returncode}, {rows} rows, report {size:.0f} kB")
    print(f"wall {wall:.1f} s, CPU {used.ru_utime + used.ru_stime:.1f} s, "
          f"peak memory {used.ru_maxrss / 1024:.0f} MB")  # fmt: skip
    if done.returncode:
        print(done.stderr[-2000:])


if __name__ == "__main__":
    main()
