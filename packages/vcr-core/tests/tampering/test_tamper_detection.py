"""Numbers of tamper detection against values worked out by hand; the records are in conftest."""

from __future__ import annotations

import json
import random

import pytest
from vcr_core import stats
from vcr_core.stats import Term
from vcr_core.summary import summarize
from vcr_core.tamper_detection import describe_tamper_detection
from vcr_core.tamper_detection.answers import expected_calibration_error
from vcr_core.tamper_detection.places import temporal_iou

KINDS = ("original", "drop", "mask")


@pytest.fixture
def found(twelve):
    return describe_tamper_detection(twelve)["clean"]


def values(part):
    return {name: entry["value"] for name, entry in part.items()}


def test_counts(found):
    assert (found["sources"], found["videos"], found["originals"]) == (4, 12, 4)
    assert found["types"] == ["drop", "mask"]


def test_dropping_by_hand(found):
    # Originals: A and C are left alone, B is called tampered, D is not answered.
    # Dropped: A and D are called tampered, B is not, C is not answered.
    assert values(found["binary"]["drop"]) == pytest.approx(
        {
            "accuracy": (2 + 2) / 8,
            "precision": 2 / (2 + 1),
            "recall": 2 / 4,
            "f1": 2 * 2 / (2 * 2 + 1 + 2),
            "balanced_accuracy": (2 / 4 + 2 / 4) / 2,
            # .9 is above 4 originals, .3 and .4 above 2 each, .5 above 2 and level with one.
            "auroc": (4 + 2 + 2 + 2.5) / 16,
            # None of 4 originals may be called: only .9 is above .6.
            "tpr_at_5_fpr": 1 / 4,
        }
    )


def test_masking_by_hand(found):
    # Masked: A, B and C are called tampered, D is not.
    assert values(found["binary"]["mask"]) == pytest.approx(
        {
            "accuracy": (3 + 2) / 8,
            "precision": 3 / (3 + 1),
            "recall": 3 / 4,
            "f1": 2 * 3 / (2 * 3 + 1 + 1),
            "balanced_accuracy": (3 / 4 + 2 / 4) / 2,
            "auroc": (4 + 4 + 3.5 + 0.5) / 16,
            "tpr_at_5_fpr": 2 / 4,
        }
    )


def test_the_overall_numbers_are_means_over_effects(found):
    assert values(found["binary"]["macro"]) == pytest.approx(
        {
            "accuracy": (4 / 8 + 5 / 8) / 2,
            "precision": (2 / 3 + 3 / 4) / 2,
            "recall": (2 / 4 + 3 / 4) / 2,
            "f1": (4 / 7 + 3 / 4) / 2,
            "balanced_accuracy": (0.5 + 0.625) / 2,
            "auroc": (10.5 / 16 + 12 / 16) / 2,
            "tpr_at_5_fpr": (1 / 4 + 2 / 4) / 2,
        }
    )
    assert values(found["binary"]["original"]) == {"tnr": 2 / 4, "fpr": 1 / 4}


def test_classes_by_hand(found):
    classes = found["classes"]
    assert classes["truth"] == ["original", "drop", "mask"]
    assert classes["predicted"] == ["original", "drop", "mask", "no answer"]
    assert classes["confusion"] == [[2, 1, 0, 1], [1, 2, 0, 1], [0, 1, 3, 0]]
    assert classes["accuracy"]["value"] == pytest.approx(7 / 12)
    assert values(classes["recall"]) == {"original": 2 / 4, "drop": 2 / 4, "mask": 3 / 4}
    assert classes["macro_recall"]["value"] == pytest.approx((0.5 + 0.5 + 0.75) / 3)


def test_places_by_hand(found):
    places = found["places"]
    # [1, 2] named as [1, 2], [1.5, 2.5], [0.5, 2] and not at all.
    assert places["mask"]["iou"]["value"] == pytest.approx((1 + 0.5 / 1.5 + 1 / 1.5 + 0) / 4)
    assert places["mask"]["hit_rate"]["value"] == 2 / 4
    # A cut at 1 s and 10 frames a second: named there, 3 frames after, 4 frames after, not at all.
    assert places["drop"]["hit_rate"]["value"] == 2 / 4
    assert places["drop"]["iou"]["value"] is None
    assert places["drop"]["iou"]["reason"] == "a cut has no length"
    assert values(places["macro"]) == pytest.approx({"iou": 0.5, "hit_rate": 0.5})


def test_answers_by_hand(found):
    answers = values(found["answers"])
    assert answers["undecided_rate"] == pytest.approx(2 / 12)
    assert answers["unnamed_rate"] == pytest.approx(2 / 12)
    # Yes first: A and C but for one, and D dropped: 4 of 6 are yes. No first: 2 of 4.
    assert answers["position_bias"] == pytest.approx(4 / 6 - 2 / 4)


def test_calibration_by_hand(found):
    # Gap sums of the bins from .1 to .9; a tampered video counts 1.
    gaps = [0.8, 0.2, 0.7, 0.6, 0.0, 0.2, 0.3, 0.2, 0.1]
    score = found["calibration"]["ece_score"]
    assert score["value"] == pytest.approx(sum(gaps) / 12)
    assert (score["n"], score["bins"]) == (12, 10)
    # Ten predictions at .75, seven are right.
    assert found["calibration"]["ece_class"]["value"] == pytest.approx(0.75 - 7 / 10)


def test_cost(found):
    assert found["cost"] == {"seconds_decode": 0.25, "seconds_detect": 0.5, "frames": 8.0}


def test_intervals_resample_sources(found):
    # One video a source: nothing hangs together, and an interval has a width at 0 and 1 too.
    recall = found["binary"]["drop"]["recall"]
    assert (recall["method"], recall["ci95"]) == ("wilson", list(stats.wilson(2, 4)))
    assert found["binary"]["original"]["fpr"]["ci95"] == list(stats.wilson(1, 4))
    # The classes of a source come and go together.
    shares = [Term(3, 3), Term(1, 3), Term(1, 3), Term(2, 3)]
    assert found["classes"]["accuracy"]["ci95"] == pytest.approx(stats.bootstrap_ratio(shares).ci95)
    for numbers in found["binary"].values():
        for entry in numbers.values():
            low, high = entry["ci95"]
            assert low <= entry["value"] <= high


def test_versions_of_a_source_do_not_make_an_interval_narrower(make):
    def width(versions):
        records = [
            make(str(source), kind, tampered=(source + version) % 10 < 7)
            | {"video": f"{source}/{version}#{kind}"}
            for source in range(10)
            for version in range(versions)
            for kind in ("original", "mask")
        ]
        for record in records:
            record["clean"]["tampered"] = int(record["sample"]["source"]) < 7
        recall = describe_tamper_detection(records)["clean"]["binary"]["mask"]["recall"]
        return recall["ci95"][1] - recall["ci95"][0]

    assert width(8) == pytest.approx(width(2))
    assert width(8) > 0.4


def test_the_order_of_records_does_not_matter(twelve, found):
    shuffled = twelve[:]
    random.Random(1).shuffle(shuffled)
    assert describe_tamper_detection(shuffled)["clean"] == found
    json.dumps(found, allow_nan=False)


def test_a_detector_that_always_says_yes(make):
    records = [
        make(source, kind, pred=2, tampered=True, score=1.0) for source in "ABCD" for kind in KINDS
    ]
    binary = describe_tamper_detection(records)["clean"]["binary"]
    for kind in ("drop", "mask", "macro"):
        assert binary[kind]["recall"]["value"] == 1.0
        assert binary[kind]["balanced_accuracy"]["value"] == 0.5
        assert binary[kind]["auroc"]["value"] == 0.5
        assert binary[kind]["precision"]["value"] == 0.5
    assert binary["original"]["tnr"]["value"] == 0.0


def test_a_perfect_detector(make):
    records = [
        make(
            source, kind, pred=label, p_pred=1.0, tampered=label > 0, score=float(label > 0),
            segment_s=None if not label else ([1.0, 1.0] if label == 1 else [1.0, 2.0]),
        )
        for source in "ABCD"
        for label, kind in enumerate(KINDS)
    ]  # fmt: skip
    found = describe_tamper_detection(records)["clean"]
    for kind in ("drop", "mask", "macro"):
        assert set(values(found["binary"][kind]).values()) == {1.0}
    assert found["classes"]["confusion"] == [[4, 0, 0, 0], [0, 4, 0, 0], [0, 0, 4, 0]]
    assert values(found["places"]["macro"]) == {"iou": 1.0, "hit_rate": 1.0}
    assert found["calibration"]["ece_score"]["value"] == 0.0
    assert found["calibration"]["ece_class"]["value"] == 0.0


def test_a_classifier_decides_by_its_class(make):
    records = [make("A", "original", pred=0), make("A", "drop", pred=2), make("B", "mask", pred=0)]
    found = describe_tamper_detection(records)["clean"]
    assert found["binary"]["drop"]["recall"]["value"] == 1.0
    assert found["binary"]["mask"]["recall"]["value"] == 0.0
    assert found["binary"]["drop"]["auroc"] == {
        "value": None, "n": 0, "ci95": None, "method": "bootstrap over sources",
        "reason": "no original has a score",
    }  # fmt: skip
    assert "places" not in found
    assert found["answers"]["position_bias"]["reason"] == "the detector offers no options"
    assert "no probabilities" in found["calibration"]["ece_score"]["reason"]


def test_nothing_called_tampered_has_no_precision(make):
    records = [make("A", kind, pred=0, tampered=False, score=0.0) for kind in KINDS]
    binary = describe_tamper_detection(records)["clean"]["binary"]
    assert binary["mask"]["precision"]["value"] is None
    assert "nothing was called tampered" in binary["mask"]["precision"]["reason"]
    assert binary["mask"]["f1"]["value"] == 0.0
    assert binary["macro"]["precision"]["value"] is None


def test_without_originals_or_without_effects(make):
    tampered = [make("A", kind, pred=1, tampered=True, score=2.0) for kind in ("drop", "mask")]
    found = describe_tamper_detection(tampered, labels=KINDS)["clean"]
    assert found["binary"]["drop"]["recall"]["value"] == 1.0
    assert found["binary"]["drop"]["accuracy"]["reason"] == "no original or no tampered video"
    assert found["binary"]["original"]["tnr"]["reason"] == "no original video"
    only = describe_tamper_detection([make("A", "original", pred=0, score=0.0)])["clean"]
    assert only["types"] == []
    assert only["binary"]["macro"]["balanced_accuracy"]["reason"] == "no tampered video"
    assert only["binary"]["original"]["tnr"]["value"] == 1.0
    json.dumps([found, only], allow_nan=False)


def test_other_datasets_and_failed_videos_have_no_part(make, twelve):
    assert describe_tamper_detection([{"video": "a", "status": "ok", "clean": {"pred": 0}}]) is None
    failed = {**make("E", "mask"), "status": "error"}
    assert describe_tamper_detection([failed]) is None
    assert describe_tamper_detection([*twelve, failed]) == describe_tamper_detection(twelve)


def test_predictions_outside_of_the_dataset_have_a_name(make):
    records = [make("A", "original", pred=5), make("A", "mask", pred=7)]
    classes = describe_tamper_detection(records, labels=(*KINDS, "x", "y", "noise"))["clean"][
        "classes"
    ]
    assert classes["predicted"] == ["original", "mask", "noise", "class 7", "no answer"]
    assert classes["confusion"] == [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]


def test_draws_of_a_random_defense_are_parts_of_a_video(make):
    def drawn(source, kind, calls):
        record = make(source, kind, pred=0)
        corners = [{"pred": 2 * call, "tampered": call, "score": float(call)} for call in calls]
        return {**record, "clean_defended": corners}

    records = [drawn("A", "original", [False, True]), drawn("A", "mask", [True, True])]
    found = describe_tamper_detection(records)
    assert set(found) == {"clean", "clean_defended"}
    binary = found["clean_defended"]["binary"]
    assert binary["mask"]["balanced_accuracy"]["value"] == (1 + 0.5) / 2
    assert binary["mask"]["auroc"]["value"] == 0.5 * 1 + 0.5 * 0.5
    assert found["clean_defended"]["classes"]["confusion"][0][:2] == [0.5, 0.5]


def test_attacked_detectors_have_their_own_side(make):
    record = make("A", "mask", pred=2, tampered=True)
    attacked = {**record, "attacked": {"pred": 0, "tampered": False}}
    found = describe_tamper_detection([make("A", "original", pred=0, tampered=False), attacked])
    assert found["clean"]["binary"]["mask"]["recall"]["value"] == 1.0
    assert found["attacked"]["binary"]["mask"]["recall"]["value"] == 0.0
    assert found["attacked"]["videos"] == 1


def test_a_segment_without_frame_rate_is_left_out(make):
    record = make("A", "mask", pred=2, tampered=True, segment_s=[1.0, 2.0])
    record["sample"]["tamper"] |= {"start_s": None, "end_s": None, "fps": None}
    places = describe_tamper_detection([record])["clean"]["places"]
    assert places["mask"]["iou"]["reason"] == "no video with a known segment and frame rate"


@pytest.mark.parametrize(
    ("first", "second", "iou"),
    [
        ((1, 2), (1, 2), 1.0),
        ((1, 2), (2, 3), 0.0),
        ((1, 2), (5, 6), 0.0),
        ((0, 4), (1, 2), 0.25),
        ((1, 1), (1, 1), 1.0),
        ((1, 1), (1, 2), 0.0),
    ],
)
def test_temporal_iou(first, second, iou):
    assert temporal_iou(first, second) == iou
    assert temporal_iou(second, first) == iou


def test_calibration_error_of_a_border_and_of_one():
    assert expected_calibration_error([(1.0, 1.0, 1.0), (0.9, 1.0, 1.0)]) == pytest.approx(0.05)
    assert expected_calibration_error([(0.1, 0.0, 1.0), (0.05, 1.0, 1.0)]) == pytest.approx(
        (0.1 + 0.95) / 2
    )


def test_the_summary_of_a_run_has_it(twelve, found):
    manifest = {"dataset": {"labels": list(KINDS)}}
    assert summarize(manifest, twelve)["tamper_detection"] == {"clean": found}
    assert "tamper_detection" not in summarize(manifest, [])


def test_the_summary_of_a_tampering_run_has_the_overlap(make):
    records = [
        {
            **make("A", "original", pred=0),
            "attacked": {"pred": 0},
            "transform": {"overlap": 0.5},
        }
    ]
    manifest = {"components": [{"role": "attack", "access": "none"}]}
    curve = summarize(manifest, records)["transformation"]["by_overlap"]
    assert [part["retention"]["value"] for part in curve] == [None, None, 1.0, None, None]
