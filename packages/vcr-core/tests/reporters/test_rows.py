from __future__ import annotations

from typing import Any

import pytest
from vcr_core.health_text import HEALTH_TEXT, UNKNOWN_FLAG, explain_flag
from vcr_core.reporters.cells import MISSING, Cell, cell_from
from vcr_core.reporters.rows import make_row, make_rows, metric_names, threat_text
from vcr_core.stats import wilson


def test_row_holds_rates_with_their_intervals(make_run: Any) -> None:
    row = make_row(make_run())
    low, high = wilson(2, 8)
    assert (row.model, row.attack, row.defense, row.adaptive) == ("tiny", "ifgsm", "none", None)
    assert row.undefended.clean.value == 6 / 8
    robust = row.headline.robust
    assert (robust.value, robust.low, robust.high, robust.k, robust.n) == (0.25, low, high, 2, 8)
    assert row.asr.value == pytest.approx(4 / 6)
    assert row.queries.value == 10
    assert row.queries.interval == "[10, 10]"
    assert row.threat == "L∞ 8/255"
    assert (row.n, row.errors) == (8, 0)


def test_adaptive_run_has_the_defended_pair_as_headline(make_run: Any) -> None:
    row = make_row(make_run(defense="median", adaptive=True))
    assert row.adaptive is True
    assert row.headline_defended
    assert row.headline is row.defended
    assert (row.headline.clean.value, row.headline.robust.value) == (1.0, 0.0)
    assert row.undefended.robust.value == 0.25
    assert row.asr_name == "defended_asr_untargeted"
    assert row.asr.value == 1.0


def test_run_whose_attack_ignores_the_defense_keeps_both_pairs_apart(make_run: Any) -> None:
    row = make_row(make_run(defense="median", adaptive=False))
    assert row.adaptive is False
    assert row.headline is row.undefended
    assert row.defended is not None
    assert row.defended.robust.value == 0.0
    assert row.asr_name == "asr_untargeted"


def test_missing_is_missing_with_a_reason_and_never_zero(make_run: Any, records: Any) -> None:
    identical = {"psnr": {"value": None, "reason": "identical"}}
    run = make_run(
        records=[records.video(f"v{i}", right=False, held=False, metrics=identical) for i in (1, 2)]
    )
    row = make_row(run)
    assert row.asr.value is None
    assert row.asr.text == MISSING
    assert row.asr.reason == "denominator is 0"
    assert row.metrics["psnr"].value is None
    assert row.metrics["psnr"].reason == "identical (2)"
    assert row.undefended.robust.text == "0.0"


def test_clean_run_has_no_robust_accuracy(make_run: Any) -> None:
    row = make_row(make_run(attack=None))
    assert row.headline.robust.value is None
    assert row.headline.robust.reason == "no attack"
    assert row.threat == MISSING
    assert row.headline.clean.value == 6 / 8


def test_errors_are_counted_and_left_out_of_n(make_run: Any, records: Any) -> None:
    found = [records.video("a", right=True, held=True), records.error("b", "torn")]
    row = make_row(make_run(records=found))
    assert (row.n, row.errors, row.headline.robust.value) == (1, 1, 1.0)


def test_rows_are_ordered_by_threat_then_robustness(make_run: Any, records: Any) -> None:
    weak = [records.video("a", right=True, held=False)]
    strong = [records.video("a", right=True, held=True)]
    rows = make_rows(
        [
            make_run(model="weak", records=weak),
            make_run(model="strong", records=strong),
            make_run(model="weak", eps=2 / 255, records=weak),
            make_run(model="zero", attack=None),
        ]
    )
    assert [(row.model, row.threat) for row in rows] == [
        ("zero", MISSING), ("weak", "L∞ 2/255"), ("strong", "L∞ 8/255"), ("weak", "L∞ 8/255"),
    ]  # fmt: skip


def test_rows_that_would_read_alike_name_what_differs(make_run: Any) -> None:
    def run(eps: float, **attack: Any) -> Any:
        found = make_run(eps=eps)
        found.manifest["experiment"]["attack"].update(attack)
        return found

    rows = make_rows(
        [
            run(2 / 255, step_size=0.1),
            run(8 / 255, step_size=0.4),
            run(8 / 255, step_size=0.4, restarts=5),
            make_run(model="other"),
        ]
    )
    assert [(row.model, row.attack_text) for row in rows] == [
        ("tiny", "ifgsm"), ("other", "ifgsm"), ("tiny", "ifgsm"), ("tiny", "ifgsm (restarts = 5)"),
    ]  # fmt: skip


def test_runs_with_two_seeds_name_both(make_run: Any) -> None:
    runs = [make_run(), make_run()]
    runs[1].manifest["experiment"]["seed"] = 43
    assert [row.detail for row in make_rows(runs)] == ["seed = 42", "seed = 43"]


def test_metric_columns_put_the_usual_ones_first(make_run: Any, records: Any) -> None:
    values = {name: {"value": 1.0} for name in ("zeta", "ssim", "mse")}
    run = make_run(records=[records.video("a", right=True, held=True, metrics=values)])
    assert metric_names([make_row(run)]) == ["mse", "ssim", "zeta"]


def test_extremes_of_frames_stay_out_of_tables(make_run: Any, records: Any) -> None:
    values = {f"lpips{end}": {"value": 1.0} for end in ("", "_frame_max", "_frame_p95")}
    run = make_run(records=[records.video("a", right=True, held=True, metrics=values)])
    assert metric_names([make_row(run)]) == ["lpips"]
    assert len(make_row(run).metrics) == 3


@pytest.mark.parametrize(
    ("norm", "eps", "text"),
    [
        ("linf", 8 / 255, "L∞ 8/255"),
        ("linf", 0.5 / 255, "L∞ 0.5/255"),
        ("linf", 0.1, "L∞ 25.5/255"),
        ("linf", 0.0123, "L∞ 0.0123"),
        ("l2", 3.0, "L2 3"),
        ("none", None, "no norm bound"),
    ],
)
def test_threat_text(norm: str, eps: float | None, text: str) -> None:
    assert threat_text(norm, eps) == text


@pytest.mark.parametrize("entry", [None, True, "0.5", {}, {"value": None}])
def test_entries_without_a_number_give_no_number(entry: Any) -> None:
    cell = cell_from(entry, absent="not there")
    assert (cell.value, cell.text, cell.interval, cell.reason) == (None, MISSING, "", "not there")


def test_cell_text_is_in_per_cent_for_shares() -> None:
    cell = Cell(value=0.625, low=0.5, high=0.75, k=5, n=8, share=True)
    assert (cell.both, cell.fraction) == ("62.5 [50.0, 75.0]", "5/8")


def test_every_flag_of_the_design_is_explained_in_one_sentence() -> None:
    flags = {
        "attack-no-effect", "zero-gradient", "probabilities-not-logits", "undeclared-randomness",
        "gradient-not-reaching-input", "blackbox-beats-whitebox", "more-steps-do-not-help",
        "larger-eps-does-not-help", "unbounded-fails", "constraint-violated", "lost-by-rounding",
        "lost-by-reencoding", "budget-exhausted-often", "errors-over-budget",
        "adaptive-not-applicable",
    }  # fmt: skip
    assert flags <= set(HEALTH_TEXT)
    assert set(HEALTH_TEXT) - flags == {"leak", "smaller-chunk", "unaware-beats-adaptive"}
    for text in HEALTH_TEXT.values():
        assert text.endswith(".")
        assert text.count(". ") == 0
    assert explain_flag("somebody-elses") == UNKNOWN_FLAG
