from __future__ import annotations

import pytest
from vcr_core.comparing import Comparison, make_change
from vcr_core.errors import UsageError
from vcr_core.gates import check_unit, judge, judge_all, parse_gate, parse_points
from vcr_core.quantities import Side
from vcr_core.shared_videos import Videos
from vcr_core.stats import Term


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("robust_accuracy>=-2pp", ("robust_accuracy", ">=", -2.0, "pp", False)),
        (" robust_accuracy >= -2 pp ", ("robust_accuracy", ">=", -2.0, "pp", False)),
        ("forwards<=1.1x", ("forwards", "<=", 1.1, "x", False)),
        ("t_attack_s<+10%", ("t_attack_s", "<", 10.0, "%", False)),
        ("psnr>-0.5", ("psnr", ">", -0.5, "", False)),
        ("ssim-uniform7>=-1e-3", ("ssim-uniform7", ">=", -0.001, "", False)),
        ("overall:asr_untargeted<=.5pp", ("asr_untargeted", "<=", 0.5, "pp", True)),
    ],
)
def test_the_grammar(text, parts):
    gate = parse_gate(text)
    assert (gate.name, gate.op, gate.number, gate.unit, gate.overall) == parts
    assert gate.text == text.strip()


@pytest.mark.parametrize(
    "text",
    ["", "robust_accuracy", "robust_accuracy>=", ">=2pp", "a==2pp", "a>=2dB", "a>=two", "a=>2pp",
     "each:a>=2pp", "a>=2pp b", "a>=--2pp", "a>=nanpp"],
)  # fmt: skip
def test_what_is_no_gate(text):
    with pytest.raises(UsageError, match=r"is no gate; it has to be \[overall:\]NAME"):
        parse_gate(text)


def test_a_ratio_is_not_negative():
    with pytest.raises(UsageError, match="a ratio cannot be negative"):
        parse_gate("forwards<=-1x")


def test_points():
    assert parse_points("5pp") == 0.05
    assert parse_points(" -2.5 pp") == -0.025
    for text in ("5", "0pp", "101pp", "5%", "pp"):
        with pytest.raises(UsageError, match="write it like 5pp"):
            parse_points(text)


def test_units_fit_quantities():
    check_unit(parse_gate("robust_accuracy>=-2pp"), "rate")
    check_unit(parse_gate("psnr>=-2"), "metric")
    check_unit(parse_gate("forwards<=1.1x"), "cost")
    with pytest.raises(UsageError, match=r"say whether -2 is in points \(pp\)"):
        check_unit(parse_gate("robust_accuracy>=-2"), "rate")
    with pytest.raises(UsageError, match="there are no points"):
        check_unit(parse_gate("psnr>=-2pp"), "metric")


def compared(a, b, *, kind="rate", name="robust_accuracy", lost=()):
    """Compare one value a video in both runs."""
    sides = (
        Side(name, {str(i): Term(v) for i, v in enumerate(side)}, "" if side else "not measured")
        for side in (a, b)
    )
    change = make_change(name, kind, *sides)
    ids = tuple(str(i) for i in range(len(a)))
    return Comparison("pair", "A", "B", (), Videos(ids, tuple(lost), ()), (), (change,))


HALF = [1.0, 0.0] * 50
WORSE = [1.0, 0.0] * 49 + [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("robust_accuracy>=-2pp", True),
        # Met exactly, though 0.49 - 0.5 is no such number in binary.
        ("robust_accuracy>=-1pp", True),
        ("robust_accuracy>-1pp", False),
        ("robust_accuracy<=-1pp", True),
        ("robust_accuracy<-1pp", False),
        ("robust_accuracy>=-0.5pp", False),
        ("robust_accuracy>=-2%", True),
        ("robust_accuracy>=-1.9%", False),
        ("robust_accuracy>=0.98x", True),
        ("robust_accuracy>=0.981x", False),
    ],
)
def test_the_value_meets_the_limit(text, passed):
    verdict = judge(parse_gate(text), compared(HALF, WORSE))
    assert verdict.passed is passed
    assert verdict.reason == ""


def test_the_whole_interval_meets_the_limit():
    one = compared(HALF, WORSE)
    # One video of 100 changed: the interval of the difference is [-3, 0] points.
    verdict = judge(parse_gate("robust_accuracy>=-2pp"), one, on="interval")
    assert (verdict.low, verdict.high) == pytest.approx((-3.0, 0.0))
    assert not verdict.passed
    assert judge(parse_gate("robust_accuracy>=-3pp"), one, on="interval").passed
    assert not judge(parse_gate("robust_accuracy<=-1pp"), one, on="interval").passed
    assert judge(parse_gate("robust_accuracy<=0pp"), one, on="interval").passed


def test_numbers_are_in_the_unit_of_the_gate():
    one = compared([2.0, 4.0], [3.0, 6.0], kind="cost", name="forwards")
    assert judge(parse_gate("forwards<=2x"), one).value == pytest.approx(1.5)
    assert judge(parse_gate("forwards<=60%"), one).value == pytest.approx(50)
    assert judge(parse_gate("forwards<=2"), one).value == pytest.approx(1.5)


def test_what_is_missing_fails():
    verdict = judge(parse_gate("robust_accuracy>=-100pp"), compared([], [1.0]))
    assert not verdict.passed
    assert verdict.reason == "A: not measured"
    verdict = judge(parse_gate("psnr>=-100"), compared(HALF, HALF))
    assert (verdict.passed, verdict.reason) == (False, "not compared")
    verdict = judge(parse_gate("robust_accuracy>=0%"), compared([0.0], [1.0]))
    assert (verdict.passed, verdict.value) == (False, None)
    assert "A is not above 0" in verdict.reason


def test_lost_videos_fail_unless_they_are_allowed():
    one = compared(HALF, HALF, lost=["x"])
    gate = parse_gate("robust_accuracy>=-2pp")
    verdict = judge(gate, one)
    assert (verdict.passed, verdict.value) == (False, 0.0)
    assert "1 videos of A have no result" in verdict.reason
    assert judge(gate, one, allow_missing=True).passed


def test_gates_are_judged_for_every_pair_or_for_the_mean():
    pairs = [compared(HALF, HALF), compared(HALF, WORSE)]
    mean = compared(HALF, WORSE)
    gates = [parse_gate("robust_accuracy>=0pp"), parse_gate("overall:robust_accuracy>=-2pp")]
    assert [v.passed for v in judge_all(gates, pairs, mean)] == [True, False, True]
    # With one pair the mean is that pair.
    assert [v.passed for v in judge_all(gates, pairs[:1], None)] == [True, True]
