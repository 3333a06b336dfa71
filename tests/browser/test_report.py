"""The HTML report as its readers use it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vcr_core.reporters.html import HtmlReporter
from vcr_core.summary import RunView, load_run

np = pytest.importorskip("numpy")
pytest.importorskip("jinja2")

LABELS = ["walk", "<script>alert(1)</script>", "\"quotes\" & 'more' <b>bold", "שלום עולם"]
HOSTILE = "x\"'><img src=x onerror=alert(2)>.mp4"
RIGHT_TO_LEFT = "\u202emp4.exe"
VIDEOS = 130
OPENED = "document.getElementById('video-dialog').open"


def record(number: int, *, attacked: bool, defended: bool) -> dict[str, Any]:
    """Video ``number``: every fifth is wrong before, every third of the others holds."""
    label = number % len(LABELS)
    right, held = number % 5 != 0, number % 3 == 0
    wrong = (label + 1) % len(LABELS)

    def corner(is_right: bool) -> dict[str, Any]:
        p = 0.5 + number / 1000
        pred = label if is_right else wrong
        return {"pred": pred, "p_label": p if is_right else 0.1, "p_pred": p, "top5": [pred]}

    names = {0: HOSTILE, 1: RIGHT_TO_LEFT}
    found: dict[str, Any] = {
        "schema": 1, "video": names.get(number, f"video-{number:03d}"), "batch": 0, "shard": 0,
        "attempt": 1, "label": label, "clean": corner(right),
        "status": "ok" if right or not attacked else "ineligible",
        "cost": {"forwards": 10 + number, "t_attack_s": 0.1 * number, "t_eval_s": 0.1},
    }  # fmt: skip
    if defended:
        found["clean_defended"] = corner(right)
    if number == VIDEOS - 1:
        error = {"stage": "decode", "type": "VideoReadError", "message": "<b>cut off</b>"}
        return {**found, "status": "error", "error": error}
    if attacked and right:
        found["attacked"] = corner(held)
        found["success"] = {"changed": not held, "n": int(not held), "of": 1}
        found["metrics"] = {"psnr": {"value": 30 + number / 10}}
        if not held:
            found["cost"]["queries_to_first_success"] = 5 + number
        if defended:
            found["attacked_defended"] = [corner(held)]
    return found


def write_run(
    folder: Path, *, model: str, attack: str = "", defense: str = "", eps: float = 8 / 255
) -> RunView:
    records = [record(i, attacked=bool(attack), defended=bool(defense)) for i in range(VIDEOS)]
    experiment: dict[str, Any] = {
        "seed": 1, "dataset": {"name": "made-up"}, "model": {"name": model},
        "threat": {"norm": "linf", "eps": eps, "targeted": False},
        "protocol": {"attacker_knows_defense": True},
    }  # fmt: skip
    if attack:
        experiment["attack"] = {"name": attack}
    if defense:
        experiment["defense"] = [{"name": defense}]
    manifest = {
        "schema": 1, "run": folder.name, "status": "done", "evaluation_version": 1, "seed": 1,
        "experiment": experiment, "flags": ["zero-gradient"] if attack == "ifgsm" else [],
        "dataset": {"labels": LABELS, "fingerprint": "f"},
        "batches": [[r["video"] for r in records]],
        "environment": {"python": "3.11.9", "versions": {"<i>torch</i>": "2"}},
        "started": "2026-05-01T10:00:00.000Z", "ended": "2026-05-01T10:01:00.000Z",
    }  # fmt: skip
    (folder / "records").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    lines = "".join(json.dumps(r) + "\n" for r in records)
    (folder / "records" / "part-0-0.jsonl").write_text(lines, encoding="utf-8")
    (folder / "resolved.toml").write_text('note = "</pre><script>alert(3)</script>"\n')
    return load_run(folder)


def keep_clip(run: RunView) -> None:
    folder = run.folder / "artifacts"
    folder.mkdir()
    clean = np.zeros((24, 32, 40, 3), np.uint8)
    for i in range(len(clean)):
        clean[i, 8:24, i : i + 8] = 200
    adversarial = clean.copy()
    adversarial[..., 0] += 8
    np.savez(folder / "c.npz", clean=clean, adversarial=adversarial, defended=clean)
    entry = {"video": HOSTILE, "file": "c.npz", "label": 0, "eps": 8 / 255, "clean": {"pred": 1}}
    (folder / "clips.json").write_text(json.dumps([entry]), encoding="utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of four runs."""
    folder = tmp_path_factory.mktemp("results")
    runs = [
        write_run(folder / "a", model="tiny", attack="ifgsm"),
        write_run(folder / "b", model="tiny", attack="ifgsm", defense="median"),
        write_run(folder / "c", model="tiny", attack="pgd", eps=4 / 255),
        write_run(folder / "d", model="<u>other"),
    ]
    keep_clip(runs[1])
    return HtmlReporter().render(runs, folder / "report.html")[0]


@pytest.fixture
def tab(open_page: Callable[..., Any], report: Path) -> Any:
    return open_page(report)


def column(tab: Any, table: str, title: str) -> list[str]:
    """Return the texts of a column of the rows that can be seen, without intervals."""
    titles = [one.rstrip(" ↕↑↓") for one in tab.texts(f"#{table} thead th")]
    place = titles.index(title) + 1
    return [text.split("\n")[0] for text in tab.texts(f"#{table} tbody tr > :nth-child({place})")]


def sort_by(tab: Any, table: str, title: str) -> None:
    tab.page.locator(f"#{table} thead button", has_text=title).first.click()


def test_nothing_leaves_the_page_and_nothing_is_reported(tab: Any) -> None:
    tab.page.wait_for_timeout(300)
    assert tab.said == []
    assert tab.asked == []
    title = tab.page.title()
    assert "report" in title.lower()


def test_hostile_text_is_text(tab: Any) -> None:
    dialogs: list[str] = []
    tab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.page.locator("#video-table tbody th button").first.click()
    assert tab.page.locator("img[src=x], u, i, figure b b").count() == 0
    assert HOSTILE in tab.page.locator("#video-dialog h3").inner_text()
    tab.page.keyboard.press("Escape")
    classes = tab.page.locator("#drill select[name=label] option").all_inner_texts()
    assert set(LABELS) <= set(classes)
    assert HOSTILE in column(tab, "video-table", "Video")
    assert RIGHT_TO_LEFT in column(tab, "video-table", "Video")
    # The name that runs from right to left does not turn its neighbours around.
    assert tab.page.locator("#video-table bdi").count() >= 50
    assert "<b>cut off</b>" in tab.page.locator("#problems").inner_text()
    assert dialogs == []


def test_other_scripts_are_refused(tab: Any) -> None:
    tab.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.hacked = 1'}))"
    )
    assert tab.page.evaluate("window.hacked === undefined")
    refused = tab.page.evaluate(
        "fetch('https://example.invalid/').then(() => 'sent', () => 'refused')"
    )
    assert refused == "refused"
    assert any("Content Security Policy" in text for text in tab.said)


def test_runs_sort_both_ways_and_missing_numbers_stay_last(tab: Any) -> None:
    sort_by(tab, "table", "Robust")
    values = column(tab, "table", "Robust\u00a0%")
    numbers = [float(text) for text in values[:-1]]
    assert values[-1] == "\u2013"
    assert numbers == sorted(numbers, reverse=True)
    sort_by(tab, "table", "Robust")
    assert column(tab, "table", "Robust\u00a0%")[-1] == "\u2013"
    heads = tab.page.locator("#table thead th[aria-sort]")
    assert [head.get_attribute("aria-sort") for head in heads.all()] == ["ascending"]


def test_runs_filter_by_choice_and_by_words(tab: Any) -> None:
    form = tab.page.locator("form[data-for=table]")
    form.locator("select[name=attack]").select_option("pgd")
    assert column(tab, "table", "Attack") == ["pgd"]
    assert "1 of 4 runs" in form.inner_text()
    form.locator("select[name=attack]").select_option("")
    form.locator("input[name=text]").fill("median")
    assert column(tab, "table", "Defense") == ["median"]


def test_drill_down_filters_pages_and_sorts(tab: Any) -> None:
    form, shown = tab.page.locator("#drill"), tab.page.locator("#drill output")
    assert "1 to 50 of 130" in shown.inner_text()
    tab.page.locator("#pager button").last.click()
    tab.page.locator("#pager button").last.click()
    assert "101 to 130 of 130" in shown.inner_text()
    assert tab.page.locator("#pager button").last.is_disabled()
    form.locator("select[name=label]").select_option(label=LABELS[1])
    assert set(column(tab, "video-table", "Class")) == {LABELS[1]}
    form.locator("select[name=outcome]").select_option(label="fell: right before, wrong after")
    assert set(column(tab, "video-table", "Outcome")) == {"fell"}
    sort_by(tab, "video-table", "PSNR")
    numbers = [float(text) for text in column(tab, "video-table", "PSNR (dB)")]
    assert numbers == sorted(numbers, reverse=True)
    assert tab.page.evaluate("document.activeElement.textContent") == "PSNR (dB)"
    form.locator("input[name=text]").fill("no such video")
    assert "no videos" in shown.inner_text()


def test_classes_agree_with_their_videos(tab: Any) -> None:
    tab.page.locator("#classes summary").click()
    names = column(tab, "class-table", "Class")
    robust = column(tab, "class-table", "Robust\u00a0%")
    assert sorted(names) == sorted(LABELS)
    tab.page.locator("#class-table tbody button").first.click()
    outcomes = column(tab, "video-table", "Outcome")
    counted = [one for one in outcomes if one != "error"]
    assert float(robust[0]) == pytest.approx(100 * outcomes.count("held") / len(counted), abs=0.06)


def test_one_video_in_all_runs(tab: Any) -> None:
    tab.page.locator("#video-table tbody th button", has_text="video-003").first.click()
    assert tab.page.evaluate(OPENED)
    text = tab.page.locator("#video-dialog").inner_text()
    assert "held: right before and after" in text
    tab.page.locator("#video-dialog button", has_text="all runs").click()
    assert not tab.page.evaluate(OPENED)
    assert column(tab, "video-table", "Video") == ["video-003"] * 4
    assert len(set(column(tab, "video-table", "Run"))) == 4


def test_dialog_is_used_by_keyboard_and_leads_to_the_clip(tab: Any) -> None:
    button = tab.page.locator("#video-table tbody th button").first
    button.focus()
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate(OPENED)
    tab.page.keyboard.press("Escape")
    assert not tab.page.evaluate(OPENED)
    assert button.evaluate("(one) => document.activeElement === one")
    tab.page.keyboard.press("Enter")
    tab.page.locator("#video-dialog a", has_text="Play the clip").click()
    assert not tab.page.evaluate(OPENED)
    tab.page.wait_for_url("**#clip-1")
    assert tab.page.url.endswith("#clip-1")


def test_clip_plays_when_asked_only(tab: Any) -> None:
    pytest.importorskip("av")
    video = tab.page.locator("video").first
    assert video.evaluate("(one) => one.paused && one.muted && !one.autoplay")
    video.evaluate("(one) => one.play()")
    until = time.monotonic() + 10
    while video.evaluate("(one) => one.currentTime") < 0.2:
        assert time.monotonic() < until, "the video does not play"
        tab.page.wait_for_timeout(50)
    # Four panels of 40 pixels, each enlarged three times, two pixels apart.
    assert video.evaluate("(one) => one.videoWidth") == 4 * 120 + 3 * 2
    assert video.evaluate("(one) => one.error") is None
    assert tab.said == []


def test_links_to_a_run_open_it(tab: Any) -> None:
    assert not tab.page.locator("#run-1").evaluate("(one) => one.open")
    tab.page.locator("#table tbody th a").first.click()
    opened = tab.page.locator("details.run[open]")
    # The page hears of its new address in a task of its own, after the click.
    opened.first.wait_for()
    assert opened.count() == 1
    assert "</pre><script>" in opened.locator("pre").text_content()


def test_first_tab_stop_skips_to_the_results(tab: Any) -> None:
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the results"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**#results")
    assert tab.page.url.endswith("#results")


@pytest.mark.parametrize(
    ("size", "scheme"), [("wide", "light"), ("wide", "dark"), ("phone", "light")]
)
def test_axe_finds_nothing_serious(
    open_page: Callable[..., Any], report: Path, size: str, scheme: str
) -> None:
    tab = open_page(report, size=size, scheme=scheme)
    tab.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.serious() == []
    assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_axe_finds_nothing_serious_in_the_dialog(tab: Any) -> None:
    tab.page.locator("#video-table tbody th button").first.click()
    assert tab.serious() == []


def test_colours_follow_the_button(tab: Any) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    before = tab.page.evaluate(background)
    tab.page.locator("#theme").click()
    assert tab.page.evaluate(background) != before
    tab.page.locator("#theme").click()
    assert tab.page.evaluate(background) == before


def test_print_is_light_complete_and_without_controls(
    open_page: Callable[..., Any], report: Path
) -> None:
    tab = open_page(report, size="paper", scheme="dark")
    tab.page.emulate_media(media="print")
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert not tab.page.locator("nav, form.tools, video, #theme").first.is_visible()
    assert tab.page.locator("details:not([open])").count() == 0
    assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.page.locator("details[open]").count() == 0


def test_without_scripts_the_results_can_be_read(
    open_page: Callable[..., Any], report: Path
) -> None:
    tab = open_page(report, java_script_enabled=False)
    assert tab.page.locator("#table tbody tr").count() == 4
    assert not tab.page.locator("form.tools").first.is_visible()
    assert "need JavaScript" in tab.page.locator("#videos").inner_text()
