"""SimBA: orthonormal directions, which way is asked, costs and budgets."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.directions import Pixels, Waves, cosines
from vcr_attacks.params.query import SimbaParams
from vcr_attacks.simba import Simba
from vcr_core.errors import IncompatibleComponents
from vcr_core.threat import L1, L2, Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)
WIDE = L2(1e3, quantize=False)


def test_directions_are_orthonormal():
    video = torch.zeros(1, 3, 2, 5, 4)
    for basis in (Waves(video, 2, 3), Waves(video, 9, 9), Pixels(video)):
        flat = torch.stack([basis[i].flatten() for i in range(basis.count)])
        torch.testing.assert_close(flat @ flat.T, torch.eye(basis.count), rtol=0, atol=1e-5)
    assert Waves(video, 2, 3).count == 2 * 2 * 3 * 3
    assert Waves(video, 9, 9).count == Pixels(video).count == video.numel()
    torch.testing.assert_close(cosines(5, 5) @ cosines(5, 5).T, torch.eye(5))


def test_the_lowest_wave_is_flat():
    flat = Waves(torch.zeros(1, 3, 2, 4, 4), 1, 1)[1]
    assert flat[:, 0].abs().max() == 0
    assert flat[:, 1].unique().tolist() == [pytest.approx(48**-0.5)]


@pytest.mark.parametrize("basis", ["dct", "pixel"])
def test_distance_is_the_root_of_accepted_steps_and_the_loss_falls(
    basis, contest, tiny, videos, labels_of
):
    clean = videos(1, 3, 3, 9, 7)
    step = 0.05
    attack = Simba(SimbaParams(iterations=20, basis=basis, step=step, loss="ce"))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), access="score", threat=WIDE)
    losses = [float(outcome.victim.goals.loss(outcome.predict(p))) for _, p in outcome.points]
    best, accepted = losses[0], 0
    for loss in losses[1:]:
        accepted += loss < best
        best = min(best, loss)
    assert accepted >= 10
    distance = float((outcome.result - clean).norm())
    assert distance == pytest.approx(step * accepted**0.5, rel=1e-3)
    assert float(outcome.victim.goals.loss(outcome.predict(outcome.result))) == best
    assert outcome.victim.meters[0].forwards == len(losses) == 1 + 20 + (20 - _first_ways(losses))


def _first_ways(losses: list[float]) -> int:
    """Count directions that the first way already served."""
    best, served, place = losses[0], 0, 1
    while place < len(losses):
        if losses[place] < best:
            best, served, place = losses[place], served + 1, place + 1
        else:
            best, place = min(best, losses[place + 1]), place + 2
    return served


@pytest.mark.parametrize("budget", [1, 2, 10, 1000])
def test_budgets_are_kept(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    outcome = contest(
        Simba(SimbaParams(iterations=12)), tiny, clean, labels_of(tiny, clean), access="score",
        max_forwards=budget,
    )  # fmt: skip
    for meter in outcome.victim.meters:
        if budget <= 10:
            assert meter.forwards == budget
            assert meter.exhausted
        assert meter.forwards <= min(budget, 25)
    for rows, points in outcome.points:
        assert EXACT.within(points, clean[rows]).all()


def test_a_direction_reaches_the_ball_and_repeats_after_the_last(contest, linear, videos):
    w = torch.full((1, 2, 3, 4, 4), 0.1)
    clean = videos(1, 2, 3, 4, 4)
    attack = Simba(SimbaParams(iterations=9, grid=1, times=1, loss="margin"))
    outcome = contest(attack, linear(w), clean, [1], access="score", threat=EXACT)
    torch.testing.assert_close(outcome.result, clean - EPS)
    assert 4 <= outcome.victim.meters[0].forwards <= 1 + 18


@pytest.mark.parametrize("threat", [EXACT, L2(1.5, quantize=False)], ids=["linf", "l2"])
def test_a_batch_of_three_equals_three_single_runs(threat, contest, linear, videos):
    drawn = torch.randn(3, 2, 3, 6, 5, generator=torch.Generator().manual_seed(3))
    model, clean = linear(drawn / 20, [0.3, -0.2, 0.1]), videos(3, 2, 3, 6, 5)
    labels = model.logits(clean)[:, 0].argmax(dim=1).tolist()
    ids = ["a", "b", "c"]
    run = {"access": "score", "stop": "first_success", "threat": threat}
    attack = Simba(SimbaParams(iterations=40))
    together = contest(attack, model, clean, labels, ids=ids, **run)
    for i in range(3):
        alone = contest(attack, model, clean[i : i + 1], labels[i : i + 1], ids=[ids[i]], **run)
        assert torch.equal(alone.result[0], together.result[i])
        assert alone.victim.meters[0].forwards == together.victim.meters[i].forwards


def test_masks_radius_zero_and_other_norms(contest, tiny, videos, labels_of):
    clean = videos(1, 4, 3, 12, 10)
    labels = labels_of(tiny, clean)
    attack = Simba(SimbaParams(iterations=6))
    for norm, eps in ((Linf, EPS), (L2, 1.5)):
        threat = norm(eps, frames=(2,), region=(0.0, 0.5, 1.0, 1.0))
        moved = contest(attack, tiny, clean, labels, access="score", threat=threat).result != clean
        assert moved[:, 2, :, :, 5:].any()
        assert not moved[:, [0, 1, 3]].any()
        assert not moved[..., :5].any()
    zero = contest(attack, tiny, clean, labels, access="score", threat=Linf(0))
    assert torch.equal(zero.result, clean)
    with pytest.raises(IncompatibleComponents, match="'l1'"):
        contest(attack, tiny, clean, labels, access="score", threat=L1(1.0))
