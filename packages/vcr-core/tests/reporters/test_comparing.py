"""Comparisons of runs that are made by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from vcr_core.comparing import adjust, compare_runs, pool
from vcr_core.errors import UsageError
from vcr_core.quantities import kind_of, names, usual_names
from vcr_core.run_pairs import RunPair, match_runs, select
from vcr_core.run_settings import differences
from vcr_core.stats import mcnemar


def outcomes(records: Any, held: str, **changes: Any) -> list[dict[str, Any]]:
    """One record a letter: ``k`` stays right, ``l`` is lost, ``w`` was wrong before."""
    return [
        records.video(f"v{i}", right=letter != "w", held=letter == "k", **changes)
        for i, letter in enumerate(held)
    ]


def compared(make_run: Any, records: Any, a: str, b: str, *wanted: str, **options: Any) -> Any:
    runs = [
        make_run(model=model, records=outcomes(records, held))
        for model, held in (("old", a), ("new", b))
    ]
    one = compare_runs(RunPair(*runs, "pair"), wanted or ("robust_accuracy",), **options)
    return one


def test_mcnemar_by_hand(make_run: Any, records: Any) -> None:
    # Both keep 3, only A keeps 1, only B keeps 5, nobody keeps 1.
    one = compared(make_run, records, "kkkklllll" + "l", "kkkl" + "kkkkk" + "l")
    change = one.change("robust_accuracy")
    assert (change.value_a, change.value_b) == (0.4, 0.8)
    assert change.difference.value == pytest.approx(0.4)
    assert (change.test.only_a, change.test.only_b, change.test.n) == (1, 5, 10)
    # 2·(C(6,0) + C(6,1)) / 2^6.
    assert change.test.p == pytest.approx(14 / 64)
    binomtest = pytest.importorskip("scipy.stats").binomtest
    assert change.test.p == pytest.approx(binomtest(1, 6, 0.5).pvalue)
    assert change.n == 10


def test_a_conditional_rate_is_tested_where_both_count(make_run: Any, records: Any) -> None:
    one = compared(make_run, records, "llllkkww", "lkkkkkkl", "asr_untargeted")
    change = one.change("asr_untargeted")
    # Each over its own: 4 of 6, and 2 of 8.
    assert (change.value_a, change.value_b) == pytest.approx((4 / 6, 2 / 8))
    assert (change.test.only_a, change.test.only_b, change.test.n) == (3, 0, 6)
    # 6 of 8 videos count in both, so 8 are needed for every 6.
    assert change.needed is not None


def test_the_bootstrap_is_paired(make_run: Any, records: Any) -> None:
    same = compared(make_run, records, "klklklklkl", "klklklklkl")
    assert same.change("robust_accuracy").difference.ci95 == [0.0, 0.0]
    # Unpaired, an interval of these would be some 60 points wide.
    one = compared(make_run, records, "k" * 10 + "l" * 10, "k" * 11 + "l" * 9)
    low, high = one.change("robust_accuracy").difference.ci95
    assert (low, high) == pytest.approx((0.0, 0.15))


def test_the_seed_decides_the_interval(make_run: Any, records: Any) -> None:
    texts = "kklllklkklklllkklklk", "klllkkklklkkkllklkkl"
    first, again, other = (
        compared(make_run, records, *texts, seed=seed).change("robust_accuracy").difference
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.value == other.value


def test_means_are_over_attacked_videos_with_a_value_in_both(make_run: Any, records: Any) -> None:
    def run(model: str, values: list[float | None]) -> Any:
        return make_run(
            model=model,
            records=[
                records.video(f"v{i}", right=True, held=False, metrics={"psnr": {"value": value}})
                for i, value in enumerate(values)
            ],
        )

    pair = RunPair(run("a", [40.0, 42.0, None]), run("b", [41.0, 44.0, 10.0]), "pair")
    change = compare_runs(pair, ["psnr"]).change("psnr")
    assert (change.value_a, change.value_b, change.n) == (41.0, 42.5, 2)
    assert change.difference.value == pytest.approx(1.5)
    assert change.test is None
    assert change.needed is None


def test_a_defense_is_compared_as_a_whole_system(make_run: Any, records: Any) -> None:
    bare = make_run(records=outcomes(records, "kllll"))
    defended = make_run(
        defense="median",
        records=[
            records.video(f"v{i}", right=True, held=i == 0, defended=(i < 4, i < 3))
            for i in range(5)
        ],
    )
    pair = RunPair(bare, defended, "pair")
    one = compare_runs(pair, ["clean_accuracy", "robust_accuracy", "bare_robust_accuracy"])
    clean, robust, undefended = one.changes
    assert (clean.value_a, clean.value_b) == (1.0, 0.8)
    assert (robust.value_a, robust.value_b) == (0.2, 0.6)
    assert (robust.a.of, robust.b.of) == ("robust_accuracy", "defended_robust_accuracy")
    assert (undefended.value_a, undefended.value_b) == (0.2, 0.2)


def test_several_draws_have_no_mcnemar_test(make_run: Any, records: Any) -> None:
    def run(kept: int) -> Any:
        made = [
            records.video(f"v{i}", right=True, held=False, defended=(True, True)) for i in range(3)
        ]
        draws = [made[0]["attacked_defended"][0]] * kept
        wrong = {**draws[0], "pred": 1} if draws else None
        for record in made:
            record["attacked_defended"] = draws + [wrong] * (4 - kept)
        return make_run(defense="rotate", records=made)

    change = compare_runs(RunPair(run(1), run(3), "pair"), ["robust_accuracy"]).changes[0]
    assert (change.value_a, change.value_b) == (0.25, 0.75)
    assert change.test is None
    assert "several outcomes a video" in change.no_test
    assert change.difference.ci95 is not None


def test_what_one_run_lacks_has_a_reason(make_run: Any, records: Any) -> None:
    pair = RunPair(make_run(attack=None), make_run(), "pair")
    change = compare_runs(pair, ["robust_accuracy"]).changes[0]
    assert change.reason == "A: the run has no such rate"
    assert change.difference.value is None


def test_videos_that_one_run_lacks_are_left_out_and_told(make_run: Any, records: Any) -> None:
    first = [*outcomes(records, "kkkk"), records.error("broken", "torn")]
    second = [*outcomes(records, "klk"), records.video("extra", right=True, held=True)]
    one = compare_runs(
        RunPair(make_run(records=first), make_run(records=second), "pair"), ["robust_accuracy"]
    )
    assert one.videos.common == ("v0", "v1", "v2")
    assert set(one.videos.lost) == {"v3", "broken"}
    assert one.videos.extra == ("extra",)
    assert any("2 videos of A" in note for note in one.notes)
    assert one.changes[0].n == 3


class TestRefusals:
    def test_another_dataset(self, make_run: Any) -> None:
        other = make_run()
        other.manifest["experiment"]["dataset"] = {"name": "vcr-core/ucf101"}
        with pytest.raises(UsageError, match=r"on motion and .* on ucf101.*cannot be paired"):
            compare_runs(RunPair(make_run(), other, "pair"), ["robust_accuracy"])

    def test_no_common_video(self, make_run: Any, records: Any) -> None:
        other = make_run(records=[records.video("else", right=True, held=True)])
        with pytest.raises(UsageError, match="no evaluated video in common"):
            compare_runs(RunPair(make_run(), other, "pair"), ["robust_accuracy"])

    def test_another_file_of_the_same_name(self, make_run: Any, records: Any) -> None:
        runs = []
        for content in ("aa", "bb"):
            made = outcomes(records, "kl")
            made[1]["input"] = {"sha256": content * 16}
            runs.append(make_run(records=made))
        with pytest.raises(UsageError, match="v1 is another file in"):
            compare_runs(RunPair(*runs, "pair"), ["robust_accuracy"])

    def test_another_label(self, make_run: Any, records: Any) -> None:
        made = outcomes(records, "kl")
        made[0]["label"] = 1
        with pytest.raises(UsageError, match=r"v0 is walk in .* and run & jump in"):
            compare_runs(RunPair(make_run(), make_run(records=made), "pair"), ["robust_accuracy"])

    def test_another_evaluation_version(self, make_run: Any) -> None:
        pair = RunPair(make_run(), make_run(evaluation_version=2), "pair")
        with pytest.raises(UsageError, match=r"evaluation versions differ .*--across-versions"):
            compare_runs(pair, ["robust_accuracy"])
        one = compare_runs(pair, ["robust_accuracy"], across_versions=True)
        assert any("may come from the evaluation" in note for note in one.notes)


def test_an_unfinished_run_is_told(make_run: Any) -> None:
    one = compare_runs(RunPair(make_run(), make_run(status="interrupted"), "p"), ["clean_accuracy"])
    assert any(note.startswith("B is interrupted") for note in one.notes)


def test_the_mean_over_pairs_resamples_videos(make_run: Any, records: Any) -> None:
    pairs = [
        compared(make_run, records, "kllllkkkll", "kkklllkkkl"),
        compared(make_run, records, "llllkkkkll", "kkllkkkkll"),
    ]
    mean = pool(pairs).change("robust_accuracy")
    assert mean.value_a == pytest.approx(0.4)
    assert mean.value_b == pytest.approx(0.6)
    # The same pair twice is no more videos than once.
    once = pairs[0].change("robust_accuracy").difference
    twice = pool([pairs[0], pairs[0]]).change("robust_accuracy").difference
    assert twice.ci95 == pytest.approx(once.ci95)
    assert twice.n == once.n
    assert mean.test is None


def test_all_tests_share_one_adjustment(make_run: Any, records: Any) -> None:
    pairs = [
        compared(make_run, records, "llllllll", "kkkkkkkk"),
        compared(make_run, records, "llllllll", "kkkkkkll"),
    ]
    adjusted, tests = adjust(pairs)
    assert tests == 2
    found = [one.changes[0].test for one in adjusted]
    assert found[0].p_adjusted == pytest.approx(2 * mcnemar(0, 8))
    assert found[1].p_adjusted == pytest.approx(mcnemar(0, 6))


def test_a_difference_to_detect(make_run: Any, records: Any) -> None:
    one = compared(make_run, records, "kkkkkkkkkl", "kkkkkkkkkk", detect=0.3)
    change = one.change("robust_accuracy")
    assert change.needed is not None
    assert change.needed_given is not None
    assert change.needed_given < change.needed


def test_names(make_run: Any) -> None:
    runs = [make_run(), make_run(defense="median")]
    found = names(runs)
    assert {"robust_accuracy", "bare_robust_accuracy", "psnr", "forwards", "benefit"} <= set(found)
    assert usual_names(runs)[:3] == ["clean_accuracy", "robust_accuracy", "asr_untargeted"]
    assert usual_names(runs, few=True) == ["robust_accuracy"]
    assert [kind_of(n, runs) for n in ("benefit", "psnr", "forwards")] == ["rate", "metric", "cost"]
    with pytest.raises(UsageError, match="did you mean 'robust_accuracy'"):
        kind_of("robust_acuracy", runs)


class TestMatching:
    def test_one_against_one_is_a_pair_whatever_they_are(self, make_run: Any) -> None:
        a, b = make_run(), make_run(model="other", attack="pgd", eps=0.1)
        (pair,) = match_runs([a], [b]).pairs
        assert (pair.a, pair.b) == (a, b)
        assert pair.label == "tiny → other, ifgsm → pgd, L∞ 8/255 → L∞ 25.5/255"

    def test_sweeps_are_paired_by_what_they_share(self, make_run: Any) -> None:
        a = [make_run(model="old", attack=attack) for attack in ("ifgsm", "pgd", "square", None)]
        b = [make_run(model="new", attack=attack) for attack in (None, "pgd", "ifgsm", "stadv")]
        found = match_runs(a, b)
        assert found.varied == ("model",)
        assert [(p.a.attack, p.b.attack) for p in found.pairs] == [
            ("ifgsm", "ifgsm"), ("pgd", "pgd"), ("", ""),
        ]  # fmt: skip
        assert [p.label for p in found.pairs] == [
            "ifgsm, L∞ 8/255", "pgd, L∞ 8/255", "no attack",
        ]  # fmt: skip
        assert [run.attack for run in found.only_a] == ["square"]
        assert [run.attack for run in found.only_b] == ["stadv"]

    def test_the_same_experiments_need_no_axis(self, make_run: Any) -> None:
        a, b = ([make_run(attack=x) for x in ("ifgsm", "pgd")] for _ in range(2))
        found = match_runs(a, b)
        assert found.varied == ()
        assert len(found.pairs) == 2

    def test_a_defense_takes_the_protocol_of_defenses_with_it(self, make_run: Any) -> None:
        a = [make_run(attack=x, adaptive=False) for x in ("ifgsm", "pgd")]
        b = [make_run(attack=x, defense="median") for x in ("ifgsm", "pgd")]
        assert match_runs(a, b).varied == ("defense",)

    def test_a_seed_for_itself(self, make_run: Any) -> None:
        a, b = ([make_run(attack=x) for x in ("ifgsm", "pgd")] for _ in range(2))
        for run in b:
            run.manifest["experiment"]["seed"] = 7
        assert match_runs(a, b).varied == ("seed",)

    def test_what_is_told_is_taken(self, make_run: Any) -> None:
        a = [make_run(attack=x) for x in ("ifgsm", "pgd")]
        b = [make_run(attack=x, eps=0.1) for x in ("ifgsm", "pgd")]
        assert match_runs(a, b, vary=["threat"]).varied == ("threat",)
        with pytest.raises(UsageError, match="apart from model no run"):
            match_runs(a, b, vary=["model"])
        with pytest.raises(UsageError, match="'eps' is nothing runs can vary in"):
            match_runs(a, b, vary=["eps"])

    def test_nothing_fits(self, make_run: Any) -> None:
        a = [make_run(model=x) for x in ("m1", "m2")]
        b = [make_run(model=x) for x in ("m3", "m4")]
        with pytest.raises(UsageError, match=r"2 and 2 runs cannot be paired: they share no model"):
            match_runs(a, b)

    def test_a_run_against_itself(self, make_run: Any) -> None:
        run = make_run()
        with pytest.raises(UsageError, match="both sides are the same runs"):
            match_runs([run], [run])

    def test_selected_runs_of_one_folder(self, make_run: Any) -> None:
        runs = [make_run(model=m, defense=d) for m in ("m1", "m2") for d in (None, "median")]
        assert select(runs, ["model=m1", "defense=none"]) == runs[:1]
        assert select(runs, ["adaptive=yes"]) == [runs[1], runs[3]]
        for text in ("m1", "eps=1"):
            with pytest.raises(UsageError, match="is no condition; write KEY=VALUE"):
                select(runs, [text])


def test_differences_name_settings_and_versions(make_run: Any) -> None:
    a, b = make_run(), make_run(eps=0.1)
    b.manifest["experiment"]["attack"]["steps"] = 50
    b.manifest["components"][0]["version"] = "1.1"
    assert [d.text for d in differences(a, b)] == [
        "attack.steps: 10 → 50", "threat.eps: 0.0313725 → 0.1", "vcr-models: 1.0 → 1.1",
    ]  # fmt: skip


def test_what_cannot_matter_is_no_difference(make_run: Any) -> None:
    a, b = make_run(attack=None), make_run(attack=None, eps=0.5, adaptive=False)
    assert differences(a, b) == []
    assert json.dumps(match_runs([a, make_run()], [b]).varied) == "[]"
