"""Size and speed of the HTML report of many records: building, first paint, sorting.

Makes run folders with generated records (no model is run), builds the report in a process of its
own, and opens it in headless Chromium where Playwright and a browser are installed.

    python benchmarks/report_scale.py
    python benchmarks/report_scale.py --runs 200 --videos 50 --keep report.html
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CLASSES = 400
ATTACKS = ("ifgsm", "pgd", "square", "nes")
DEFENSES = (None, "jpeg", "median")
LIMITS = {"build_s": 10.0, "megabytes": 15.0, "first_paint_s": 1.0, "sort_s": 0.1}

# Clicks on a heading and waits for the next frame; the time in between, in ms.
SORT = """(selector) => new Promise((resolve) => {
  const start = performance.now();
  document.querySelector(selector).click();
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
})"""


def corner(draw: random.Random, label: int, right: bool) -> dict[str, Any]:
    """Return a prediction that is right or not."""
    p = round(0.5 + draw.random() / 2, 6)
    pred = label if right else (label + 1 + draw.randrange(CLASSES - 1)) % CLASSES
    top5 = [pred, *((pred + i) % CLASSES for i in range(1, 5))]
    return {"pred": pred, "p_label": p if right else 1 - p, "p_pred": p, "top5": top5,
            "margin": draw.gauss(1 if right else -1, 1)}  # fmt: skip


def record(draw: random.Random, run: str, number: int, defended: bool) -> dict[str, Any]:
    """Return the record of one video."""
    label = number % CLASSES
    right, held = draw.random() < 0.8, draw.random() < 0.4
    spent = draw.randrange(2, 1000)
    found: dict[str, Any] = {
        "schema": 1, "run": run, "video": f"{number:011x}_{number:06d}_{number + 10:06d}",
        "batch": number, "shard": "0of1", "attempt": 1, "label": label,
        "status": "ok" if right else "ineligible", "clean": corner(draw, label, right),
        "cost": {"forwards": spent, "backwards": spent, "t_attack_s": draw.random() * 9,
                 "t_eval_s": draw.random(), "t_clean_s": draw.random(),
                 "queries_to_first_success": None if held else spent},
    }  # fmt: skip
    if defended:
        found["clean_defended"] = corner(draw, label, right)
    if number % 97 == 0:
        error = {"stage": "decode", "type": "VideoReadError", "message": "file is cut off"}
        return {**found, "status": "error", "error": error}
    if right:
        found["attacked"] = corner(draw, label, held)
        if defended:
            found["attacked_defended"] = [corner(draw, label, held)]
        found["success"] = {"changed": not held, "n": int(not held), "of": 1}
        found["perturbation"] = {"linf": 0.03, "l2": draw.random() * 20, "l1": 0.01}
        found["metrics"] = {
            name: {"value": draw.random() * 40} for name in ("mse", "psnr", "ssim", "lpips")
        }
    return found


def write_run(folder: Path, number: int, videos: int) -> None:
    """Write one run folder."""
    draw = random.Random(number)
    attack = ATTACKS[number % len(ATTACKS)]
    defense = DEFENSES[number // len(ATTACKS) % len(DEFENSES)]
    model = f"model-{number // len(ATTACKS) // len(DEFENSES)}"
    name = f"k-{model}-{attack}-{defense or 'nodefense'}-{number:010x}"
    experiment: dict[str, Any] = {
        "seed": 42, "dataset": {"name": "made-up"}, "model": {"name": model},
        "attack": {"name": attack, "steps": 10},
        "threat": {"norm": "linf", "eps": 8 / 255, "targeted": False},
        "protocol": {"attacker_knows_defense": True},
    }  # fmt: skip
    if defense:
        experiment["defense"] = [{"name": defense}]
    records = [record(draw, name, i, defense is not None) for i in range(videos)]
    versions = {f"distribution-{i}": f"{i}.0" for i in range(60)}
    manifest = {
        "schema": 1, "run": name, "status": "done", "evaluation_version": 1, "seed": 42,
        "experiment": experiment, "components": [], "flags": [],
        "dataset": {"labels": [f"class number {i}" for i in range(CLASSES)], "fingerprint": "f"},
        "batches": [[r["video"]] for r in records],
        "environment": {"python": "3.11.9", "versions": versions},
        "started": "2026-05-01T10:00:00.000Z", "ended": "2026-05-01T10:01:00.000Z",
    }  # fmt: skip
    (folder / name / "records").mkdir(parents=True)
    (folder / name / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    lines = "".join(json.dumps(r) + "\n" for r in records)
    (folder / name / "records" / "part-0-0.jsonl").write_text(lines, encoding="utf-8")


def build(results: Path, page: Path) -> tuple[float, float]:
    """Build the report; return CPU and wall seconds of the whole command."""
    code = "import sys; from vcr_core.cli import main; raise SystemExit(main(sys.argv[1:]))"
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, "report", str(results), "--output", str(page)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


class Clock:
    """CPU time of a page's main thread, which other work on the machine does not lengthen."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.session = tab.context.new_cdp_session(tab)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds(self) -> float:
        """Return the time that the thread has spent on tasks so far."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

    def sort(self, selector: str) -> tuple[float, float]:
        """Return CPU and wall seconds of sorting by a column and painting, shortest of three."""
        times = []
        for _ in range(3):
            before = self.seconds()
            wall = float(self.tab.evaluate(SORT, selector)) / 1000
            times.append((self.seconds() - before, wall))
        return min(times)


def browse(page: Path) -> dict[str, float] | None:
    """Return seconds to the first paint and of sorting; ``None`` without a browser."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        paints = []
        for _ in range(3):
            tab = browser.new_page()
            tab.goto(page.resolve().as_uri())
            tab.wait_for_selector("#video-table tbody tr")
            paints.append(
                tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            )
        found = {"first_paint_s": statistics.median(paints) / 1000}
        clock = Clock(tab)
        for name, table in (("runs", "table"), ("videos", "video-table")):
            if name == "videos":
                choice = tab.locator("#drill select[name=run]")
                several = choice.locator("option[value=all]").count()
                choice.select_option("all" if several else "0")
            columns = len(tab.query_selector_all(f"#{table} thead th"))
            slowest = max(
                clock.sort(f"#{table} thead th:nth-child({i + 1}) button") for i in range(columns)
            )
            found[f"sort_{name}_s"], found[f"sort_{name}_wall_s"] = slowest
        browser.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--videos", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="where to put a copy of the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results, page = Path(folder) / "results", Path(folder) / "report.html"
        for number in range(options.runs):
            write_run(results, number, options.videos)
        cpu, wall = build(results, page)
        size = page.stat().st_size / 1e6
        if options.keep:
            shutil.copy(page, options.keep)
        seen = browse(page)
    print(f"{options.runs} runs of {options.videos} videos")
    print(f"build         {cpu:6.2f} s CPU, {wall:.2f} s wall")
    print(f"size          {size:6.2f} MB")
    kept = cpu <= LIMITS["build_s"] and size <= LIMITS["megabytes"]
    if seen is None:
        print("no browser: paint and sorting were not measured")
    else:
        print(f"first paint   {seen['first_paint_s']:6.2f} s")
        for name in ("runs", "videos"):
            cpu, wall = seen[f"sort_{name}_s"], seen[f"sort_{name}_wall_s"]
            print(f"sort {name:<9}{cpu:6.3f} s CPU, {wall:.3f} s wall, slowest column")
        kept &= seen["first_paint_s"] <= LIMITS["first_paint_s"]
        kept &= max(seen["sort_runs_s"], seen["sort_videos_s"]) <= LIMITS["sort_s"]
    print(f"limits {'kept' if kept else 'EXCEEDED'}: {LIMITS}")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
