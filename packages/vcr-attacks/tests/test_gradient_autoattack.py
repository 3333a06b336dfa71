"""autoattack: its members work on what is left, through one victim."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.apgd import Apgd
from vcr_attacks.autoattack import AutoAttack
from vcr_attacks.params.gradient import ApgdParams, AutoAttackParams
from vcr_attacks.params.query import SquareParams
from vcr_attacks.square import Square
from vcr_core.errors import UsageError
from vcr_core.threat import L2, Linf


@pytest.mark.parametrize("threat", [Linf("1/255"), L2(0.05, quantize=False)])
def test_breaks_what_any_member_breaks(threat, contest, tiny, videos, labels_of):
    clean = videos(6, 3, 3, 8, 8)
    labels = labels_of(tiny, clean)

    def standing(attack: object) -> torch.Tensor:
        outcome = contest(attack, tiny, clean, labels, threat=threat, stop="first_success")
        return outcome.predict(outcome.result).argmax(1) == torch.tensor(labels)

    together = standing(AutoAttack())
    for member in (
        Apgd(),
        Apgd(ApgdParams(loss="dlr-targeted", target_classes=3)),
        Square(SquareParams(iterations=199)),
    ):
        assert together.sum() <= standing(member).sum()


def test_cost_of_videos_that_stand(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 8, 8)
    outcome = contest(AutoAttack(), tiny, clean, labels_of(tiny, clean), threat=Linf("1/2550"))
    for meter in outcome.victim.meters:  # 21, then 1 for the classes and 3 runs of 21, then 200
        assert (meter.forwards, meter.backwards) == (21 + 1 + 63 + 200, 20 + 60)


def test_the_standard_members_are_the_published_ones():
    members = dict(AutoAttack(AutoAttackParams(version="standard"))._members())
    assert list(members) == ["apgd-ce", "apgd-t", "fab-t", "square"]
    fab = members["fab-t"].params
    assert (fab.steps, fab.target_classes, fab.boundary) == (100, 9, "each")
    assert (fab.bias, fab.overshoot, fab.back, fab.restarts) == (0.1, 1.05, 0.9, 1)
    assert [member.params.steps for member in list(members.values())[:2]] == [100, 100]
    assert members["square"].params.iterations == 4999


def test_fab_ends_a_video_at_its_success(contest, tiny, videos, labels_of):
    """As a member it does not look for a smaller change."""
    clean = videos(2, 3, 3, 8, 8)
    labels = labels_of(tiny, clean)
    members = dict(AutoAttack(AutoAttackParams(version="standard"))._members())
    outcome = contest(
        members["fab-t"], tiny, clean, labels, threat=Linf("64/255"), stop="first_success"
    )
    for meter in outcome.victim.meters:
        assert meter.done
        assert meter.queries_to_first_success == meter.forwards


def test_broken_videos_cost_later_members_nothing(contest, tiny, videos, labels_of):
    clean = videos(3, 3, 3, 8, 8)
    labels = labels_of(tiny, clean)
    threat = Linf("64/255")
    first = contest(Apgd(), tiny, clean, labels, threat=threat, stop="first_success")
    assert all(m.done for m in first.victim.meters)
    whole = contest(AutoAttack(), tiny, clean, labels, threat=threat, stop="first_success")
    assert all(m.forwards < 21 for m in whole.victim.meters)
    wrong = [(y + 1) % 5 for y in labels]
    outcome = contest(AutoAttack(), tiny, clean, wrong, threat=Linf(0.001), stop="first_success")
    assert [m.forwards for m in outcome.victim.meters] == [1, 1, 1]


def test_a_mixed_batch_sends_on_only_what_stands(contest, tiny, videos, labels_of):
    clean = videos(6, 3, 3, 8, 8)
    labels = labels_of(tiny, clean)
    outcome = contest(AutoAttack(), tiny, clean, labels, threat=Linf("1/255"), stop="first_success")
    for meter in outcome.victim.meters:
        if meter.done:
            assert meter.queries_to_first_success == meter.forwards


def test_rand_and_targets(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 8, 8)
    labels = labels_of(tiny, clean)
    outcome = contest(AutoAttack(AutoAttackParams(version="rand")), tiny, clean, labels,
                      threat=Linf("1/2550"))  # fmt: skip
    assert outcome.victim.meters[0].backwards == 200
    targets = [(labels[0] + 1) % 5]
    outcome = contest(AutoAttack(), tiny, clean, labels, targets=targets, threat=Linf("32/255"),
                      stop="first_success")  # fmt: skip
    p = [float(outcome.predict(v).exp()[0, targets[0]]) for v in (clean, outcome.result)]
    assert p[1] > p[0]


def test_few_classes_are_refused_before_any_query(contest, linear, videos):
    model = linear(torch.ones(2, 2, 3, 6, 5))
    with pytest.raises(UsageError, match="at least 4 classes"):
        contest(AutoAttack(), model, videos(1, 2, 3, 6, 5), [0])
