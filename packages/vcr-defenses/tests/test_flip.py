from __future__ import annotations

import torch
from vcr_defenses.flip import Flip
from vcr_defenses.params.spatial import FlipParams
from vcr_defenses.plugin import vcr_register_defenses


def test_twice_is_the_identity_and_histograms_stay(make_clips, make_random):
    clips, random = make_clips(), make_random()
    out = Flip().apply(clips, random)
    assert torch.equal(Flip().apply(out, random), clips)
    assert torch.equal(out.flatten(3).sort(dim=3).values, clips.flatten(3).sort(dim=3).values)
    assert torch.equal(out.diff(dim=2), clips.diff(dim=2).flip(-1))


def test_ensemble_is_the_mean_of_both_ways_and_symmetric(make_clips, make_random):
    clips = make_clips(2, 1, 2, 3, 9, 8)
    weights = torch.randn(2 * 3 * 9 * 8, 4, generator=torch.Generator().manual_seed(1))

    def predict(shown):
        return (shown.flatten(1) @ weights).log_softmax(dim=1)

    defended = Flip(FlipParams(ensemble=True)).wrap(predict, make_random())
    expected = (predict(clips).exp() + predict(clips.flip(-1)).exp()) / 2
    torch.testing.assert_close(defended(clips).exp(), expected)
    torch.testing.assert_close(defended(clips), defended(clips.flip(-1)))
    assert [sum(facts["votes"].values()) for facts in defended.details()] == [2, 2]


def test_a_probability_flips_some_videos(make_clips, make_random):
    clips = make_clips(1, 1, 2, 3, 9, 8).expand(64, 1, 2, 3, 9, 8)
    defense = Flip(FlipParams(probability=0.25))
    assert defense.stochastic
    out = defense.apply(clips, make_random(64))
    flipped = (out == clips.flip(-1)).flatten(1).all(dim=1)
    assert torch.equal(out[~flipped], clips[~flipped])
    assert 6 <= int(flipped.sum()) <= 28
    assert torch.equal(Flip(FlipParams(probability=0)).apply(clips, make_random(64)), clips)


def test_spec_says_that_labels_may_change():
    flags = {spec.name: spec.changes_labels for spec in vcr_register_defenses()}
    assert flags["flip"]
    assert not flags["rotate"]
