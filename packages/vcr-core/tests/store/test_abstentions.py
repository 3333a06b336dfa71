"""Abstentions through every number: wrong for accuracy, no success of the attack, own rates."""

from __future__ import annotations

import csv
import io

import pytest
from vcr_core import definitions, outcomes
from vcr_core.export import export_text
from vcr_core.record_schema import validate_record
from vcr_core.reporters.clips import prediction_text
from vcr_core.summary import RunView, summarize
from vcr_core.tables import vcrbench_row

NOBODY = {
    "pred": None, "p_label": 0.4, "p_pred": None, "top5": [0, 1, 2], "margin": 0.1,
    "votes": {"0": 5, "1": 4}, "abstained": True,
}  # fmt: skip


@pytest.fixture
def said(corner):
    """Make a voted prediction of a label."""
    return lambda pred: {**corner(pred, 0), "votes": {str(pred): 9}, "abstained": False}


@pytest.fixture
def make(corner, said):
    """Make a record with label 0, right for f before and wrong after the attack."""

    def record(video, clean, attacked, status="ok"):
        def voted(pred):
            return NOBODY if pred is None else said(pred)

        fields = {
            "schema": 1, "run": "r", "video": video, "batch": 0, "shard": 0, "attempt": 1,
            "status": status, "label": 0, "target": 1, "clean": corner(0, 0),
            "attacked": corner(1, 0),
        }  # fmt: skip
        many = [voted(pred) for pred in clean]
        fields["clean_defended"] = many if len(many) > 1 else many[0]
        fields["attacked_defended"] = [voted(pred) for pred in attacked]
        changed = 2 * sum(p not in (0, None) for p in attacked) > len(attacked)
        fields["success"] = {"changed": changed, "target": attacked.count(1) * 2 > len(attacked)}
        validate_record(fields)
        return fields

    return record


@pytest.fixture
def seven(make):
    """Right, wrong, target and abstention after the attack; abstention and mistake before."""
    return [
        make("stays", [0], [0]),
        make("other", [0], [2]),
        make("target", [0], [1]),
        make("silent", [0], [None]),
        make("never", [None], [None], status="ineligible"),
        make("woken", [None], [0], status="ineligible"),
        make("wrong", [1], [None], status="ineligible"),
    ]


BY_HAND = {
    "defended_clean_accuracy": (4, 7),
    "defended_robust_accuracy": (1, 7),
    "defended_asr_untargeted": (2, 4),
    "defended_asr_targeted": (1, 4),
    "clean_abstention_rate": (2, 7),
    "attacked_abstention_rate": (1, 4),
    # As the paper's code would count a label that is not the true one.
    "asr_paper": (3, 4),
    "robust_accuracy_paper": (1, 7),
    "harm": (3, 7),
}


@pytest.mark.parametrize(("name", "k", "n"), [(name, *kn) for name, kn in BY_HAND.items()])
def test_rates_by_hand(seven, name, k, n):
    entry = definitions.evaluate(name, seven)
    assert entry["value"] == pytest.approx(k / n)
    assert (entry["k"], entry["n"]) == (k, n)


def test_what_is_neither_kept_nor_lost_is_an_abstention(seven):
    for record in seven[:4]:
        kept = outcomes.stays_right(record, defended=True)
        lost = outcomes.is_lost(record, defended=True)
        assert kept + lost + outcomes.attack_abstained(record) == 1


def test_the_paper_s_identity_holds_with_abstentions(seven):
    clean, asr, robust = (
        definitions.evaluate(name, seven)["value"]
        for name in ("defended_clean_accuracy", "asr_paper", "robust_accuracy_paper")
    )
    assert robust == pytest.approx(clean * (1 - asr))


def test_draws_that_abstain(make):
    split = make("a", [0, 0, None, 0], [0, None, None, 2])
    # Pairs of draws: right and right, right and silent, silent twice, right and lost.
    assert outcomes.stays_right(split, defended=True) == 0.25
    assert outcomes.is_lost(split, defended=True) == 0.25
    assert outcomes.clean_abstained(split) == 0.25
    assert outcomes.attack_abstained(split) == 0.5
    assert outcomes.is_lost(split, defended=True, draws="any") == 1.0
    assert outcomes.is_lost(split, defended=True, draws="majority") == 0.0
    assert outcomes.stays_right(split, defended=True, draws="majority") == 0.0
    silent = make("b", [0, 0, 0], [None, None, None])
    assert outcomes.is_lost(silent, defended=True, draws="any") == 0.0
    assert outcomes.hits_target(silent, defended=True, draws="any") == 0.0


def test_without_abstentions_lost_is_what_is_not_kept(ten_records):
    for record in ten_records:
        for defended in (False, True):
            for draws in ("mean", "any", "majority"):
                right = outcomes.clean_right(record, defended=defended, draws=draws)
                kept = outcomes.stays_right(record, defended=defended, draws=draws)
                lost = outcomes.is_lost(record, defended=defended, draws=draws)
                assert (lost is None) == (kept is None)
                assert kept is None or lost == right - kept


def test_a_defense_that_never_abstains_has_the_rate_zero_and_others_have_none(make, ten_records):
    assert definitions.evaluate("clean_abstention_rate", [make("a", [0], [0])])["value"] == 0.0
    assert "abstention" not in definitions.facts_of(ten_records)
    assert outcomes.clean_abstained(ten_records[0]) is None


def test_summary_and_tables(seven, manifest, tmp_path):
    manifest = {**manifest, "batches": [[record["video"] for record in seven]]}
    summary = summarize(manifest, seven)
    assert summary["definitions"]["attacked_abstention_rate"]["k"] == 1
    run = RunView(tmp_path, manifest, seven, summary)
    rows = {r["video"]: r for r in csv.DictReader(io.StringIO(export_text([run], "csv")))}
    assert rows["silent"]["attacked_defended_pred"] == ""
    assert rows["silent"]["attacked_defended_p_pred"] == ""
    assert rows["silent"]["attacked_defended_abstained"] == "1.0"
    assert rows["silent"]["attacked_defended_right"] == "0.0"
    assert rows["stays"]["attacked_defended_abstained"] == "0.0"


def test_the_official_file_has_empty_cells(seven):
    silent, never = (vcrbench_row(seven[i], ("a", "b", "c")) for i in (3, 4))
    for key in ("attacked_label", "attacked_class", "attacked_conf"):
        assert silent[key] is None
    assert silent["clear_label"] == 0
    # Nothing was predicted, so no probability belongs to it.
    for key in ("clear_label", "clear_conf", "benign_conf"):
        assert never[key] is None


def test_frame_strips_say_it():
    assert prediction_text(NOBODY, ("a", "b")) == "no prediction: the defense abstained"
    assert prediction_text({"pred": None}, ("a", "b")) == ""
