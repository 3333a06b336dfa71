"""The leaderboard as its readers use it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from vcr_core.config.toml_text import to_toml
from vcr_core.leaderboard.build import build_site
from vcr_core.leaderboard.submissions import Rules

pytest.importorskip("jinja2")

HOSTILE = '"quotes" & <img src=x onerror=alert(1)> <b>net'
RIGHT_TO_LEFT = "שלום\u202eten"


def corner(pred: int) -> dict[str, Any]:
    p_label, margin = (0.7, 1.9) if pred == 0 else (0.1, -1.9)
    return {"pred": pred, "p_label": p_label, "p_pred": 0.7, "margin": margin}


def write_run(
    folder: Path, held: int, *, model: str, attack: str = "push", eps: str = "8/255",
    defense: str = "", adaptive: bool = True, status: str = "done",
) -> None:  # fmt: skip
    """Write a run of 20 videos, all right before the attack and ``held`` of them after it."""
    experiment: dict[str, Any] = {
        "schema": 1, "seed": 1, "dataset": {"name": "far/clips"}, "model": {"name": f"far/{model}"},
        "attack": {"name": f"far/{attack}"}, "threat": {"norm": "linf", "eps": eps},
        "protocol": {"attacker_knows_defense": adaptive},
    }  # fmt: skip
    parts = {"dataset": "clips", "model": model, "attack": attack}
    if defense:
        experiment["defense"] = {"name": f"far/{defense}"}
        parts["defense"] = defense
    records = []
    for i in range(20):
        after = corner(0 if i < held else 1)
        lost = (defense and not adaptive) or i >= held
        record = {
            "schema": 1, "run": folder.name, "video": f"{HOSTILE}-{i:02d}", "batch": 0, "shard": 0,
            "attempt": 1, "status": "ok", "label": 0, "clean": corner(0),
            "attacked": corner(1) if lost else after,
            "success": {"changed": bool(lost), "n": int(bool(lost)), "of": 1},
            "metrics": {"psnr": {"value": 30.0 + held}}, "cost": {"forwards": 10 * held},
        }  # fmt: skip
        if defense:
            record |= {"clean_defended": corner(0), "attacked_defended": [after]}
        records.append(record)
    manifest = {
        "schema": 1, "run": folder.name, "status": status, "evaluation_version": 1, "seed": 1,
        "experiment": experiment, "experiment_hash": folder.name,
        "flags": ["zero-gradient"] if model == HOSTILE else [],
        "components": [
            {"role": role, "kind": role, "ref": f"far/{name}", "distribution": "far",
             "version": "1", **({"access": "white-box"} if role == "attack" else {})}
            for role, name in parts.items()
        ],
        "dataset": {"labels": [HOSTILE, RIGHT_TO_LEFT], "fingerprint": "f00d" * 8, "n": 20},
        "batches": [[r["video"] for r in records]],
        "environment": {"python": "3.11.9", "versions": {"<i>torch</i>": "2"}},
        "started": "2026-05-01T10:00:00.000Z", "ended": "2026-05-01T10:01:00.000Z",
    }  # fmt: skip
    (folder / "records").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "resolved.toml").write_text(to_toml(experiment), encoding="utf-8")
    lines = "".join(json.dumps(r) + "\n" for r in records)
    (folder / "records" / "part-0-0.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of nine runs in four rankings, and one run left out."""
    folder = tmp_path_factory.mktemp("leaderboard")
    runs = folder / "runs"
    write_run(runs / "run-a", 18, model="strong")
    write_run(runs / "run-b", 4, model=HOSTILE)
    write_run(runs / "run-c", 9, model=RIGHT_TO_LEFT)
    write_run(runs / "run-d", 12, model="strong", defense="blur")
    write_run(runs / "run-e", 19, model="strong", defense="blur", adaptive=False)
    write_run(runs / "run-f", 2, model="strong", eps="16/255")
    write_run(runs / "run-g", 1, model=RIGHT_TO_LEFT, eps="16/255")
    write_run(runs / "run-h", 7, model="strong", attack="pull")
    write_run(runs / "run-i", 3, model=HOSTILE, attack="pull")
    write_run(runs / "run-j", 3, model="strong", attack="pull", status="interrupted")
    return build_site([runs], folder / "a deep" / "path", Rules(verified={})).folder


def shown(tab: Any) -> list[list[str]]:
    """Return rows that can be seen, a list a ranking: the first line of every first cell."""
    found = []
    for body in tab.page.locator("#board tbody").all():
        if body.is_visible():
            rows = [row for row in body.locator("tr:not(.ranking)").all() if row.is_visible()]
            found.append([row.locator("th").inner_text().split("\n")[0] for row in rows])
    return found


def outside(tab: Any, site: Path) -> list[str]:
    """Return requests that left the site."""
    root = site.resolve().as_uri()
    return [address for address in tab.asked if not address.startswith(root)]


def test_the_index_shows_rankings_best_first(site: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(site / "index.html")
    assert shown(tab) == [
        ["strong", HOSTILE],
        ["strong", "strong", RIGHT_TO_LEFT, HOSTILE],
        ["strong"],
        ["strong", RIGHT_TO_LEFT],
    ]
    assert tab.texts("#shown") == ["9 of 9 runs in 4 rankings"]
    heads = tab.texts(".ranking .what")
    assert "the attack sees the whole system" in heads[1]
    assert "the attack does not know the defense" in heads[2]
    assert tab.said == []
    assert outside(tab, site) == []


def test_sorting_stays_within_a_ranking(site: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(site / "index.html")
    robust = tab.page.get_by_role("button", name="Robust")
    robust.click()
    assert shown(tab)[1] == ["strong", "strong", RIGHT_TO_LEFT, HOSTILE]
    robust.click()
    assert shown(tab)[1] == [HOSTILE, RIGHT_TO_LEFT, "strong", "strong"]
    assert shown(tab)[3] == [RIGHT_TO_LEFT, "strong"]
    head = tab.page.locator("#board th[aria-sort]")
    assert head.get_attribute("aria-sort") == "ascending"
    assert len(tab.texts(".ranking")) == 4
    tab.page.get_by_role("button", name="Rank").focus()
    tab.page.keyboard.press("Enter")
    assert shown(tab)[1] == ["strong", "strong", RIGHT_TO_LEFT, HOSTILE]
    assert tab.said == []


def test_filters_hide_rows_and_empty_rankings(site: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(site / "index.html")
    tab.page.locator("select[name=attack]").select_option("pull")
    assert shown(tab) == [["strong", HOSTILE]]
    assert tab.texts("#shown") == ["2 of 9 runs in 1 ranking"]
    tab.page.get_by_role("button", name="Reset").click()
    tab.page.wait_for_function("document.getElementById('shown').value.startsWith('9 ')")
    tab.page.locator("select[name=knowledge]").select_option("the attack does not know the defense")
    assert shown(tab) == [["strong"]]
    tab.page.get_by_role("button", name="Reset").click()
    tab.page.locator("select[name=model]").select_option(HOSTILE)
    assert shown(tab) == [[HOSTILE], [HOSTILE]]
    tab.page.get_by_role("button", name="Reset").click()
    tab.page.get_by_label("Search").fill("16/255 strong")
    assert shown(tab) == [["strong"]]
    assert tab.said == []


def test_one_reaches_the_run_and_comes_back(site: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(site / "index.html")
    tab.page.get_by_role("link", name="partly checked, run run-e").click()
    assert tab.texts("h1") == ["run-e"]
    assert any("no worst case" in text for text in tab.texts("main p"))
    assert "Identity" in tab.texts(".checks th[scope=row]")
    tab.page.get_by_role("link", name="blur").first.click()
    assert tab.texts("h1") == ["blur"]
    assert shown(tab) == [["strong"], ["strong"]]
    tab.page.locator(".crumbs a").first.click()
    assert tab.texts("h1") == ["Robustness leaderboard"]
    tab.page.get_by_role("link", name="1", exact=True).click()
    assert tab.texts("tbody td")[0] == "not finished: interrupted, 20 of 20 videos"
    assert tab.said == []
    assert outside(tab, site) == []


def test_hostile_names_are_text(site: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(site / "index.html")
    tab.page.get_by_role("link", name=HOSTILE).first.click()
    assert tab.texts("h1") == [HOSTILE]
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("main b").count() == 0
    assert tab.said == []


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("phone", "dark")])
def test_pages_are_accessible(
    site: Path, open_page: Callable[..., Any], size: str, scheme: str
) -> None:
    for address in ("index.html", "models/strong.html", "entries/run-b.html", "left-out.html"):
        tab = open_page(site / address, size=size, scheme=scheme)
        assert tab.serious() == [], address
        width = tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, f"{address} is {width} px wider than the screen"


def test_the_scheme_can_be_switched(site: Path, open_page: Callable[..., Any]) -> None:
    tab = open_page(site / "index.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    before = tab.page.evaluate(colour)
    tab.page.locator("#theme").click()
    assert tab.page.evaluate(colour) != before


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The site below a sub-path of a web server on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site.parent)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{site.name}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_view_can_be_shared_from_a_web_server(served: str, chromium: Any) -> None:
    page = chromium.new_page()
    problems: list[str] = []
    page.on("console", lambda m: m.type in ("error", "warning") and problems.append(m.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{served}index.html")
    page.locator("select[name=attack]").select_option("pull")
    page.wait_for_url(f"{served}index.html?attack=pull")
    assert page.url == f"{served}index.html?attack=pull"
    page.goto(f"{page.url}&model=strong")
    assert page.locator("#shown").inner_text() == "1 of 9 runs in 1 ranking"
    page.goto(f"{served}index.html?attack=unknown")
    assert page.locator("#shown").inner_text() == "9 of 9 runs in 4 rankings"
    assert problems == []
    page.close()
