from __future__ import annotations

import builtins
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from vcr_core.errors import ComponentUnavailable
from vcr_core.reporters.charts import bar_panels, curve_panels
from vcr_core.reporters.gallery import MAX_CLIPS, make_gallery
from vcr_core.reporters.html import HtmlReporter
from vcr_core.reporters.rows import make_rows

pytest.importorskip("jinja2")

VOID = {"meta", "br", "img", "input", "link", "hr"}
SVG_VOID = {"line", "rect", "circle", "path", "polygon"}
EVIL = "<script>alert(1)</script>"


class Page(HTMLParser):
    """Checks nesting and collects what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SVG_VOID
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def render(*runs: Any) -> tuple[str, Page]:
    text = HtmlReporter().text(runs)
    return text, Page(text)


def test_page_is_self_contained(make_run: Any, keep_clips: Any) -> None:
    run = make_run()
    keep_clips(run, ["v0"])
    text, page = render(run)
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert "srcset" not in attributes
        if tag == "script":
            assert "src" not in attributes
        for name in ("src", "href", "action", "xlink:href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:")), (tag, name, value[:60])
    assert not re.search(r"@import|url\(", text)
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_page_shows_rates_intervals_counts_and_formulas(make_run: Any) -> None:
    _, page = render(make_run())
    assert "25.0 [7.1, 59.1]" in page.text
    assert "2/8" in page.text
    assert "wilson" in page.text
    assert "mean[f(x)=y ∧ f(a)=y]" in page.text
    assert "robust_accuracy" in page.text


def test_everything_from_data_is_escaped(make_run: Any, records: Any, keep_clips: Any) -> None:
    found = [records.video(EVIL, right=True, held=False), records.error(f"{EVIL}2", f"bad {EVIL}")]
    run = make_run(
        model=f"m{EVIL}".replace("/", "_"),
        records=found,
        defense=EVIL,
        flags=(EVIL,),
        command=["vcr", EVIL],
        environment={"python": EVIL, "versions": {EVIL: EVIL}},
        components=[{"role": EVIL, "ref": EVIL, "params": {EVIL: EVIL}}],
        plugin_failures=[{"error": EVIL}],
        ended=EVIL,
    )
    keep_clips(run, [EVIL])
    (run.folder / "resolved.toml").write_text(f'a = "{EVIL}"', encoding="utf-8")
    text, page = render(run)
    assert text.count("<script>") == 1
    assert EVIL not in text
    assert "<b>clap" not in text
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert EVIL in page.text
    assert "<b>clap</b>" in page.text


def test_flags_are_footnotes_and_explained_under_the_run(make_run: Any) -> None:
    _, page = render(make_run(flags=("zero-gradient", "unheard-of")))
    marks = [a for t, a in page.tags if t == "a" and (a.get("href") or "").startswith("#flag-")]
    assert [mark["href"] for mark in marks] == ["#flag-1", "#flag-2"]
    targets = {a.get("id") for _, a in page.tags}
    assert {"flag-1", "flag-2"} <= targets
    assert page.text.count("The gradient at the input was exactly zero") == 2
    assert page.text.count("A component raised this flag") == 2


def test_errors_are_in_the_open(make_run: Any, records: Any) -> None:
    found = [records.video("a", right=True, held=True)]
    found += [records.error(f"bad-{i}", "stream ended after 3 of 16 frames") for i in range(53)]
    _, page = render(make_run(records=found))
    assert "53 videos failed, in 1 of 1 runs" in page.text
    assert "bad-0 decode VideoReadError stream ended after 3 of 16 frames" in page.text
    assert "bad-49" in page.text
    assert "bad-50" not in page.text
    assert "3 more are in the records" in page.text


def test_missing_numbers_are_dashes_with_reasons(make_run: Any, records: Any) -> None:
    identical = {"psnr": {"value": None, "reason": "identical"}}
    found = [records.video("a", right=False, held=False, metrics=identical)]
    text, page = render(make_run(records=found))
    assert "PSNR (dB): identical (1) (1 run)" in page.text
    assert "denominator is 0" in page.text
    assert re.search(
        r'data-sort=""><span class="missing" title="identical \(1\)">\u2013</span>', text
    )


def test_adaptive_run_shows_the_defended_pair_in_bold(make_run: Any) -> None:
    text, page = render(make_run(defense="median"))
    bold = re.findall(r'<td class="num headline"[^>]*>([\d.]+)', text)
    assert bold == ["100.0", "0.0"]
    assert "the defended pair is the result" in page.text


def test_bare_pair_is_bold_where_the_attack_ignores_the_defense(make_run: Any) -> None:
    text, page = render(make_run(defense="median", adaptive=False))
    assert re.findall(r'<td class="num headline"[^>]*>([\d.]+)', text) == ["75.0", "25.0"]
    assert "overstate what a defense achieves" in page.text


def test_remarks_warn_about_what_cannot_be_compared(make_run: Any, records: Any) -> None:
    other = [records.video("other", right=True, held=True)]
    _, page = render(
        make_run(), make_run(evaluation_version=2), make_run(records=other, status="running")
    )
    assert "different evaluation versions (1, 2)" in page.text
    assert "2 different sets of videos" in page.text
    assert "1 run is not finished" in page.text


def test_no_remarks_without_a_reason(make_run: Any) -> None:
    _, page = render(make_run(), make_run(model="other"))
    assert "Before you compare" not in page.text


def test_strips_have_rows_labels_and_the_gain(make_run: Any, keep_clips: Any) -> None:
    run = make_run()
    keep_clips(run, ["v0"], defended=True)
    _, page = render(run)
    images = [a for t, a in page.tags if t == "img"]
    assert [str(image["alt"]).split(":")[0] for image in images] == [
        "clean", "adversarial", "defended", "difference \u00d715.9",
    ]  # fmt: skip
    assert all(str(image["src"]).startswith("data:image/png;base64,") for image in images)
    assert "predicted walk, p = 0.90" in page.text
    assert "predicted <b>clap</b>, p = 0.70; true class p = 0.20" in page.text
    assert "12\u00d78 pixels, each shown as 12\u00d712" in page.text


def test_gallery_is_spread_over_runs_and_limited(make_run: Any, keep_clips: Any) -> None:
    runs = [make_run(model=f"m{i}") for i in range(MAX_CLIPS + 5)]
    for run in runs:
        keep_clips(run, ["v0", "v1"])
    gallery = make_gallery(runs)
    assert len(gallery.exhibits) == MAX_CLIPS
    assert gallery.kept == 2 * len(runs)
    assert {clip.video for clip in gallery.exhibits} == {"v0"}
    names = [clip.run for clip in gallery.exhibits]
    assert names[0] == runs[0].manifest["run"]
    assert names[-1] == runs[-1].manifest["run"]


def test_curves_need_two_radii_and_start_at_the_clean_accuracy(make_run: Any) -> None:
    one = make_rows([make_run()])
    assert curve_panels(one) == ([], [])
    rows = make_rows(
        [make_run(eps=e / 255, defense=d, adaptive=a) for e in (2, 8)
         for d, a in ((None, True), ("median", True), ("median", False))]
    )  # fmt: skip
    series, (panel,) = curve_panels(rows)
    assert [(one.label, one.dashed) for one in series] == [
        ("ifgsm", False), ("ifgsm vs median", False), ("ifgsm vs median, attack unaware", True),
    ]  # fmt: skip
    assert len(panel.lines) == 3
    first = panel.lines[0].points[0]
    assert first.title.startswith("ifgsm, no attack: 75.0 %")
    assert [tick.text for tick in panel.x_ticks] == ["0", "2", "8"]
    _, page = render(make_run(eps=2 / 255), make_run(eps=4 / 255))
    assert any(a.get("id") == "curves" for _, a in page.tags)


def test_bars_compare_systems_under_one_threat(make_run: Any) -> None:
    rows = make_rows([make_run(), make_run(defense="median"), make_run(eps=1 / 255),
                      make_run(attack=None)])  # fmt: skip
    panels = bar_panels(rows)
    assert [(panel.title, len(panel.bars)) for panel in panels] == [("ifgsm, L∞ 8/255", 2)]
    assert bar_panels(rows[1:3]) == []
    best, second = panels[0].bars
    assert (best.label, best.robust) == ("tiny", 90.0)
    assert (second.label, second.detail, second.robust) == ("tiny + median", "adaptive", 0.0)


def test_page_of_nothing_is_still_a_page() -> None:
    _, page = render()
    assert "Robustness report" in page.text


def test_same_runs_give_the_same_page(make_run: Any) -> None:
    runs = [make_run(), make_run(model="other")]
    assert HtmlReporter().text(runs) == HtmlReporter().text(runs[::-1])


def test_render_accepts_a_file_or_a_folder(make_run: Any, tmp_path: Path) -> None:
    run = make_run()
    assert HtmlReporter().render([run], tmp_path) == [tmp_path / "report.html"]
    assert HtmlReporter().render([run], tmp_path / "a.html") == [tmp_path / "a.html"]


@pytest.mark.parametrize(("missing", "needs_clips"), [("jinja2", False), ("PIL", True)])
def test_missing_library_is_named_with_the_extra(
    missing: str, needs_clips: bool, make_run: Any, keep_clips: Any, monkeypatch: Any
) -> None:
    run = make_run()
    if needs_clips:
        keep_clips(run, ["v0"])
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ComponentUnavailable, match=r"vcr-core\[report\]"):
        HtmlReporter().text([run])
