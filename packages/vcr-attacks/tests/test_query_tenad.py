"""TenAd: rank one, distances of the boundary, what a query may see."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.params.query import TenadParams
from vcr_attacks.rank_one import RankOne
from vcr_attacks.tenad import BISECTIONS, Boundary, TenAd
from vcr_core.adaptive import View
from vcr_core.errors import ContractViolation, IncompatibleComponents
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel
from vcr_core.threat import L2, Linf, Unbounded
from vcr_core.victim import Rules, Victim

FREE = Unbounded(quantize=False)


def boundary(model, clean, labels, **rules):
    goals = Goals(torch.tensor(labels))
    victim = Victim(
        View(GuardedModel(model), torch.arange(clean.shape[1]).view(1, -1)), clean, goals, FREE,
        ids=[str(i) for i in range(len(clean))], seed=1, rules=Rules(access="decision", **rules),
    )  # fmt: skip
    return Boundary(victim, goals, FREE, clean), victim


@pytest.fixture
def near(linear, videos):
    """A linear model and a video close to its boundary, twice; draws depend on the id."""
    drawn = torch.randn(1, 3, 3, 12, 10, generator=torch.Generator().manual_seed(2))
    clean = videos(1, 3, 3, 12, 10).repeat(2, 1, 1, 1, 1)
    score = float((clean[0] * drawn).sum())
    return linear(drawn, [1.0 - score]), clean, [1, 1]


@pytest.mark.parametrize("stride", [1, 4, 100])
def test_directions_have_rank_one_in_every_unfolding(stride, videos):
    video = videos(2, 4, 3, 9, 7)
    space = RankOne(video, stride)
    drawn = torch.randn(2, space.size, generator=torch.Generator().manual_seed(0))
    made = space.directions(space.unit(drawn))
    assert made.shape == video.shape
    assert made.abs().flatten(1).amax(dim=1).tolist() == pytest.approx([1, 1])
    for axis in range(1, 5):
        unfolded = made[0].movedim(axis - 1, 0).flatten(1).double()
        values = torch.linalg.svdvals(unfolded)
        assert values[1] < 1e-5 * values[0]
    torch.testing.assert_close(space.directions(drawn), made)


@pytest.mark.parametrize("first", [0.01, 0.3])
def test_distance_on_a_linear_model(first, linear, videos):
    w = torch.full((1, 2, 3, 4, 4), -0.1)
    clean = videos(1, 2, 3, 4, 4)
    gap = 0.07 * 96 * 0.1
    edge, victim = boundary(linear(w, [float(-(clean * w).sum()) + gap]), clean, [1])
    rows, ones = torch.tensor([0]), torch.ones_like(clean)
    found = edge.distance(ones, rows, torch.tensor([first]), torch.tensor([1.0]))
    bracket = max(first, 0.08)
    assert float(found) == pytest.approx(0.07, abs=bracket / 2**BISECTIONS + 1e-4)
    assert float(found) >= 0.07 - 1e-4
    doublings = {0.01: 4, 0.3: 1}[first]
    assert victim.meters[0].forwards == doublings + BISECTIONS


def test_a_farther_boundary_costs_one_query(linear, videos):
    w = torch.full((1, 2, 3, 4, 4), -0.1)
    clean = videos(1, 2, 3, 4, 4)
    edge, victim = boundary(linear(w, [float(-(clean * w).sum()) + 1.0]), clean, [1])
    limit = torch.tensor([0.05])
    found = edge.distance(torch.ones_like(clean), torch.tensor([0]), limit, limit)
    assert found.isinf()
    assert victim.meters[0].forwards == 1


def test_the_answer_comes_nearer_with_more_steps(contest, near):
    model, clean, labels = near
    sizes = []
    for steps in (1, 12):
        attack = TenAd(TenadParams(steps=steps, stride=6))
        outcome = contest(
            attack, model, clean, labels, access="decision", threat=FREE, stop="first_success"
        )
        assert (outcome.predict(outcome.result).argmax(dim=1) != torch.tensor(labels)).all()
        sizes.append((outcome.result - clean).abs().flatten(1).amax(dim=1))
    assert (sizes[1] <= sizes[0]).all()
    assert (sizes[1] < sizes[0]).any()


@pytest.mark.parametrize("budget", [1, 2, 10, 100])
def test_budgets_are_kept(budget, contest, near):
    model, clean, labels = near
    attack = TenAd(TenadParams(stride=6))
    outcome = contest(
        attack, model, clean, labels, access="decision", threat=FREE, max_forwards=budget
    )
    assert [m.forwards for m in outcome.victim.meters] == [budget] * 2
    assert not any(m.exhausted for m in outcome.victim.meters)


def test_without_a_success_the_clean_video_comes_back(contest, linear, videos):
    clean = videos(1, 2, 3, 4, 4)
    flat = linear(torch.zeros(1, 2, 3, 4, 4), [3.0])
    outcome = contest(TenAd(), flat, clean, [1], access="decision", threat=FREE)
    assert torch.equal(outcome.result, clean)
    assert not outcome.victim.meters[0].achieved
    # Every start doubles from 16/255 to the end of its reach, and nothing follows.
    assert outcome.victim.meters[0].forwards == 8 * 5


def test_batches_masks_balls_and_refusals(contest, near):
    model, clean, labels = near
    attack = TenAd(TenadParams(steps=2, stride=6))
    run = {"access": "decision", "threat": FREE}
    together = contest(attack, model, clean, labels, ids=["a", "b"], **run)
    for i, name in enumerate(("a", "b")):
        alone = contest(attack, model, clean[i : i + 1], labels[i : i + 1], ids=[name], **run)
        torch.testing.assert_close(alone.result[0], together.result[i], rtol=0, atol=1e-6)
    threat = Unbounded(frames=(1,), region=(0.0, 0.5, 1.0, 1.0))
    moved = contest(attack, model, clean, labels, access="decision", threat=threat).result != clean
    assert not moved[:, [0, 2]].any()
    assert not moved[..., :5].any()
    ball = Linf(8 / 255)
    kept = contest(attack, model, clean, labels, access="decision", threat=ball)
    assert ball.within(kept.result, clean).all()
    with pytest.raises(IncompatibleComponents, match="untargeted"):
        contest(attack, model, clean, labels, targets=[0, 0], **run)
    with pytest.raises(IncompatibleComponents, match="'linf'"):
        contest(attack, model, clean, labels, access="decision", threat=L2(1.0))
    with pytest.raises(ContractViolation, match="labels"):
        contest(attack, model, clean, labels, access="none", threat=FREE)
