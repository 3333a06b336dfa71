"""CPU time of light commands above that of a bare interpreter.

Runs are interleaved, so that a busy machine slows all of them alike; medians are compared.

    python benchmarks/startup.py
    python benchmarks/startup.py --runs 31 --budget 0.25
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

RUN = "import sys; from vcr_core.cli import main; raise SystemExit(main(sys.argv[1:]))"
BARE = ("bare interpreter", ["-c", "pass"])
COMMANDS = {
    "vcr --help": ["-c", RUN, "--help"],
    "vcr list": ["-c", RUN, "list"],
    "vcr list --json": ["-c", RUN, "list", "--json"],
}


def cpu_seconds(arguments: list[str]) -> float:
    """Return user and system time of one child process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--budget", type=float, default=0.25, help="seconds for `vcr list`")
    options = parser.parse_args()
    jobs = dict([BARE], **COMMANDS)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for arguments in jobs.values():  # byte code and file caches are warm afterwards
        cpu_seconds(arguments)
    for _ in range(options.runs):
        for name, arguments in jobs.items():
            times[name].append(cpu_seconds(arguments))
    bare = statistics.median(times[BARE[0]])
    print(f"{BARE[0]:<18} {bare:.3f} s CPU, median of {options.runs}")
    above = {name: statistics.median(times[name]) - bare for name in COMMANDS}
    for name, seconds in above.items():
        print(f"{name:<18} {seconds:+.3f} s above it")
    kept = above["vcr list"] <= options.budget
    print(f"budget of `vcr list`: {options.budget:.2f} s, {'kept' if kept else 'EXCEEDED'}")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
