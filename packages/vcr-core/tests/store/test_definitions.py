from __future__ import annotations

import pytest
from vcr_core import definitions
from vcr_core.errors import UsageError
from vcr_core.stats import discordant, mcnemar, paired_difference, wilson

# By hand from the table in conftest: 9 evaluated videos, 7 right for f, 6 right for d∘f.
BY_HAND = {
    "clean_accuracy": (7, 9),
    "defended_clean_accuracy": (6, 9),
    "robust_accuracy": (3, 9),  # v2 v5 v9
    "defended_robust_accuracy": (4, 9),  # v0 v2 v6 v9
    "asr_untargeted": (4, 7),  # v0 v1 v3 v4
    "defended_asr_untargeted": (2, 6),  # v1 v4
    "asr_targeted": (2, 7),  # v0 v4
    "defended_asr_targeted": (1, 7),  # v4
    "asr_paper": (2, 6),
    "robust_accuracy_paper": (4, 9),
    "clean_top5_accuracy": (9, 9),
    "robust_top5_accuracy": (9, 9),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_rate_by_hand(ten_records, name):
    k, n = BY_HAND[name]
    entry = definitions.evaluate(name, ten_records)
    assert (entry["k"], entry["n"], entry["method"]) == (k, n, "wilson")
    assert entry["value"] == pytest.approx(k / n)
    assert entry["ci95"] == pytest.approx(wilson(k, n))
    assert "reason" not in entry


@pytest.mark.parametrize(
    ("name", "value", "k"),
    [("benefit", 1 / 9, 1), ("harm", 1 / 9, 1), ("recovered_fraction", 1 / 4, 1)],
)
def test_difference_by_hand(ten_records, name, value, k):
    entry = definitions.evaluate(name, ten_records)
    assert entry["value"] == pytest.approx(value)
    assert entry["k"] == k
    assert entry["method"] == "bootstrap"
    low, high = entry["ci95"]
    assert low < value < high


def test_differences_are_what_they_say(ten_records):
    def value(name):
        return definitions.evaluate(name, ten_records)["value"]

    assert value("benefit") == pytest.approx(
        value("defended_robust_accuracy") - value("robust_accuracy")
    )
    assert value("harm") == pytest.approx(
        value("clean_accuracy") - value("defended_clean_accuracy")
    )


def test_every_rate_is_tested_or_needs_something_else(ten_records):
    names = {rule.name for rule in definitions.applicable(definitions.facts_of(ten_records))}
    assert names == {*BY_HAND, "benefit", "harm", "recovered_fraction"}


def test_identity_of_the_paper(ten_records):
    for side in ("", "defended_"):
        clean, asr, robust = (
            definitions.evaluate(f"{side}{name}", ten_records)["value"]
            for name in ("clean_accuracy", "asr_untargeted", "robust_accuracy")
        )
        assert robust == pytest.approx(clean * (1 - asr))
    h_clean, asr, robust = (
        definitions.evaluate(name, ten_records)["value"]
        for name in ("defended_clean_accuracy", "asr_paper", "robust_accuracy_paper")
    )
    assert robust == pytest.approx(h_clean * (1 - asr))


# Clean accuracy, ASR and robust accuracy in per cent: rows of the paper's table 2.
TABLE_2 = [
    ("ActionCLIP", 66.91, 72.38, 18.48),
    ("R(2+1)D", 46.96, 76.92, 10.84),
    ("TAdaFormer", 79.96, 49.50, 40.38),
    ("Video Swin", 74.77, 62.03, 28.39),
    ("UniFormerV2", 86.73, 68.89, 26.98),
]


@pytest.mark.golden
@pytest.mark.parametrize(("model", "clean", "asr", "robust"), TABLE_2)
def test_table_2_of_the_paper(model, clean, asr, robust):
    # A record set with the printed clean accuracy and ASR has the printed robust accuracy, which
    # holds only if errors stay out, clean mistakes stay mistakes and success is "label changed".
    n = 10_000
    right, lost = round(clean * n / 100), round(clean * n / 100 * asr / 100)
    records = [
        {
            "video": str(i),
            "status": "ok" if i < right else "ineligible",
            "label": 0,
            "target": 1,
            "clean": {"pred": 0 if i < right else 1},
            "attacked": {"pred": 0 if lost <= i < right else 2},
        }
        for i in range(n)
    ]
    records += [{"video": f"e{i}", "status": "error", "label": 0} for i in range(500)]
    found = definitions.evaluate("robust_accuracy_paper", records)
    # Printed to 0.01, from rounded inputs: 0.01 points, as found when the table was checked.
    assert 100 * found["value"] == pytest.approx(robust, abs=0.0101), model
    assert 100 * definitions.evaluate("asr_paper", records)["value"] == pytest.approx(asr, abs=0.01)
    assert definitions.evaluate("asr_targeted", records)["value"] == 0.0


@pytest.mark.parametrize(
    "name",
    ["asr_untargeted", "defended_asr_untargeted", "asr_paper", "robust_accuracy_paper"],
)
def test_no_clean_correct_video_gives_no_value(ten_records, name):
    # Both systems are wrong on every clean video that is left.
    wrong = [r for r in ten_records if r["video"] == "v7"]
    wrong = [{**r, "clean_defended": r["clean"]} for r in wrong]
    entry = definitions.evaluate(name, wrong)
    assert (entry["value"], entry["ci95"]) == (None, None)
    assert entry["reason"] == "denominator is 0"
    assert definitions.evaluate("robust_accuracy", wrong)["value"] == 0.0


@pytest.mark.parametrize("name", definitions.DEFINITIONS)
def test_no_records_give_no_value(name):
    entry = definitions.evaluate(name, [])
    assert entry["value"] is None
    assert entry["n"] == 0
    assert entry["reason"] == "denominator is 0"


def test_targeted_counts_eligible_videos_only(ten_records):
    # v6 is ineligible and happens to be given its target: no success of the attack.
    v6 = next(r for r in ten_records if r["video"] == "v6")
    assert v6["attacked"]["pred"] == v6["target"]
    assert "v6" not in definitions.terms("asr_targeted", ten_records)


def test_recovered_fraction_needs_something_lost(ten_records):
    unharmed = [r for r in ten_records if r["video"] in ("v2", "v9")]
    assert definitions.evaluate("recovered_fraction", unharmed)["value"] is None


def test_ineligible_video_without_attacked_corner_is_its_own_attack(ten_records):
    bare = [{k: v for k, v in r.items() if k != "attacked"} for r in ten_records]
    bare = [b if b["status"] == "ineligible" else r for b, r in zip(bare, ten_records, strict=True)]
    assert definitions.evaluate("robust_accuracy", bare) == definitions.evaluate(
        "robust_accuracy", ten_records
    )


class TestDraws:
    @pytest.fixture
    def random_records(self, corner):
        """Three videos, R = 5: right in 5, 3 and 1 draws after the attack; the last clean wrong."""

        def make(video, clean, wins):
            draws = [corner(0, 0)] * wins + [corner(1, 0)] * (5 - wins)
            return {
                "video": video, "status": "ok", "label": 0, "target": 1, "clean": corner(0, 0),
                "attacked": corner(1, 0), "clean_defended": corner(clean, 0),
                "attacked_defended": draws,
            }  # fmt: skip

        return [make("a", 0, 5), make("b", 0, 3), make("c", 0, 1), make("d", 1, 4)]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("defended_robust_accuracy", (1 + 0.6 + 0.2) / 4),
            ("defended_asr_untargeted", (0.4 + 0.8) / 3),
            ("defended_asr_targeted", (0.4 + 0.8 + 0.2) / 4),
            ("asr_paper", (0.4 + 0.8) / 3),
            ("robust_accuracy_paper", (1 + 0.6 + 0.2) / 4),
        ],
    )
    def test_headline_is_the_mean_over_draws(self, random_records, name, value):
        entry = definitions.evaluate(name, random_records)
        assert entry["value"] == pytest.approx(value)
        assert entry["method"] == "bootstrap"
        assert entry["k"] is None
        low, high = entry["ci95"]
        assert 0 <= low < value < high <= 1

    @pytest.mark.parametrize(
        ("name", "k", "n"),
        [
            ("defended_robust_accuracy_any", 1, 4),
            ("defended_robust_accuracy_majority", 2, 4),
            ("defended_asr_untargeted_any", 2, 3),
            ("defended_asr_untargeted_majority", 1, 3),
            ("defended_asr_targeted_any", 3, 4),
            ("defended_asr_targeted_majority", 1, 4),
        ],
    )
    def test_any_and_majority(self, random_records, name, k, n):
        entry = definitions.evaluate(name, random_records)
        assert (entry["k"], entry["n"], entry["method"]) == (k, n, "wilson")

    def test_variants_apply_only_with_draws(self, random_records, ten_records):
        def names(records):
            return {r.name for r in definitions.applicable(definitions.facts_of(records))}

        assert "defended_robust_accuracy_any" in names(random_records)
        assert "defended_robust_accuracy_any" not in names(ten_records)

    def test_clean_draws_are_paired_with_attacked_draws(self, corner):
        right, wrong = corner(0, 0), corner(1, 0)
        record = {
            "video": "a", "status": "ok", "label": 0, "clean": right, "attacked": right,
            "clean_defended": [right, right, wrong, wrong],
            "attacked_defended": [right, wrong, right, wrong],
        }  # fmt: skip
        assert definitions.evaluate("defended_clean_accuracy", [record])["value"] == 0.5
        assert definitions.evaluate("defended_robust_accuracy", [record])["value"] == 0.25
        assert definitions.evaluate("defended_asr_untargeted", [record])["value"] == 0.5
        # Two of four draws is no majority.
        assert definitions.evaluate("defended_robust_accuracy_majority", [record])["value"] == 0.0

    def test_unequal_numbers_of_draws_count_every_pair(self, corner):
        right, wrong = corner(0, 0), corner(1, 0)
        record = {
            "video": "a", "status": "ok", "label": 0, "clean": right, "attacked": right,
            "clean_defended": [right, wrong], "attacked_defended": [right, right, wrong],
        }  # fmt: skip
        value = definitions.evaluate("defended_robust_accuracy", [record])["value"]
        assert value == pytest.approx(1 / 2 * 2 / 3)


def test_detector_rates(corner):
    def seen(pred, rejected):
        return {**corner(pred, 0), "score": 0.5, "rejected": rejected}

    def make(video, attacked, **more):
        return {
            "video": video, "status": "ok", "label": 0, "clean": corner(0, 0),
            "attacked": corner(1, 0), "clean_defended": seen(0, video == "a"),
            "attacked_defended": [attacked], **more,
        }  # fmt: skip

    records = [make("a", seen(1, True)), make("b", seen(0, False)), make("c", seen(1, False))]
    records.append(make("d", seen(0, False), status="ineligible"))
    assert "detector" in definitions.facts_of(records)
    for name, k, n in (
        ("clean_reject_rate", 1, 4),
        ("attacked_reject_rate", 1, 3),
        ("detected_or_correct_rate", 2, 3),
    ):
        entry = definitions.evaluate(name, records)
        assert (entry["k"], entry["n"]) == (k, n)


def test_paired_comparison_of_two_runs(ten_records):
    bare = definitions.terms("robust_accuracy", ten_records)
    defended = definitions.terms("defended_robust_accuracy", ten_records)
    assert paired_difference(bare, defended).value == pytest.approx(1 / 9)
    only_a, only_b = discordant(
        definitions.holds("robust_accuracy", ten_records),
        definitions.holds("defended_robust_accuracy", ten_records),
    )
    # Only f keeps v5; only d∘f keeps v0 and v6.
    assert (only_a, only_b) == (1, 2)
    assert mcnemar(only_a, only_b) == 1.0


def test_unknown_rate_lists_the_known_ones():
    with pytest.raises(UsageError, match=r"'asr'.*asr_untargeted"):
        definitions.evaluate("asr", [])
