"""Bandits: the prior stays a prior, turns towards the gradient, and costs what it says."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.bandits import Bandits, PriorSlope
from vcr_attacks.cells import Cells
from vcr_attacks.params.query import BanditsParams
from vcr_attacks.query_loop import Queries
from vcr_core.adaptive import View
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel
from vcr_core.randomness import VideoRandom
from vcr_core.threat import Linf
from vcr_core.victim import Rules, Victim

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


def slope_on(model, clean, **options):
    goals = Goals(torch.tensor([1]))
    victim = Victim(
        View(GuardedModel(model), torch.arange(clean.shape[1]).view(1, -1)), clean, goals, EXACT,
        ids=["a"], seed=1, rules=Rules(access="score", stop="budget"),
    )  # fmt: skip
    return PriorSlope(
        Queries(victim, goals, EXACT, clean, "margin"), Cells(clean, 8, groups=1),
        VideoRandom([5]), exploration=1.0, probe=1 / 255, **options,
    )  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_the_prior_turns_towards_a_smooth_gradient_at_any_scale_of_the_loss(scale, linear, videos):
    coarse = torch.randn(1, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    smooth = torch.nn.functional.interpolate(coarse, (32, 32), mode="bicubic")
    w = scale * smooth[None] / 30
    clean, rows = videos(1, 1, 3, 32, 32), torch.tensor([0])
    slope = slope_on(linear(w, [float(-(clean * w).sum()) + 1.0]), clean, rate=0.05)
    cosines = {}
    for number in range(1, 201):
        found = slope(clean, rows)
        assert found.abs().max() < 1
        cosines[number] = float((found * w).sum() / found.norm() / w.norm())
    assert cosines[50] > 0.2
    assert cosines[200] > 0.4


def test_the_prior_stays_open_and_finite(linear, videos):
    clean, rows = videos(1, 2, 3, 8, 8), torch.tensor([0])
    w = torch.full((1, 2, 3, 8, 8), 100.0)
    slope = slope_on(linear(w), clean, rate=50.0)
    for _ in range(10):
        found = slope(clean, rows)
        assert torch.isfinite(found).all()
        assert found.abs().max() < 1
    flat = slope_on(linear(torch.zeros(1, 2, 3, 8, 8), [1.0]), clean, rate=1.0)
    assert not flat(clean, rows).any()


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 10, 1000])
def test_costs_and_budgets(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    outcome = contest(
        Bandits(BanditsParams(iterations=7)), tiny, clean, labels_of(tiny, clean),
        access="score", max_forwards=budget,
    )  # fmt: skip
    spent = {1: 1, 2: 1, 3: 1, 4: 4, 10: 10, 1000: 1 + 3 * 7}[budget]
    assert [m.forwards for m in outcome.victim.meters] == [spent] * 2
    assert all(EXACT.within(points, clean[rows]).all() for rows, points in outcome.points)


def test_a_batch_of_three_equals_three_single_runs(contest, linear, videos):
    drawn = torch.randn(3, 2, 3, 6, 5, generator=torch.Generator().manual_seed(3))
    model, clean = linear(drawn / 20, [0.3, -0.2, 0.1]), videos(3, 2, 3, 6, 5)
    labels = model.logits(clean)[:, 0].argmax(dim=1).tolist()
    ids = ["a", "b", "c"]
    run = {"access": "score", "stop": "first_success", "threat": EXACT}
    attack = Bandits(BanditsParams(iterations=30))
    together = contest(attack, model, clean, labels, ids=ids, **run)
    for i in range(3):
        alone = contest(attack, model, clean[i : i + 1], labels[i : i + 1], ids=[ids[i]], **run)
        assert torch.equal(alone.result[0], together.result[i])
        assert alone.victim.meters[0].forwards == together.victim.meters[i].forwards


def test_masks_are_kept(contest, tiny, videos, labels_of):
    clean = videos(1, 4, 3, 12, 10)
    threat = Linf(EPS, frames=(2,), region=(0.0, 0.5, 1.0, 1.0))
    attack = Bandits(BanditsParams(iterations=4))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), access="score", threat=threat)
    moved = outcome.result != clean
    assert moved[:, 2, :, :, 5:].any()
    assert not moved[:, [0, 1, 3]].any()
    assert not moved[..., :5].any()
    zero = contest(attack, tiny, clean, [0], access="score", threat=Linf(0))
    assert torch.equal(zero.result, clean)
