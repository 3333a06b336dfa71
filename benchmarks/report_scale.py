"""Size and speed of the HTML report's page of many records: building, first paint, sorting.

Builds the report of the sweep of ``records_scale.py``, which measures the commands themselves, and
opens it in headless Chromium where Playwright and a browser are installed.

    python benchmarks/report_scale.py
    python benchmarks/report_scale.py --runs 200 --videos 50 --keep report.html
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from records_scale import make_sweep, measure

LIMITS = {"build_s": 10.0, "megabytes": 15.0, "first_paint_s": 1.0, "sort_s": 0.1}

# Clicks on a heading and waits for the next frame; the time in between, in ms.
SORT = """(selector) => new Promise((resolve) => {
  const start = performance.now();
  document.querySelector(selector).click();
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
})"""


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
        make_sweep(results, options.runs, options.videos)
        built = measure(results, Path(folder), ["html"])["html"]
        size = page.stat().st_size / 1e6
        if options.keep:
            shutil.copy(page, options.keep)
        seen = browse(page)
    print(f"{options.runs} runs of {options.videos} videos")
    print(f"build         {built.cpu_s:6.2f} s CPU, {built.wall_s:.2f} s wall")
    print(f"size          {size:6.2f} MB")
    kept = built.cpu_s <= LIMITS["build_s"] and size <= LIMITS["megabytes"]
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
