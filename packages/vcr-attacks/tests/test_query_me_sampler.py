"""ME-Sampler: motion found by block matching, noise carried along it, costs."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.block_motion import displacements, origins
from vcr_attacks.me_sampler import CarriedNoise, MeSampler
from vcr_attacks.params.query import MeSamplerParams
from vcr_core.randomness import VideoRandom
from vcr_core.threat import Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


@pytest.fixture
def moving():
    """A texture that moves two pixels to the right and one down per frame, ``[4, 3, 16, 20]``."""
    wide = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(0))
    return torch.stack([wide[:, 10 - t : 26 - t, 10 - 2 * t : 30 - 2 * t] for t in range(4)])


def test_motion_is_found(moving):
    found = displacements(moving, 4, 3)
    assert found.shape == (3, 2, 16, 20)
    inside = found[:, :, 4:, 4:]
    assert (inside[:, 0] == -1).all()
    assert (inside[:, 1] == -2).all()


def test_what_stands_still_has_no_motion():
    flat = torch.full((3, 3, 9, 7), 0.5)
    assert not displacements(flat, 4, 2).any()
    back = origins(flat, 4, 2)
    assert torch.equal(back, torch.arange(63).view(1, 9, 7).expand(3, 9, 7))


def test_noise_is_carried_along(moving):
    video = moving[None]
    noise = CarriedNoise(video, VideoRandom([7]), 4, 3).draw(torch.tensor([0]))
    assert noise.shape == video.shape
    for t in range(1, 4):
        before, now = noise[0, t - 1], noise[0, t]
        assert torch.equal(now[:, 5:, 6:], before[:, 4:-1, 4:-2])
    still = CarriedNoise(torch.full((2, 3, 3, 9, 7), 0.5), VideoRandom([1, 2]), 4, 2)
    drawn = still.draw(torch.tensor([0, 1]))
    assert torch.equal(drawn[:, 0], drawn[:, 2])
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(still.draw(torch.tensor([0, 1])), drawn)


@pytest.mark.parametrize("size", [(1, 5, 7), (2, 33, 50), (3, 1, 1)])
def test_odd_sizes(size):
    frames, height, width = size
    video = torch.rand(1, frames, 3, height, width, generator=torch.Generator().manual_seed(0))
    for block, reach in ((8, 4), (3, 0), (100, 2)):
        drawn = CarriedNoise(video, VideoRandom([1]), block, reach).draw(torch.tensor([0]))
        assert drawn.shape == video.shape


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 10, 1000])
def test_costs_and_budgets(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    outcome = contest(
        MeSampler(MeSamplerParams(iterations=7)), tiny, clean, labels_of(tiny, clean),
        access="score", max_forwards=budget,
    )  # fmt: skip
    spent = {1: 1, 2: 1, 3: 1, 4: 4, 10: 10, 1000: 1 + 3 * 7}[budget]
    assert [m.forwards for m in outcome.victim.meters] == [spent] * 2
    assert all(EXACT.within(points, clean[rows]).all() for rows, points in outcome.points)


@pytest.mark.parametrize("targets", [None, [1]])
def test_beats_a_linear_model_that_looks_at_what_moves(targets, contest, linear, moving):
    shape = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(3))
    wide = shape.repeat_interleave(10, -1).repeat_interleave(10, -2)
    w = torch.stack([wide[:, 10 - t : 26 - t, 10 - 2 * t : 30 - 2 * t] for t in range(4)])[None] / 4
    clean = (moving[None] * 175 + 40).round() / 255
    reach = 0.15 * EPS * float(w.abs().sum())
    model = linear(w, [-float((clean * w).sum()) + (reach if targets is None else -reach)])
    outcome = contest(
        MeSampler(MeSamplerParams(block=4)), model, clean, [1 if targets is None else 0],
        targets=targets, access="score", threat=EXACT, stop="first_success",
    )  # fmt: skip
    assert outcome.victim.meters[0].done


def test_masks_seeds_and_radius_zero(contest, tiny, videos, labels_of):
    clean = videos(1, 4, 3, 12, 10)
    labels = labels_of(tiny, clean)
    attack = MeSampler(MeSamplerParams(iterations=3))
    threat = Linf(EPS, frames=(2,), region=(0.0, 0.5, 1.0, 1.0))
    moved = contest(attack, tiny, clean, labels, access="score", threat=threat).result != clean
    assert moved[:, 2, :, :, 5:].any()
    assert not moved[:, [0, 1, 3]].any()
    assert not moved[..., :5].any()
    first, again, other = (
        contest(attack, tiny, clean, labels, access="score", seed=s).result for s in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    zero = contest(attack, tiny, clean, labels, access="score", threat=Linf(0))
    assert torch.equal(zero.result, clean)
