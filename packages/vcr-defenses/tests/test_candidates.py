"""Defenses that classify several draws: what is merged, and what the draws depend on."""

from __future__ import annotations

import pytest
import torch
from vcr_core.randomness import VideoRandom
from vcr_defenses.candidates import streams
from vcr_defenses.crop_resize import CropResize
from vcr_defenses.params.spatial import CropResizeParams, RandomResizePadParams
from vcr_defenses.params.temporal import TemporalShuffleParams, TemporalSubsampleParams
from vcr_defenses.random_resize_pad import RandomResizePad
from vcr_defenses.temporal_shuffle import TemporalShuffle
from vcr_defenses.temporal_subsample import TemporalSubsample

VOTERS = {
    "crop-resize": lambda **kw: CropResize(CropResizeParams(**kw)),
    "random-resize-pad": lambda **kw: RandomResizePad(RandomResizePadParams(**kw)),
    "temporal-shuffle": lambda **kw: TemporalShuffle(TemporalShuffleParams(**kw)),
    "temporal-subsample": lambda **kw: TemporalSubsample(
        TemporalSubsampleParams(mode="random", **kw)
    ),
}
every_voter = pytest.mark.parametrize("name", sorted(VOTERS))


class Model:
    """A linear classifier of clips of 4 frames of 20x24 pixels that keeps what it was shown."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.weights = torch.randn(4 * 3 * 20 * 24, 5, generator=generator) / 4
        self.shown: list[torch.Tensor] = []

    def __call__(self, clips: torch.Tensor) -> torch.Tensor:
        self.shown.append(clips.detach())
        return (clips.flatten(1) @ self.weights).log_softmax(dim=1)


@every_voter
def test_votes_are_different_draws_and_their_mean_is_returned(name, make_clips, make_random):
    clips, model = make_clips(2, 1, 4, 3, 20, 24), Model()
    defended = VOTERS[name](votes=6).wrap(model, make_random())
    out = defended(clips)
    assert len(model.shown) == 6
    assert len({tuple(shown[0].flatten().tolist()) for shown in model.shown}) > 1
    mean = torch.stack([Model()(shown).exp() for shown in model.shown]).mean(dim=0)
    torch.testing.assert_close(out.exp(), mean)
    assert [sum(facts["votes"].values()) for facts in defended.details()] == [6, 6]


@every_voter
def test_a_majority_names_the_class_of_most_votes(name, make_clips, make_random):
    clips, model = make_clips(2, 1, 4, 3, 20, 24), Model()
    defended = VOTERS[name](votes=5, merge="majority").wrap(model, make_random())
    winners = defended(clips).argmax(dim=1).tolist()
    for winner, facts in zip(winners, defended.details(), strict=True):
        assert facts["votes"][str(winner)] == max(facts["votes"].values())


@every_voter
def test_votes_do_not_depend_on_the_neighbours_in_a_batch(name, make_clips):
    clips = make_clips(3, 1, 4, 3, 20, 24)
    defense = VOTERS[name](votes=3)
    together = defense.wrap(Model(), VideoRandom([5, 6, 7]))(clips)
    alone = defense.wrap(Model(), VideoRandom([6]))(clips[1:2])
    torch.testing.assert_close(together[1:2], alone, rtol=0, atol=1e-5)


@every_voter
def test_one_vote_is_the_plain_transform(name, make_clips, make_random):
    clips, model = make_clips(2, 1, 4, 3, 20, 24), Model()
    defense = VOTERS[name]()
    defense.wrap(model, make_random())(clips)
    assert torch.equal(model.shown[0], defense.apply(clips, make_random()))


@every_voter
def test_the_gradient_is_the_mean_over_the_votes(name, make_clips, make_random):
    clips = make_clips(1, 1, 4, 3, 20, 24).requires_grad_()
    out = VOTERS[name](votes=4).wrap(Model(), make_random(1))(clips)
    (gradient,) = torch.autograd.grad(out[0, 2], clips)
    assert torch.isfinite(gradient).all()
    assert gradient.abs().sum() > 0


def test_a_function_that_is_asked_twice_draws_anew_and_a_new_one_does_not(make_random):
    random = make_random(1)
    first, second = ([s.seeds for s in streams(random, 3)] for _ in range(2))
    assert first != second
    assert first == [s.seeds for s in streams(make_random(1), 3)]
    assert len(set(first)) == 3
