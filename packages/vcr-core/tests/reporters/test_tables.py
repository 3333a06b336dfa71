from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from vcr_core.cli.report import command
from vcr_core.errors import UsageError
from vcr_core.reporters.cells import MISSING
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.rows import make_rows
from vcr_core.reporters.table_csv import CsvReporter
from vcr_core.reporters.terminal import TerminalReporter, draw_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(runs: list[Any], width: int) -> str:
    console_module = pytest.importorskip("rich.console")
    stream = Terminal()
    console = console_module.Console(
        file=stream, width=width, force_terminal=False, color_system=None
    )
    draw_table(make_rows(runs), console)
    return stream.getvalue()


def test_csv_has_numbers_intervals_and_empty_cells(make_run: Any) -> None:
    text = CsvReporter().text([make_run(flags=("zero-gradient",)), make_run(attack=None)])
    clean, attacked = csv.DictReader(io.StringIO(text))
    assert attacked["robust_accuracy"] == "0.25"
    assert float(attacked["robust_accuracy_low"]) < 0.25 < float(attacked["robust_accuracy_high"])
    assert attacked["flags"] == "zero-gradient"
    assert attacked["defended_robust_accuracy"] == ""
    assert clean["robust_accuracy"] == ""
    assert "no attack" not in clean["missing"]


def test_csv_headline_of_adaptive_run_is_defended(make_run: Any) -> None:
    text = CsvReporter().text([make_run(defense="median")])
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["headline"], row["headline_robust_accuracy"]) == ("defended", "0.0")
    assert row["robust_accuracy"] == "0.25"


def test_csv_cells_do_not_become_formulas(make_run: Any) -> None:
    text = CsvReporter().text([make_run(model="=cmd()")])
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["model"] == "'=cmd()"


def test_piped_table_is_tab_separated_without_decoration(make_run: Any) -> None:
    stream = io.StringIO()
    TerminalReporter().show([make_run(), make_run(model="a\tb\x1b[31m")], stream)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    widths = {line.count("\t") for line in lines}
    assert len(widths) == 1
    assert "\x1b" not in stream.getvalue()
    assert "─" not in stream.getvalue()
    header, first = lines[0].split("\t"), lines[1].split("\t")
    assert first[header.index("robust_accuracy")] == "0.25"
    assert first[header.index("defended_robust_accuracy")] == MISSING


def test_terminal_table_has_intervals_and_footnotes(make_run: Any) -> None:
    text = drawn([make_run(flags=("zero-gradient",))], 200)
    assert "25.0" in text
    assert "[7.1, 59.1]" in text
    assert "tiny (1)" in text
    assert "(1) zero-gradient: The gradient at the input was exactly zero" in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_terminal_table_never_cuts_a_number(make_run: Any, width: int) -> None:
    text = drawn([make_run(defense="median"), make_run()], width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert "100.0" in text


def test_narrow_terminal_says_what_is_left_out(make_run: Any) -> None:
    text = drawn([make_run()], 60)
    assert "Left out for lack of width" in text
    assert "PSNR (dB)" in text


def test_markdown_has_bold_headline_footnotes_and_reasons(make_run: Any) -> None:
    text = MarkdownReporter().text(
        [make_run(defense="median", flags=("zero-gradient",)), make_run(attack=None)]
    )
    assert "**0.0** [0.0, 32.4]" in text
    assert "| 25.0 [7.1, 59.1]" in text
    assert "tiny[^1]" in text
    assert "[^1]: `zero-gradient`: The gradient" in text
    assert "no attack (1 run)" not in text


def test_markdown_escapes_names(make_run: Any) -> None:
    text = MarkdownReporter().text([make_run(model="<script>|x")])
    assert "<script>" not in text
    assert "&lt;script&gt;\\|x" in text


def test_report_command_is_plain_in_a_pipe(make_run: Any) -> None:
    run = make_run()
    result = CliRunner().invoke(command, [str(run.folder.parent)], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output.startswith("run\tdataset\tmodel")


def test_report_command_prints_json(make_run: Any) -> None:
    run = make_run(flags=("zero-gradient",))
    result = CliRunner().invoke(command, [str(run.folder), "--json"], catch_exceptions=False)
    data = json.loads(result.output)
    assert data["schema"] == 1
    assert data["runs"][0]["robust_accuracy"] == 0.25
    assert data["runs"][0]["defended_robust_accuracy"] is None
    assert data["runs"][0]["flags"] == ["zero-gradient"]


def test_report_command_writes_by_suffix_and_says_where(make_run: Any, tmp_path: Path) -> None:
    run, target = make_run(), tmp_path / "table.md"
    arguments = [str(run.folder), "--output", str(target)]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.output.strip() == str(target)
    assert target.read_text(encoding="utf-8").startswith("# Robustness report")


def test_report_command_puts_html_beside_the_runs(make_run: Any) -> None:
    pytest.importorskip("jinja2")
    run = make_run()
    arguments = [str(run.folder.parent), "--format", "html"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert Path(result.output.strip()) == run.folder.parent / "report.html"
    assert (run.folder.parent / "report.html").is_file()


@pytest.mark.parametrize("details", [None, True, False])
def test_reporters_are_given_details_unless_they_say_otherwise(
    make_run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, details: bool | None
) -> None:
    run = make_run(records=[{"schema": 1, "video": "v", "status": "ok", "trace": [[1, 0.5]]}])

    class Own:
        def render(self, runs: list[Any], out: Path) -> list[Path]:
            self.seen = "trace" in runs[0].records[0]
            return [out]

    reporter = Own()
    if details is not None:
        reporter.details = details  # type: ignore[attr-defined]
    monkeypatch.setattr("vcr_core.cli.report._reporter", lambda name: reporter)
    words = [str(run.folder), "--format", "own", "--output", str(tmp_path / "x")]
    assert CliRunner().invoke(command, words, catch_exceptions=False).exit_code == 0
    assert reporter.seen is (details is not False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no such folder"),
        (["."], "there is no run in it"),
        ([".", "--format", "pdf"], "no reporter writes 'pdf'"),
        ([".", "--output", "x.bin"], "say with --format"),
        ([".", "--json", "--format", "csv"], "neither --format nor --output"),
    ],
)
def test_report_command_refuses(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
