"""Denoised smoothing: the vote and certificate of smoothing around a denoiser."""

from __future__ import annotations

import msgspec
import pytest
import torch
from vcr_core.randomness import VideoRandom
from vcr_core.record_schema import Certificate
from vcr_defenses.denoised_smoothing import DenoisedSmoothing
from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.params.smoothing import DenoisedSmoothingParams, RandomizedSmoothingParams
from vcr_defenses.smoothing import RandomizedSmoothing

SHAPE = (2, 3, 16, 16)


@pytest.fixture
def make(described):
    folder = described()

    def build(**params):
        return DenoisedSmoothing(DenoisedSmoothingParams(denoiser=folder, **params))

    return build


def seeds(count=2):
    return VideoRandom([7 + 1000 * i for i in range(count)])


def bright(shown):
    """Return class 1 for videos that are brighter than grey on average."""
    score = 50 * (shown.flatten(1).mean(dim=1) - 0.5)
    return torch.stack([-score, score], dim=1).log_softmax(dim=1)


def grey(level):
    return torch.full((2, *SHAPE), level)


def test_the_classifier_sees_denoised_frames(make, oracle):
    defense, shown = make(sigma=0.1, n=11), []
    oracle(defense.denoise, clean=grey(0.25)[0, 0])

    def predict(seen):
        shown.append(seen)
        return bright(seen)

    vote = defense.wrap_video(predict, seeds())
    assert vote(grey(0.25)).argmax(dim=1).tolist() == [0, 0]
    seen = torch.cat(shown)
    assert len(seen) == 22
    torch.testing.assert_close(seen, torch.full_like(seen, 0.25), rtol=0, atol=1e-2)
    assert vote.details() == [{"votes": {"0": 11}, "abstained": False}] * 2


def test_a_denoiser_raises_the_certified_radius(make, oracle):
    # Bright by less than the noise moves the mean of so few pixels: alone the vote is mixed.
    video = grey(0.505)
    defense = make(sigma=0.25, certify_n=200)
    oracle(defense.denoise, clean=video[0, 0])
    bare = RandomizedSmoothing(RandomizedSmoothingParams(sigma=0.25, certify_n=200))
    for certificate in defense.certify(bright, video, seeds()):
        msgspec.convert(certificate, Certificate)
        assert certificate["class"] == 1
        # The oracle never errs: as many as were drawn.
        assert certificate["count"] == certificate["n"] == 200
        alone = bare.certify(bright, video, seeds())[0]
        assert certificate["radius"] > alone["radius"]


def test_counts_sum_to_n(make, oracle):
    defense = make(sigma=0.1, n=30, certify_n=40, certify_n0=20)
    oracle(defense.denoise)
    vote = defense.wrap(bright, seeds())
    vote(grey(0.5).unsqueeze(1))
    assert [sum(facts["votes"].values()) for facts in vote.details()] == [30, 30]
    for certificate in defense.certify(bright, grey(0.5), seeds()):
        assert (certificate["n0"], certificate["n"]) == (20, 40)


@pytest.mark.parametrize("sigma", [0.05, 0.1, 0.25])
def test_the_step_is_that_of_the_noise_within_one(make, sigma):
    levels = make(sigma=sigma).denoise.space.schedule
    step = make(sigma=sigma).denoise.step(sigma, 16, 16)
    below, above = (sched.noise_ratio(levels.abar(step + d)) for d in (-1, 1))
    assert below <= 2 * sigma <= above


def test_without_noise_it_is_the_classifier_itself(make):
    defense = make(sigma=0.0)
    assert not defense.stochastic
    video = torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(1))
    vote = defense.wrap_video(bright, seeds())
    assert torch.equal(vote(video).argmax(dim=1), bright(video).argmax(dim=1))


def test_gradients_reach_the_video_through_the_denoiser(make, oracle):
    defense = make(sigma=0.1, gradient_n=2)
    told = oracle(defense.denoise)
    told.predict = lambda x, t: 0.5 * x
    video = grey(0.4).requires_grad_()
    out = defense.wrap_video(bright, seeds())(video)
    (gradient,) = torch.autograd.grad(out[:, 1].sum(), video)
    assert torch.isfinite(gradient).all()
    assert float(gradient.min()) > 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"n": 5}, "n = 11 or more"),
        ({"certify_n": 3}, "10 or more"),
        ({"fit": "native", "size": 8}, "native"),
    ],
)
def test_parameters_that_lead_to_nothing_are_refused(data, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(data, type=DenoisedSmoothingParams)
