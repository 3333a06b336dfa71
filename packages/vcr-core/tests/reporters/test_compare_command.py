from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from vcr_core.cli import main
from vcr_core.cli.compare import command


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run ``vcr compare`` and return exit code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["compare", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def pair(make_run: Any, records: Any) -> tuple[Any, Any]:
    """Two runs of 25 videos; the second keeps 5 more of them."""
    return tuple(
        make_run(
            model=model,
            records=[records.video(f"v{i}", right=i < 24, held=i < kept) for i in range(25)],
        ).folder
        for model, kept in (("old", 5), ("new", 10))
    )


def rows(text: str, delimiter: str = "\t") -> dict[str, dict[str, str]]:
    return {row["quantity"]: row for row in csv.DictReader(io.StringIO(text), delimiter=delimiter)}


def test_a_pipe_gets_columns(compare: Any, pair: Any) -> None:
    code, out, err = compare(*pair)
    assert code == 0
    found = rows(out)
    robust = found["robust_accuracy"]
    assert (robust["value_a"], robust["value_b"], robust["difference"]) == ("0.2", "0.4", "0.2")
    assert (robust["only_a"], robust["only_b"], robust["p"]) == ("0", "5", "0.0625")
    # Three rates are tested, and this p is 3 times the smallest.
    assert float(robust["p_holm"]) == 0.1875
    assert int(robust["videos_needed"]) > 25
    assert found["psnr"]["p"] == ""
    assert err == ""


def test_markdown_has_numbers_notes_and_gates(compare: Any, pair: Any) -> None:
    code, out, err = compare(*pair, "--format", "md", "--gate", "robust_accuracy>=-2pp")
    assert code == 0
    assert "| robust\\_accuracy (%) | 20.0 | 40.0 | +20.0 [+8.0, +36.0] | 25 | 0 | 5 |" in out
    assert "model.name: old → new" in out
    assert "3 tests here" in out
    assert "gate robust\\_accuracy&gt;=-2pp: passed (20 pp" in out
    assert err == ""


def test_json(compare: Any, pair: Any) -> None:
    code, out, _ = compare(*pair, "--json", "--detect", "5pp", "--gate", "forwards<=1x")
    data = json.loads(out)
    assert (code, data["schema"], data["passed"], data["tests"]) == (0, 1, True, 3)
    (one,) = data["pairs"]
    assert one["videos"] == {"common": 25, "lost": [], "extra": []}
    assert one["differs"] == [{"name": "model.name", "a": "old", "b": "new"}]
    robust = next(q for q in one["quantities"] if q["quantity"] == "robust_accuracy")
    assert robust["difference"] == pytest.approx(0.2)
    assert robust["videos_needed_to_detect"] > robust["videos_needed"]
    assert data["overall"] is None
    assert data["gates"][0] == {
        "gate": "forwards<=1x", "pair": one["label"], "passed": True, "value": 1.0, "low": 1.0,
        "high": 1.0, "unit": "x", "reason": None,
    }  # fmt: skip


def test_a_failed_gate_is_exit_code_1(compare: Any, pair: Any) -> None:
    code, _, err = compare(*pair, "--gate", "robust_accuracy<=10pp", "--gate", "psnr>=-1")
    assert code == 1
    assert "gate robust_accuracy<=10pp: FAILED (20 pp [8, 36])" in err
    assert "gate psnr>=-1: passed (0 [0, 0])" in err
    code, out, err = compare(*pair, "--gate", "robust_accuracy<=10pp", "--json")
    assert code == 1
    assert json.loads(out)["passed"] is False
    assert "1 of 1 gates failed" in err


def test_gates_on_the_interval(compare: Any, pair: Any) -> None:
    gate = ("--gate", "robust_accuracy>=10pp")
    assert compare(*pair, *gate)[0] == 0
    assert compare(*pair, *gate, "--gate-on", "interval")[0] == 1


def test_a_gate_on_what_is_missing_fails(compare: Any, make_run: Any) -> None:
    clean, attacked = make_run(attack=None).folder, make_run().folder
    code, _, err = compare(clean, attacked, "--gate", "robust_accuracy>=-100pp")
    assert code == 1
    assert "FAILED (A: the run has no such rate)" in err


def test_lost_videos(compare: Any, make_run: Any, records: Any) -> None:
    more, fewer = (
        make_run(records=[records.video(f"v{i}", right=True, held=True) for i in range(n)]).folder
        for n in (4, 3)
    )
    code, _, err = compare(more, fewer, "--gate", "robust_accuracy>=0pp")
    assert code == 1
    assert "1 videos of A have no result" in err
    assert compare(more, fewer, "--gate", "robust_accuracy>=0pp", "--allow-missing")[0] == 0


def test_sweeps(compare: Any, make_run: Any) -> None:
    folder = None
    for model in ("old", "new"):
        for attack in ("ifgsm", "pgd"):
            folder = make_run(model=model, attack=attack).folder.parent
    sides = (folder, folder, "--where-a", "model=old", "--where-b", "model=new")
    code, out, _ = compare(*sides)
    assert code == 0
    table = list(csv.DictReader(io.StringIO(out), delimiter="\t"))
    assert [(row["pair"], row["quantity"]) for row in table] == [
        ("ifgsm", "robust_accuracy"), ("pgd", "robust_accuracy"),
        ("all 2 pairs", "robust_accuracy"),
    ]  # fmt: skip
    code, out, _ = compare(
        *sides, "--format", "md", "--metric", "asr_untargeted", "--metric", "mse"
    )
    assert code == 2
    code, out, _ = compare(*sides, "--format", "md", "--gate", "overall:psnr>=0")
    assert code == 0
    assert "Pairs: 2, differing in model" in out
    assert "## psnr" in out
    assert out.count("gate overall:psnr") == 1
    data = json.loads(compare(*sides, "--json")[1])
    assert [len(data["pairs"]), data["overall"]["label"], data["varied"]] == [
        2, "all 2 pairs", ["model"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gate", "robust_accuracy=>1pp"], "is no gate; it has to be"),
        (["--gate", "robust_accuracy>=1"], "say whether 1 is in points (pp)"),
        (["--gate", "nothing>=1pp"], "'nothing' is nothing these runs have"),
        (["--metric", "robust_acuracy"], "did you mean 'robust_accuracy'"),
        (["--detect", "5"], "write it like 5pp"),
        (["--vary", "eps"], "nothing runs can vary in"),
        (["--where-a", "model=other"], "none of its 1 runs has model=other"),
        (["--json", "--format", "md"], "exclude each other"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_wrong_usage_is_exit_code_2(
    compare: Any, pair: Any, arguments: list[str], message: str
) -> None:
    code, out, err = compare(*pair, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_places_that_hold_no_runs(compare: Any, pair: Any, tmp_path: Any) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for place, message in ((tmp_path / "no", "no such folder"), (empty, "there is no run in it")):
        code, _, err = compare(pair[0], place)
        assert code == 2
        assert message in err
    assert compare(pair[0], pair[0])[0] == 2


def test_runs_without_records(compare: Any, pair: Any, make_run: Any) -> None:
    code, _, err = compare(pair[0], make_run(records=[]).folder)
    assert code == 2
    assert "no run has records yet" in err


def test_a_terminal_gets_a_table(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rich_console = pytest.importorskip("rich.console")
    stream = io.StringIO()
    monkeypatch.setattr("vcr_core.cli.compare.is_terminal", lambda: True)
    make = rich_console.Console

    def console(**options: Any) -> Any:
        return make(**{**options, "file": stream, "width": 160, "force_terminal": False})

    monkeypatch.setattr(rich_console, "Console", console)
    with pytest.raises(SystemExit):
        command([*map(str, pair), "--gate", "robust_accuracy<=10pp"])
    text = stream.getvalue()
    assert "A: motion-old-ifgsm" in text
    assert "[+8.0, +36.0]" in text
    assert "Note: " not in text
    assert "gate robust_accuracy<=10pp: FAILED" in text


def test_help_has_examples() -> None:
    from click.testing import CliRunner

    text = CliRunner().invoke(command, ["--help"]).output
    assert "vcr compare results/RUN-A results/RUN-B" in text
    assert "a gate on a number that is missing has failed" in " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_terminal_leaves_columns_out_by_name(pair: Any, width: int) -> None:
    console_module = pytest.importorskip("rich.console")
    from vcr_core.comparing import adjust, compare_runs
    from vcr_core.reporters.comparison import Compared
    from vcr_core.reporters.comparison_terminal import draw
    from vcr_core.run_pairs import match_runs
    from vcr_core.summary import load_run

    matching = match_runs([load_run(pair[0])], [load_run(pair[1])])
    comparisons, tests = adjust(
        [compare_runs(matching.pairs[0], ["robust_accuracy", "asr_untargeted", "psnr"])]
    )
    stream = io.StringIO()
    console = console_module.Console(file=stream, width=width, color_system=None)
    draw(Compared(matching, comparisons, None, tests, (), "value", None, 0), console)
    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "robust_accuracy (%)" in text
    assert "[+8.0, +36.0]" in text
    assert ("Left out for lack of width: " in text) is (width < 120)
