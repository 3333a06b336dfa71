"""Time and memory of commands that read many records: status, report, export.

Makes a few real runs of the bundled models and multiplies them: other videos, labels, predictions
and numbers in each record, everything else as it was written. Each command is a process of its own.

    python benchmarks/records_scale.py
    python benchmarks/records_scale.py --runs 2000 --videos 50 --only status
    python benchmarks/records_scale.py --keep sweep
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CLASSES = 400
MODELS = ("tiny-r3d", "tiny-tsm")
ATTACKS = ("ifgsm", "pgd")
DEFENSES = ((), ("--defense", "gaussian-blur"), ("--defense", "random-resize-pad"))
SEEDED = 3
"""A combination is there so many times, with other seeds, before the next model's name."""

_REPORT = {"cpu_s": 60.0, "megabytes": 2000.0}
LIMITS = {"status": {"cpu_s": 2.0}, "terminal": _REPORT, "html": _REPORT, "export": _REPORT}
"""For 100,000 records, by command."""

VCR = (sys.executable, "-m", "vcr_core")


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    cpu_s: float
    wall_s: float
    megabytes: float


def cost(command: list[str], stdout: Path) -> Cost:
    """Run a command to its end and return what it took."""
    start = time.perf_counter()
    with stdout.open("wb") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)


def real_runs(folder: Path) -> list[Path]:
    """Make the runs that are multiplied."""
    for model in MODELS:
        for attack in ATTACKS:
            for defense in DEFENSES:
                chosen = ["--model", model, "--attack", attack, *defense, "--limit", "8"]
                options = ["-q", "--results", str(folder), "--set", "protocol.eval_repeats=3"]
                command = [*VCR, "run", *chosen, *options]
                quiet = subprocess.DEVNULL
                subprocess.run(command, check=True, stdout=quiet, stderr=quiet)
    return sorted(path.parent for path in folder.glob("*/run.json"))


def make_sweep(folder: Path, runs: int, videos: int) -> None:
    """Write so many run folders with so many records each."""
    with tempfile.TemporaryDirectory() as name:
        sources = real_runs(Path(name))
        for number in range(runs):
            multiply(sources[number % len(sources)], folder, number // len(sources), videos)


def multiply(source: Path, target: Path, number: int, videos: int) -> None:
    """Write the run again: copy ``number``, of so many videos."""
    manifest = json.loads((source / "run.json").read_text())
    lines = [p.read_text().splitlines() for p in sorted((source / "records").glob("*.jsonl"))]
    records: list[dict[str, Any]] = [json.loads(line) for part in lines for line in part]
    draw = random.Random(f"{source.name} {number}")
    name = f"{source.name}-{number:04d}"
    model = f"{manifest['experiment']['model']['name']}-{number // SEEDED}"
    manifest |= {"run": name, "seed": 42 + number % SEEDED}
    manifest["experiment"]["seed"] = manifest["seed"]
    manifest["experiment"]["model"]["name"] = model
    manifest["dataset"] |= {"n": videos, "labels": [f"class {i}" for i in range(CLASSES)]}
    ids = [f"video-{i:011x}" for i in range(videos)]
    manifest["batches"] = [ids[i : i + 4] for i in range(0, videos, 4)]
    end = datetime(2026, 5, 1, tzinfo=UTC)
    out = []
    for i, video in enumerate(ids):
        own = {"run": name, "video": video, "batch": i // 4, "t_end": f"{end:%FT%T}.000+00:00"}
        out.append(json.dumps(varied({**records[i % len(records)], **own}, draw)))
        end += timedelta(seconds=draw.uniform(1, 3))
    (target / name / "records").mkdir(parents=True)
    (target / name / "run.json").write_text(json.dumps(manifest, indent=2))
    (target / name / "records" / "part-0of1-1.jsonl").write_text("\n".join(out) + "\n")


def varied(record: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return a record like the given one with other labels and numbers; some are errors."""
    if draw.random() < 0.01:
        kept = ("schema", "run", "video", "batch", "shard", "attempt", "host", "t_end")
        error = {"stage": "decode", "type": "VideoReadError", "message": "the file is cut off"}
        plain = {name: record[name] for name in kept}
        return {**plain, "status": "error", "label": 0, "error": error}
    label = draw.randrange(CLASSES)
    found: dict[str, Any] = _jittered(record, draw)
    for name in ("clean", "clean_defended", "attacked", "attacked_defended"):
        corners = found.get(name) or []
        for corner in corners if isinstance(corners, list) else [corners]:
            right = draw.random() < (0.9 if name.startswith("clean") else 0.3)
            corner["pred"] = label if right else draw.randrange(CLASSES)
            corner["top5"] = [corner["pred"], *(draw.randrange(CLASSES) for _ in range(4))]
    return {**found, "label": label}


def _jittered(value: Any, draw: random.Random) -> Any:
    if isinstance(value, dict):
        return {name: _jittered(part, draw) for name, part in value.items()}
    if isinstance(value, list):
        return [_jittered(part, draw) for part in value]
    return value * draw.uniform(0.9, 1.0) if isinstance(value, float) else value


def measure(sweep: Path, out: Path, names: list[str]) -> dict[str, Cost]:
    """Return what each command takes; what they write goes to ``out``."""
    commands = {
        "status": ["status", str(sweep)],
        "terminal": ["report", str(sweep)],
        "html": ["report", str(sweep), "--output", str(out / "report.html")],
        "export": ["export", str(sweep), "--output", str(out / "records.csv")],
    }
    return {name: cost([*VCR, *commands[name]], out / f"{name}.txt") for name in names}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--videos", type=int, default=1000)
    parser.add_argument("--only", choices=list(LIMITS), action="append", help="repeatable")
    parser.add_argument("--keep", type=Path, help="where the sweep lies, or shall lie, for again")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        here = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sweep = options.keep or here / "sweep"
        if not sweep.exists():
            make_sweep(sweep, options.runs, options.videos)
        files = list(sweep.glob("*/records/*"))
        size = sum(path.stat().st_size for path in files)
        print(f"{len(files)} runs, {size / 1e6:.0f} MB of records")
        costs = measure(sweep, here, options.only or list(LIMITS))
        for path in sorted([*here.glob("*.html"), *here.glob("*.csv")]):
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    kept = True
    for name, took in costs.items():
        print(
            f"{name:<10}{took.cpu_s:6.2f} s CPU, {took.wall_s:6.2f} s wall, "
            f"{took.megabytes:5.0f} MB; limits: {LIMITS[name]}"
        )
        kept &= all(getattr(took, key) <= limit for key, limit in LIMITS[name].items())
    print(f"limits {'kept' if kept else 'EXCEEDED'}")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
