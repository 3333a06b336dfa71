"""Tables of tamper detection, in every format."""

from __future__ import annotations

import io
import re

import pytest
from vcr_core.reporters.detection_table import detection_report
from vcr_core.reporters.html import HtmlReporter
from vcr_core.reporters.latex import LatexReporter
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.rows import paired_rows
from vcr_core.reporters.terminal import TerminalReporter

KINDS = ("original", "drop", "mask")
HOSTILE = "<script>alert('x')</script>"


def record(source, kind, pred, *, names=KINDS, **corner):
    label = names.index(kind)
    return {
        "schema": 1, "run": "r", "video": f"{source}#{kind}", "batch": 0, "shard": 0, "attempt": 1,
        "status": "ok", "label": label, "device": "cpu",
        "sample": {"source": source, "tamper": {"type": kind}},
        "clean": {
            "pred": pred, "p_label": 0.5, "p_pred": 0.75, "top5": [pred], "tampered": pred > 0,
            "score": float(pred), **corner,
        },
    }  # fmt: skip


def four_sources(names=KINDS):
    """Originals are all left alone; of the masked ones a quarter is taken for dropped frames."""
    return [
        record(source, kind, 1 if (kind, source) == (names[2], "d") else label, names=names)
        for source in "abcd"
        for label, kind in enumerate(names)
    ]


@pytest.fixture
def run(make_run):
    return make_run(model="finder", attack=None, records=four_sources())


def report_of(*runs):
    return detection_report(paired_rows(runs))


def test_other_runs_have_no_such_table(make_run):
    assert report_of(make_run(), make_run(attack=None)) is None


def test_a_row_a_detector_and_a_chapter_with_its_effects(run):
    found = report_of(run)
    [overview] = found.side_by_side
    assert [line.name for line in overview.lines] == ["finder"]
    numbers = dict(zip([h.title for h in overview.heads], overview.lines[0].cells, strict=True))
    assert numbers["Balanced %"].cell.text == "100.0"
    # Of twelve videos one has the wrong name: a mean of 1, 1 and 3/4.
    assert numbers["Named %"].cell.text == "91.7"
    assert numbers["Originals kept %"].cell.interval == "[51.0, 100.0]"
    assert "IoU %" not in numbers
    assert "12 videos of 4 sources; intervals of so few sources are rough." in overview.notes
    [chapter] = found.chapters
    effects, confusion = chapter.tables
    assert [line.name for line in effects.lines] == ["drop", "mask", "overall"]
    assert [line.name for line in confusion.lines] == ["original (4)", "drop (4)", "mask (4)"]
    masked = confusion.lines[2]
    assert [shown.cell.text for shown in masked.cells] == ["0", "1", "3", "0"]
    # Mistakes are shaded, nothing else.
    assert [shown.heat for shown in masked.cells] == [None, 0.25, None, None]


def test_segments_have_columns_where_some_detector_names_them(make_run, run):
    told = [
        record(s, kind, label, segment_s=None) for s in "ab" for label, kind in enumerate(KINDS)
    ]
    other = make_run(model="locator", attack=None, records=told)
    [overview] = report_of(run, other).side_by_side
    places = [shown.cell for line in overview.lines for shown in line.cells[5:7]]
    assert [cell.value for cell in places] == [None] * 4
    assert any("the detector names no segment" in note for note in overview.notes)


def test_different_videos_are_not_put_into_one_table(make_run):
    def over(**dataset):
        experiment = {
            "dataset": {"name": "tamper", "effects": "mvt5", "location": "middle", **dataset},
            "model": {"name": "finder"},
        }
        return make_run(attack=None, records=four_sources(), experiment=experiment)

    runs = [
        over(base="motion", duration_s=1.0),
        over(base={"name": "folder", "split": "val"}, duration_s=1.0),
        over(base="motion", duration_s=2.0),
    ]
    assert sorted(table.title for table in report_of(*runs).side_by_side) == [
        "Detectors on tamper: folder (split = val), mvt5, middle, 1 s",
        "Detectors on tamper: motion, mvt5, middle, 1 s",
        "Detectors on tamper: motion, mvt5, middle, 2 s",
    ]


def test_the_same_detector_twice_is_told_apart(make_run):
    names = [
        line.name
        for table in report_of(
            make_run(attack=None, records=four_sources()),
            make_run(attack=None, records=four_sources()),
        ).side_by_side
        for line in table.lines
    ]
    assert names == ["tiny (01)", "tiny (02)"]


def test_markdown_and_latex_have_the_numbers(run):
    text = MarkdownReporter().text([run])
    assert "## Detection of tampering" in text
    assert re.search(r"\| mask \| 100\.0 .*\| 75\.0 \[30\.1, 95\.4\] \|", text)
    assert "| mask (4) | 0 | 1 | 3 | 0 |" in text
    assert r"mask (4) & 0 & 1 & 3 & 0 \\" in LatexReporter().text([run])


def test_the_page_has_the_tables_and_shows_names_as_text(make_run, tmp_path):
    names = ("original", HOSTILE, "mask")
    run = make_run(attack=None, records=four_sources(names))
    [path] = HtmlReporter().render([run], tmp_path / "r.html")
    page = path.read_text(encoding="utf-8")
    assert 'id="detection"' in page
    assert "Who is taken for whom" in page
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; (4)" in page
    assert 'class="num heat" style="--heat: 0.250"' in page


def test_the_terminal_shows_the_map_too(run):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    TerminalReporter().show([run], screen)
    assert "who is taken for whom" in screen.getvalue()
    assert "Originals kept %" in screen.getvalue()
