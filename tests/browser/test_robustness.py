"""Clean, neighbouring, corrupted and tampered videos side by side, as readers use the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vcr_core.reporters.html import HtmlReporter
from vcr_core.summary import RunView, summarize

pytest.importorskip("numpy")
pytest.importorskip("jinja2")

EVIL = "<img src=x onerror=alert(1)>"
SUITE = {"name": "two", "version": "1", "types": 2, "severities": 1}
ATTACKS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "natural-shift": (["natural"], {"steps": 1, "rate": 15, "boundary": "skip"}),
    "fog": (["corruption"], {"severity": 3}),
    EVIL: (["corruption"], {"severity": 3}),
    "drop": (["tampering", "mvt5"], {"location": "middle", "duration_s": 1.0}),
}


def view(model: str, attack: str, held: int) -> RunView:
    """A run on 24 videos, all right before and ``held`` after."""
    tags, params = ATTACKS[attack]
    part: dict[str, Any] = {
        "role": "attack", "ref": attack, "access": "none", "tags": tags, "params": params,
    }  # fmt: skip
    if "severity" in params:
        part["corruption"] = {"type": attack, "group": "weather", "severity": 3, "suites": [SUITE]}
    records = [
        {
            "schema": 1, "run": "r", "video": f"v{i}", "batch": 0, "shard": 0, "attempt": 1,
            "status": "ok", "label": 0, "clean": {"pred": 0, "p_label": 0.9, "p_pred": 0.9},
            "attacked": {"pred": int(i >= held), "p_label": 0.5, "p_pred": 0.5}, "cost": {},
        }
        for i in range(24)
    ]  # fmt: skip
    manifest = {
        "schema": 1, "run": f"{model}-{len(attack)}", "status": "done", "evaluation_version": 1,
        "experiment": {
            "dataset": {"name": "made-up"}, "model": {"name": model}, "attack": {"name": attack},
            "threat": {"norm": "none"}, "protocol": {},
        },
        "components": [part], "dataset": {"labels": ["a", "b"], "fingerprint": "f00d"},
        "batches": [[record["video"] for record in records]], "seed": 1,
    }  # fmt: skip
    return RunView(Path(), manifest, records, summarize(manifest, records))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    runs = [
        view(model, attack, held)
        for model, held in (("first", 20), ("second", 12), (EVIL + "'\"", 16))
        for attack in ATTACKS
    ]
    path = tmp_path / "report.html"
    HtmlReporter().render(runs, path)
    return path


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("phone", "dark")])
def test_it_is_accessible_and_quiet(
    page: Path, open_page: Callable[..., Any], size: str, scheme: str
) -> None:
    tab = open_page(page, size=size, scheme=scheme)
    for summary in tab.page.locator("#robustness .chapter > summary").all():
        summary.click()
    assert tab.serious() == []
    assert not tab.page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    assert EVIL in " ".join(tab.texts("#robustness th"))
    assert tab.page.locator("#robustness img").count() == 0
    assert (tab.said, tab.asked) == ([], [])


def test_models_are_sorted_by_any_number(page: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(page)
    table = "#robustness table:first-of-type"
    tab.page.locator(table).first.get_by_role("button", name="mPC").click()
    once = tab.texts(f"{table} >> nth=0 >> tbody th")
    tab.page.locator(table).first.get_by_role("button", name="mPC").click()
    again = tab.texts(f"{table} >> nth=0 >> tbody th")
    assert sorted([once, again], key=lambda names: names[0]) == [
        ["first", EVIL + "'\"", "second"],
        ["second", EVIL + "'\"", "first"],
    ]


def test_maps_are_numbers_with_colour(page: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(page)
    tab.page.locator("#robustness .chapter > summary", has_text="suite two").click()
    cells = tab.page.locator("#robustness .heat")
    shown = [cell for cell in cells.all() if cell.is_visible()]
    assert shown
    assert all(cell.inner_text().strip()[0].isdigit() for cell in shown)
    colours = {cell.evaluate("e => getComputedStyle(e).backgroundColor") for cell in shown}
    assert len(colours) > 2
