"""Randomized smoothing as a defense: votes, certificates, gradients, and where noise is added."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
from vcr_core.adaptive import DefenseLink, View
from vcr_core.protocols import Certifier, DetailedFn, VideoDefense
from vcr_core.randomness import VideoRandom
from vcr_core.record_schema import Certificate
from vcr_defenses.noisy_vote import MOST_AT_ONCE
from vcr_defenses.params.smoothing import RandomizedSmoothingParams
from vcr_defenses.smoothing import RandomizedSmoothing

SHAPE = (2, 3, 4, 5)
DIMS = 2 * 3 * 4 * 5


def smoothing(**params):
    return RandomizedSmoothing(RandomizedSmoothingParams(**params))


def half_space(weight, offset):
    """Return f(x) = 1 where w·(x - 1/2) > offset, else 0, as log-probabilities ``[B, 2]``."""

    def predict(shown):
        score = (shown - 0.5).flatten(1) @ weight.to(shown) - offset
        return torch.stack([-score, score], dim=1).mul(50).log_softmax(dim=1)

    return predict


@pytest.fixture
def weight():
    return torch.randn(DIMS, generator=torch.Generator().manual_seed(5))


def grey(count=2):
    return torch.full((count, *SHAPE), 0.5)


def seeds(count=2, first=7):
    return VideoRandom([first + 1000 * i for i in range(count)])


def test_what_it_offers():
    assert isinstance(smoothing(), VideoDefense)
    assert isinstance(smoothing(), Certifier)
    assert not smoothing().certifies
    assert smoothing(certify_n=100).certifies


def test_certified_radius_of_a_half_space_stays_below_the_distance_and_approaches_it(weight):
    # Noise of 0.05 about mid grey stays inside [0, 1], so the base classifier is linear.
    offset = 0.1 * float(weight.norm())
    radii = []
    for n in (100, 1000, 10_000):
        defense = smoothing(sigma=0.05, certify_n=n)
        [given] = defense.certify(half_space(weight, offset), grey(1), seeds(1))
        msgspec.convert(given, Certificate)
        assert given["class"] == 0
        assert 0 < given["radius"] <= 0.1
        assert given["dims"] == DIMS
        radii.append(given["radius"])
    assert radii == sorted(radii)
    assert radii[-1] > 0.08


def test_the_guarantee_holds_where_it_can_be_checked(weight):
    # A step of the certified length straight at the border never changes the vote.
    offset = 0.07 * float(weight.norm())
    predict = half_space(weight, offset)
    defense = smoothing(sigma=0.05, certify_n=2000, n=2000)
    [given] = defense.certify(predict, grey(1), seeds(1))
    worst = grey(1) + 0.999 * given["radius"] * (weight / weight.norm()).view(1, *SHAPE)
    assert int(defense.wrap_video(predict, seeds(1, 99))(worst).argmax()) == given["class"]


def test_without_noise_the_vote_is_the_classifiers_own_and_never_abstains(weight):
    video = torch.rand(3, *SHAPE, generator=torch.Generator().manual_seed(1))
    predict = half_space(weight, 0.0)
    for sigma in (0.0, 1e-6):
        vote = smoothing(sigma=sigma, n=11).wrap_video(predict, seeds(3))
        assert torch.equal(vote(video).argmax(dim=1), predict(video).argmax(dim=1))
        assert all(facts["abstained"] is False for facts in vote.details())
        assert all(list(facts["votes"].values()) == [11] for facts in vote.details())
    assert not smoothing(sigma=0.0).stochastic


def test_a_close_vote_abstains_and_keeps_its_histogram(weight):
    vote = smoothing(n=40).wrap_video(half_space(weight, 0.0), seeds())
    assert isinstance(vote, DetailedFn)
    scores = vote(grey())
    assert scores.shape == (2, 2)
    assert torch.isfinite(scores).all()
    for facts in vote.details():
        assert sum(facts["votes"].values()) == 40
        assert facts["abstained"] is True
    sure = smoothing(n=40, abstain=False).wrap_video(half_space(weight, 0.0), seeds())
    sure(grey())
    assert [facts["abstained"] for facts in sure.details()] == [False, False]


def test_a_certificate_without_a_class_has_radius_zero(weight):
    [given] = smoothing(certify_n=50).certify(half_space(weight, 0.0), grey(1), seeds(1))
    assert given["class"] is None
    assert given["radius"] == 0.0
    assert given["p_lower"] <= 0.5


def test_copies_depend_on_the_video_alone(weight):
    predict = half_space(weight, 0.02 * float(weight.norm()))
    count = MOST_AT_ONCE + 3
    video = 0.5 + 0.02 * torch.randn(count, *SHAPE, generator=torch.Generator().manual_seed(2))
    defense = smoothing(n=50, certify_n=60, certify_n0=10)
    together = defense.wrap_video(predict, seeds(count))
    together(video)
    certified = defense.certify(predict, video, seeds(count))
    assert len({str(facts) for facts in together.details()}) > 1
    for row in (0, 1, count - 1):
        alone = defense.wrap_video(predict, seeds(count).select([row]))
        alone(video[row : row + 1])
        assert alone.details() == [together.details()[row]]
        own = defense.certify(predict, video[row : row + 1], seeds(count).select([row]))
        assert own == [certified[row]]


def test_selection_bound_and_votes_use_separate_copies():
    shown = []

    def predict(noisy):
        shown.extend(noisy)
        return torch.zeros(len(noisy), 2)

    defense = smoothing(n=20, certify_n=30, certify_n0=10)
    defense.certify(predict, grey(1), seeds(1))
    defense.wrap_video(predict, seeds(1))(grey(1))
    assert len(shown) == 60
    assert len({tuple(copy.flatten().tolist()) for copy in shown}) == 60


def test_memory_is_bounded_by_copies_at_once():
    sizes = []

    def predict(noisy):
        sizes.append(len(noisy))
        return torch.zeros(len(noisy), 2)

    smoothing(n=100).wrap_video(predict, seeds())(grey())
    assert max(sizes) == MOST_AT_ONCE
    assert sum(sizes) == 200
    sizes.clear()
    count = MOST_AT_ONCE + 1
    smoothing(n=20).wrap_video(predict, seeds(count))(grey(count))
    assert set(sizes) == {count}


def test_asking_twice_draws_anew():
    shown = []

    def predict(noisy):
        shown.append(noisy)
        return torch.zeros(len(noisy), 2)

    vote = smoothing(n=11).wrap_video(predict, seeds())
    vote(grey())
    vote(grey())
    first, second = torch.cat(shown[: len(shown) // 2]), torch.cat(shown[len(shown) // 2 :])
    assert not torch.equal(first, second)


def test_noise_has_the_standard_deviation_that_is_asked_for():
    shown = []

    def predict(noisy):
        shown.append(noisy)
        return torch.zeros(len(noisy), 2)

    smoothing(sigma=0.25, n=200, clamp=False).wrap_video(predict, seeds(1))(grey(1))
    noise = torch.cat(shown) - 0.5
    assert float(noise.std()) == pytest.approx(0.25, rel=0.02)
    assert float(noise.mean()) == pytest.approx(0.0, abs=0.01)
    assert float(torch.cat(shown).max()) > 1


def test_the_gradient_is_that_of_the_log_of_the_mean_probability(weight):
    # SmoothAdv: -log mean_v p_v(y), not the mean of -log p_v(y).
    predict = half_space(weight, 0.05 * float(weight.norm()))
    video = grey(1).double().requires_grad_()
    defense = smoothing(sigma=0.05, gradient_n=5, clamp=False)
    out = defense.wrap_video(predict, seeds(1))(video)
    (found,) = torch.autograd.grad(-out[0, 0], video)
    copies = []

    def keep(noisy):
        copies.append(noisy.detach())
        return predict(noisy)

    defense.wrap_video(keep, seeds(1))(video)
    [noisy] = copies
    assert len(noisy) == 5
    leaf = noisy.clone().requires_grad_()
    loss = -(predict(leaf)[:, 0].exp().mean().log())
    (parts,) = torch.autograd.grad(loss, leaf)
    torch.testing.assert_close(found, parts.sum(dim=0, keepdim=True))
    assert math.isclose(float(out[0, 0].detach()), -float(loss.detach()), rel_tol=1e-9)


class CountsFrames:
    """A classifier of clips that keeps what it is shown."""

    labels = ("a", "b")

    def __init__(self):
        self.seen = []

    def logits(self, clips):
        self.seen.append(clips.clone())
        return torch.zeros(len(clips), 1, 2)


def test_a_frame_that_clips_share_has_one_noise_in_front_of_the_chain_only():
    gather = torch.tensor([[0, 1, 2], [1, 2, 3]])
    video = torch.full((2, 4, 3, 4, 5), 0.5)
    for clamp in (True, False):
        link = DefenseLink("rs", smoothing(n=11, clamp=clamp), "exact", stochastic=True)
        model = CountsFrames()
        View(model, gather, [link])(video, seeds())
        clips = torch.cat(model.seen).unflatten(0, (-1, 2))
        assert torch.equal(clips[:, 0, 1:], clips[:, 1, :2])
        model = CountsFrames()
        View(model, gather, [DefenseLink("same", Same(), "exact", stochastic=False), link])(
            video, seeds()
        )
        clips = torch.cat(model.seen).unflatten(0, (-1, 2))
        assert not torch.equal(clips[:, 0, 1:], clips[:, 1, :2])


class Same:
    """A defense that does nothing."""

    def wrap(self, predict, random):
        return predict


def test_facts_reach_the_view(weight):
    class Linear:
        labels = ("a", "b")

        def logits(self, clips):
            score = (clips - 0.5).flatten(1) @ weight
            return torch.stack([-score, score], dim=1).unsqueeze(1)

    gather = torch.arange(2)[None]
    link = DefenseLink("rs", smoothing(n=30, certify_n=100), "exact", stochastic=True)
    view = View(Linear(), gather, [link])
    assert view.certifies
    with torch.no_grad():
        scores, told = view.detailed(grey(), seeds())
        given = view.certificates(grey(), seeds())
    assert scores.shape == (2, 2)
    assert [sum(facts["votes"].values()) for facts in told] == [30, 30]
    assert [facts["n"] for facts in given] == [100, 100]


class TestSingle:
    """The VCR-Bench code's variant: one noisy pass."""

    def test_one_pass_with_a_sigma_for_each_video(self):
        shown = []

        def predict(noisy):
            shown.append(noisy)
            return torch.zeros(len(noisy), 2)

        defense = smoothing(mode="single")
        video = torch.full((40, 4, 3, 8, 8), 0.5)
        out = defense.wrap_video(predict, seeds(40))(video)
        assert out.shape == (40, 2)
        [noisy] = shown
        spread = (noisy - 0.5).flatten(1).std(dim=1) * 255
        assert 4.5 < float(spread.min()) < 8
        assert 22 < float(spread.max()) < 26
        assert float(noisy.min()) >= 0
        assert not hasattr(defense.wrap_video(predict, seeds(40)), "details")

    def test_it_is_differentiable_and_takes_no_certificate(self, weight):
        video = grey().requires_grad_()
        smoothing(mode="single").wrap(half_space(weight, 0.0), seeds())(video).sum().backward()
        assert video.grad is not None
        assert float(video.grad.abs().sum()) > 0
        with pytest.raises(ValueError, match="certifies nothing"):
            smoothing(mode="single", certify_n=100)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"n": 10}, "use n = 11 or more"),
        ({"certify_n": 9}, "use 10 or more"),
        ({"certify_n": 100, "sigma": 0.0}, "without noise"),
        ({"alpha": 0.5}, "< 0.5"),
        ({"sigma_low": 0.2, "sigma_high": 0.1}, "above"),
        ({"copies": 3}, "unknown field"),
    ],
)
def test_parameters_that_lead_to_nothing_are_refused(data, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(data, type=RandomizedSmoothingParams)


def test_the_least_numbers_of_copies_are_enough():
    msgspec.convert({"n": 11, "certify_n": 10}, type=RandomizedSmoothingParams)
    msgspec.convert({"n": 1, "abstain": False}, type=RandomizedSmoothingParams)
