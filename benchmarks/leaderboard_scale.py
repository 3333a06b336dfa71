"""Time and size of a leaderboard of many runs.

Makes a few real runs of the bundled models, multiplies them with other seeds and video ids (their
identities are recomputed, so that every check passes), and builds the site in a process of its own.

    python benchmarks/leaderboard_scale.py
    python benchmarks/leaderboard_scale.py --runs 200 --videos 100 --keep site
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from vcr_core.config.identity import run_id
from vcr_core.config.resolve import resolve_run

MODELS = ("tiny-r3d", "tiny-tsm", "tiny-vit")
DEFENSES = ((), ("--defense", "gaussian-blur"), ("--defense", "rotate"))
EPS = ("1/255", "2/255")
LIMIT_S = 60.0


def real_runs(folder: Path) -> list[Path]:
    """Make the runs that are multiplied."""
    vcr = [sys.executable, "-m", "vcr_core", "run", "-q", "--attack", "ifgsm", "--limit", "16"]
    for model in MODELS:
        for defense in DEFENSES:
            for eps in EPS:
                options = ["--model", model, *defense, "--eps", eps, "--results", str(folder)]
                subprocess.run([*vcr, *options], check=True, stdout=subprocess.DEVNULL)
    return sorted(path.parent for path in folder.glob("*/run.json"))


def multiply(source: Path, target: Path, seed: int, videos: int) -> None:
    """Write the run again with another seed and so many videos."""
    manifest = json.loads((source / "run.json").read_text())
    text = (source / "resolved.toml").read_text().replace("seed = 42", f"seed = {seed}", 1)
    lines = [p.read_text().splitlines() for p in sorted((source / "records").glob("*.jsonl"))]
    records: list[dict[str, Any]] = [json.loads(line) for part in lines for line in part]
    copies = [
        {**record, "video": f"{record['video']}-{copy}"}
        for copy in range(-(-videos // len(records)))
        for record in records
    ][:videos]
    resolved = resolve_run(source / "resolved.toml", overrides=[f"seed={seed}"])
    name, digest = run_id(resolved.identity, [(r["video"], r["label"]) for r in copies])
    manifest |= {"run": name, "experiment_hash": digest, "seed": seed}
    manifest["experiment"]["seed"] = seed
    manifest["batches"] = [[record["video"] for record in copies]]
    manifest["dataset"] |= {"n": len(copies), "fingerprint": f"{seed % 2:032x}"}
    folder = target / name
    (folder / "records").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(manifest))
    (folder / "resolved.toml").write_text(text)
    out = "".join(json.dumps({**record, "run": name, "batch": 0}) + "\n" for record in copies)
    (folder / "records" / "part-0-0.jsonl").write_text(out)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--videos", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="where to keep the site")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        sources = real_runs(here / "real")
        for number in range(options.runs):
            source = sources[number % len(sources)]
            multiply(source, here / "runs", 1000 + number // len(sources), options.videos)
        shutil.rmtree(here / "real")
        site = here / "site"
        command = [sys.executable, "-m", "vcr_core", "leaderboard", "build", str(here / "runs")]
        start = time.perf_counter()
        process = subprocess.Popen([*command, "--output", str(site)])
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        if status:
            raise SystemExit(f"the build ended with {os.waitstatus_to_exitcode(status)}")
        files = [path for path in site.rglob("*") if path.is_file()]
        print(f"build: {wall:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU")
        print(f"memory: {used.ru_maxrss / 1024:.0f} MB at most")
        print(f"site: {len(files)} files, {sum(p.stat().st_size for p in files) / 1e6:.1f} MB")
        print(f"index.html: {(site / 'index.html').stat().st_size / 1e6:.2f} MB")
        if options.keep:
            shutil.copytree(site, options.keep, dirs_exist_ok=True)
        if wall > LIMIT_S:
            print(f"slower than {LIMIT_S:.0f} s")


if __name__ == "__main__":
    main()
