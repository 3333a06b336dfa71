"""Geo-TRAP: the warps, the tracked slope, costs and budgets."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.gradest import Gradest, TrackedSlope, unit_frames
from vcr_attacks.motion_noise import PARAMETERS, WarpedNoise, matrices, warped
from vcr_attacks.params.query import GradestParams
from vcr_attacks.query_loop import Queries
from vcr_core.adaptive import View
from vcr_core.errors import IncompatibleComponents
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel
from vcr_core.randomness import VideoRandom
from vcr_core.threat import L1, Linf
from vcr_core.victim import Rules, Victim

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


def test_the_identity_keeps_the_noise_and_a_shift_moves_it_by_pixels():
    noise = torch.randn(2, 3, 9, 7, generator=torch.Generator().manual_seed(0))
    still = matrices("affine", torch.tensor([[1.0, 0, 0, 0, 1, 0]])).expand(2, 2, 3)
    torch.testing.assert_close(warped(noise, still), noise, rtol=0, atol=1e-5)
    right = matrices("translation", torch.tensor([[2 / 6, 0.0]])).expand(2, 2, 3)
    moved = warped(noise, right)
    torch.testing.assert_close(moved[..., :-1], noise[..., 1:], rtol=0, atol=1e-5)
    assert moved[..., -1].abs().max() < 1e-5


def test_motions_have_the_form_that_their_names_say():
    drawn = torch.tensor([[0.3, 1.5, -0.2, 0.4, 0.1, 0.7]])
    maps = {m: matrices(m, drawn[:, :d])[0] for m, d in PARAMETERS.items()}
    assert maps["dilation"].tolist() == [[pytest.approx(0.3), 0, 0], [0, pytest.approx(0.3), 0]]
    rotation = maps["rigid"][:, :2]
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(2))
    assert maps["rigid"][:, 2].tolist() == pytest.approx([1.5, -0.2])
    turned = maps["similarity"][:, :2]
    torch.testing.assert_close(turned @ turned.T, 1.5**2 * torch.eye(2))
    assert maps["similarity"][:, 2].tolist() == pytest.approx([-0.2, 0.4])
    scaled = maps["translation-dilation"]
    assert scaled[0, 0] == scaled[1, 1] == drawn[0, 0]
    assert scaled[:, 2].tolist() == pytest.approx([1.5, -0.2])


@pytest.mark.parametrize("motion", PARAMETERS)
def test_noise_of_any_motion_and_length(motion, videos):
    for frames in (1, 4):
        video = videos(2, frames, 3, 8, 11)
        noise = WarpedNoise(video, VideoRandom([1, 2]), motion)
        first = noise.draw(torch.tensor([0, 1]))
        assert first.shape == video.shape
        assert torch.isfinite(first).all()
        alone = WarpedNoise(video, VideoRandom([1, 2]), motion).draw(torch.tensor([1]))
        assert torch.equal(alone[0], first[1])
        assert not torch.equal(noise.draw(torch.tensor([0, 1])), first)


def test_frames_of_zeros_stay_zeros():
    video = torch.randn(1, 3, 3, 5, 4, generator=torch.Generator().manual_seed(0))
    video[:, 1] = 0
    unit = unit_frames(video)
    assert unit.square().mean(dim=(2, 3, 4)).tolist() == [pytest.approx([1, 0, 1])]


@pytest.mark.golden
def test_the_slope_turns_towards_the_gradient(linear, videos):
    """Half of the cosines that the method is known to reach on such a gradient."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(1, 3, 4, 4, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, (32, 32), mode="bicubic")
    w = (smooth.expand(8, 3, 32, 32) / 200)[None]
    clean, rows = videos(1, 8, 3, 32, 32), torch.tensor([0])
    goals, model = Goals(torch.tensor([1])), linear(w, [1.0])
    victim = Victim(
        View(GuardedModel(model), torch.arange(8).view(1, -1)), clean, goals, EXACT,
        ids=["a"], seed=1, rules=Rules(access="score", stop="budget"),
    )  # fmt: skip
    slope = TrackedSlope(
        Queries(victim, goals, EXACT, clean, "margin"),
        WarpedNoise(clean, VideoRandom([5]), "translation-dilation"),
        spread=0.1, probe=1 / 255, rate=0.1,
    )  # fmt: skip
    cosines = []
    for _ in range(100):
        found = slope(clean, rows)
        cosines.append(float((found * w).sum() / found.norm() / w.norm()))
    assert sum(c > 0 for c in cosines[5:]) >= 94
    assert cosines[49] > 0.05
    assert cosines[99] > 0.075


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 10, 1000])
def test_costs_and_budgets(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    outcome = contest(
        Gradest(GradestParams(iterations=7)), tiny, clean, labels_of(tiny, clean),
        access="score", max_forwards=budget,
    )  # fmt: skip
    spent = {1: 1, 2: 1, 3: 1, 4: 4, 10: 10, 1000: 1 + 3 * 7}[budget]
    assert [m.forwards for m in outcome.victim.meters] == [spent] * 2
    assert all(EXACT.within(points, clean[rows]).all() for rows, points in outcome.points)


def test_probes_have_the_asked_size_in_every_frame(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 9, 7)
    outcome = contest(
        Gradest(GradestParams(iterations=1, probe=2 / 255)), tiny, clean, labels_of(tiny, clean),
        access="score", threat=Linf(1.0, quantize=False),
    )  # fmt: skip
    (pair,) = [p for r, p in outcome.points if len(r) == 2]
    size = (pair - clean).square().mean(dim=(2, 3, 4)).sqrt()
    torch.testing.assert_close(size, torch.full((2, 3), 2 / 255), rtol=1e-4, atol=0)


@pytest.mark.parametrize("targets", [None, [1]])
def test_beats_a_smooth_linear_model(targets, contest, linear, videos):
    y, x = torch.meshgrid(torch.arange(12), torch.arange(10), indexing="ij")
    w = torch.stack([torch.sin(y / 4.0 + c) * torch.cos(x / 4.0) for c in range(3)])
    w = w.expand(1, 3, 3, 12, 10) / 8
    clean = videos(1, 3, 3, 12, 10)
    reach = 0.2 * EPS * float(w.abs().sum())
    model = linear(w, [-float((clean * w).sum()) + (reach if targets is None else -reach)])
    outcome = contest(
        Gradest(), model, clean, [1 if targets is None else 0], targets=targets,
        access="score", threat=EXACT, stop="first_success",
    )  # fmt: skip
    assert outcome.victim.meters[0].done
    assert int(outcome.predict(outcome.result).argmax()) == (0 if targets is None else 1)


def test_masks_flat_models_seeds_and_norms(contest, tiny, linear, videos, labels_of):
    clean = videos(1, 4, 3, 12, 10)
    labels = labels_of(tiny, clean)
    attack = Gradest(GradestParams(iterations=3))
    threat = Linf(EPS, frames=(2,), region=(0.0, 0.5, 1.0, 1.0))
    moved = contest(attack, tiny, clean, labels, access="score", threat=threat).result != clean
    assert moved[:, 2, :, :, 5:].any()
    assert not moved[:, [0, 1, 3]].any()
    assert not moved[..., :5].any()
    flat = linear(torch.zeros(1, 4, 3, 12, 10), [3.0])
    outcome = contest(attack, flat, clean, [1], access="score")
    assert torch.equal(outcome.result, clean)
    first, again, other = (
        contest(attack, tiny, clean, labels, access="score", seed=s).result for s in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    with pytest.raises(IncompatibleComponents, match="'l1'"):
        contest(attack, tiny, clean, labels, access="score", threat=L1(1.0))
    assert torch.equal(
        contest(attack, tiny, clean, labels, access="score", threat=Linf(0)).result, clean
    )
