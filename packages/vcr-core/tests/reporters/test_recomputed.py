"""The numbers of a report, computed again from the record files without any of our code."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from vcr_core.reporters.html import HtmlReporter
from vcr_core.reporters.table_csv import CsvReporter

pytest.importorskip("jinja2")


def recompute(folder: Path, *, defended: bool) -> dict[str, Any]:
    """Return a run's numbers from its record files: plain arithmetic, nothing of ours."""
    last: dict[str, Any] = {}
    for path in sorted(folder.glob("records/*.jsonl")):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if entry["attempt"] >= last.get(entry["video"], entry)["attempt"]:
                last[entry["video"]] = entry
    judged = [r for r in last.values() if r["status"] in ("ok", "ineligible")]
    tried = [r for r in judged if r["status"] == "ok"]
    before, after = ("clean_defended", "attacked_defended") if defended else ("clean", "attacked")

    def answer(r: Any, corner: str) -> Any:
        found = r.get(corner) or r[before]
        return (found[0] if isinstance(found, list) else found)["pred"]

    right = [r for r in judged if answer(r, before) == r["label"]]
    held = [r for r in right if answer(r, after) == r["label"]]
    distances = [v for r in tried if (v := r["metrics"]["psnr"]["value"]) is not None]
    by_class = {
        label: (
            sum(r["label"] == label for r in judged),
            sum(r["label"] == label for r in right),
            sum(r["label"] == label for r in held),
        )
        for label in sorted({r["label"] for r in judged})
    }
    return {
        "n": len(judged), "errors": sum(r["status"] == "error" for r in last.values()),
        "headline_clean_accuracy": (len(right), len(judged)),
        "headline_robust_accuracy": (len(held), len(judged)),
        "asr": (len(right) - len(held), len(right)), "classes": by_class,
        "mean_queries": sum(r["cost"]["forwards"] for r in tried) / len(tried),
        "psnr": sum(distances) / len(distances),
    }  # fmt: skip


def wilson(k: int, n: int) -> tuple[float, float]:
    """Solve ``|p - k/n| = z·sqrt(p(1-p)/n)`` for ``p``: the two ends of the score interval."""
    z2 = 1.959963984540054**2
    a, b, c = 1 + z2 / n, -2 * k / n - z2 / n, (k / n) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def some_records(records: Any, *, seed: int, defended: bool) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    found = [records.error("failed", "cut off")]
    for i in range(60):
        right, held = draw.random() < 0.7, draw.random() < 0.4
        entry = records.video(
            f"v{i}", right=right, held=held, defended=(right, held) if defended else None,
            metrics={"psnr": {"value": None if i % 9 == 0 else 30 + draw.random()}},
        )  # fmt: skip
        entry["cost"]["forwards"] = draw.randrange(5, 50)
        if i % 2:  # the fixture makes videos of class 0; these get class 1
            swap = {0: 1, 1: 0}
            entry["label"] = 1
            for name in ("clean", "attacked", "clean_defended", "attacked_defended"):
                for corner in entry.get(name) if isinstance(entry.get(name), list) else [
                    entry.get(name)
                ]:  # fmt: skip
                    if corner:
                        corner["pred"] = swap[corner["pred"]]
        if not right:
            entry["status"] = "ineligible"
            for name in ("attacked", "attacked_defended", "success", "metrics"):
                entry.pop(name, None)
        found.append(entry)
    return found


@pytest.mark.parametrize("defended", [False, True])
def test_every_number_can_be_computed_again(make_run: Any, records: Any, defended: bool) -> None:
    defense = "median" if defended else None
    found = some_records(records, seed=3 + defended, defended=defended)
    run = make_run(defense=defense, records=found)
    expected = recompute(run.folder, defended=defended)
    (row,) = csv.DictReader(io.StringIO(CsvReporter().text([run])))
    assert int(row["n"]) == expected["n"] == 60
    assert int(row["errors"]) == expected["errors"] == 1
    for name in ("headline_clean_accuracy", "headline_robust_accuracy", "asr"):
        k, n = expected[name]
        assert float(row[name]) == pytest.approx(k / n, abs=1e-6)
        assert float(row[f"{name}_low"]) == pytest.approx(wilson(k, n)[0], abs=1e-6)
        assert float(row[f"{name}_high"]) == pytest.approx(wilson(k, n)[1], abs=1e-6)
    for name in ("mean_queries", "psnr"):
        assert float(row[name]) == pytest.approx(expected[name], abs=1e-6)
        assert float(row[f"{name}_low"]) < expected[name] < float(row[f"{name}_high"])

    page = HtmlReporter().text([run])
    shown = {html.unescape(text) for text in re.findall(r"[>\s](\d+\.\d) <span class=\"ci\"", page)}
    for name in ("headline_clean_accuracy", "headline_robust_accuracy", "asr"):
        k, n = expected[name]
        assert f"{100 * k / n:.1f}" in shown
        assert f'<td class="num">{k}/{n}</td>' in page
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)
    (drill,) = json.loads(data)["runs"]
    classes = {c[0]: (c[1], c[2], c[4]) for c in drill["classes"]}
    assert classes == expected["classes"]
    for _, n, k, ends, *_ in drill["classes"]:
        assert ends == pytest.approx(wilson(k, n), abs=1e-4)


def test_success_over_queries_ends_at_the_success_rate(make_run: Any, records: Any) -> None:
    from vcr_core.reporters.queries import search_of

    found = some_records(records, seed=8, defended=False)
    for i, entry in enumerate(found):
        if entry["status"] == "ok" and entry["success"]["changed"] and i % 3:
            entry["cost"]["queries_to_first_success"] = 3
    tried = [r for r in found if r["status"] == "ok"]
    won = [r for r in tried if r["success"]["changed"]]
    early = [r for r in won if "queries_to_first_success" in r["cost"]]
    search = search_of(make_run(records=found).records)
    assert search is not None
    assert (search.success(2).k, search.success(3).k) == (0, len(early))
    assert search.success(search.budget).fraction == f"{len(won)}/{len(tried)}"
