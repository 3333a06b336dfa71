"""AUROC and detection at 5 % false positives over a detector's scores."""

from __future__ import annotations

import json
import random

import pytest
from vcr_core.detection import describe_detection
from vcr_core.separation import Scores, auroc, tpr_at_fpr
from vcr_core.summary import summarize


def videos(clean, attacked):
    return [Scores((c,), ()) for c in clean] + [Scores((), (a,)) for a in attacked]


def test_auroc_by_hand():
    assert auroc(videos([1, 2, 3], [4, 5])) == 1.0
    assert auroc(videos([4, 5], [1, 2, 3])) == 0.0
    assert auroc(videos([1, 3], [2, 4])) == 0.75
    # All alike: ties count half.
    assert auroc(videos([1, 1], [1, 1, 1])) == 0.5


def test_auroc_is_the_share_of_pairs():
    generator = random.Random(3)
    clean = [generator.randint(0, 9) for _ in range(30)]
    attacked = [generator.randint(2, 12) for _ in range(20)]
    pairs = [(a > c) + (a == c) / 2 for a in attacked for c in clean]
    assert auroc(videos(clean, attacked)) == pytest.approx(sum(pairs) / len(pairs))


def test_tpr_at_five_per_cent_by_hand():
    clean = list(range(20))
    # One of 20 clean ones may be rejected: the threshold is 18.
    assert tpr_at_fpr(videos(clean, [17, 18, 18.5, 19, 40])) == pytest.approx(3 / 5)
    # With 19 none may.
    assert tpr_at_fpr(videos(clean[:19], [17, 18, 18.5, 19])) == pytest.approx(2 / 4)
    # Ties go together: both 19s would be two of 20.
    assert tpr_at_fpr(videos([*clean[:18], 19, 19], [18, 19, 20])) == pytest.approx(1 / 3)


def test_draws_share_the_weight_of_their_video():
    one = [Scores((0.0,), (1.0,)), Scores((2.0,), (3.0,))]
    many = [Scores((0.0,) * 3, (1.0,) * 3), Scores((2.0,), (3.0,))]
    assert auroc(many) == auroc(one) == 0.75
    assert tpr_at_fpr(many) == tpr_at_fpr(one)


def test_no_value_without_both_classes():
    assert auroc(videos([1, 2], [])) is None
    assert tpr_at_fpr(videos([], [1])) is None


@pytest.fixture
def make(corner):
    def record(video, clean, attacked, *, changed=True, status="ok"):
        def seen(score):
            return {**corner(0, 0), "score": score, "rejected": (score or 0) > 0.5}

        fields = {
            "video": video, "status": status, "label": 0, "clean": corner(0, 0),
            "clean_defended": seen(clean), "success": {"changed": changed},
        }  # fmt: skip
        if attacked is not None:
            fields["attacked"] = corner(1, 0)
            fields["attacked_defended"] = [seen(attacked)]
        return fields

    return record


def test_described_with_intervals_and_over_successes(make, manifest):
    records = [make(f"v{i}", i / 40, 0.5 + i / 40, changed=i % 2 == 0) for i in range(30)]
    records.append(make("idle", 0.1, 0.1, status="ineligible"))
    found = describe_detection(records)
    assert found == describe_detection(records)
    for name in ("auroc", "tpr_at_5_fpr"):
        entry = found[name]
        low, high = entry["ci95"]
        assert 0 <= low < entry["value"] < high <= 1
        # An ineligible video is a clean one and no attacked one.
        assert (entry["n"], entry["n_clean"], entry["method"]) == (30, 31, "bootstrap")
        assert found[f"{name}_over_successes"]["n"] == 15
    assert summarize(manifest, records)["detection"] == found
    json.dumps(found, allow_nan=False)


def test_null_with_a_reason(make):
    clean_only = describe_detection([make("a", 0.1, None)])
    assert clean_only["auroc"]["value"] is None
    assert clean_only["auroc"]["ci95"] is None
    assert clean_only["auroc"]["reason"] == "no attacked video has a score"
    found = describe_detection([make("a", None, 0.3), make("b", float("nan"), 0.4)])
    assert found["tpr_at_5_fpr"]["reason"] == "no clean video has a score"


def test_without_a_detector_there_is_nothing(ten_records):
    assert describe_detection(ten_records) is None
