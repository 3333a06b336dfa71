"""V-BAD: patches share weights, directions change, pairs are whole."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from vcr_attacks.params.query import VbadParams
from vcr_attacks.vbad import FeatureSigns, Tentative, Vbad
from vcr_core.accounts import Meter
from vcr_core.image_models import CountedImageModel, ImageModel
from vcr_core.randomness import VideoRandom
from vcr_core.threat import Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


def test_tentative_directions_are_signs_in_cells_and_change(videos):
    video = videos(2, 3, 3, 8, 12)
    draw = Tentative(video, VideoRandom([1, 2]), 4)
    rows = torch.tensor([0, 1])
    first, second = draw(video, rows), draw(video, rows)
    assert first.unique().tolist() == [-1, 1]
    assert torch.equal(first[:, :, :1].expand_as(first), first)
    assert torch.equal(first[..., ::2, :], first[..., 1::2, :])
    assert torch.equal(first[..., ::3], first[..., 2::3])
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])
    assert Tentative(video, VideoRandom([1, 2]), None)(video, rows).shape == video.shape


def pictures():
    generator = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 4, 3, stride=2))
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) / 5
    return ImageModel(network, ("0", "1"))


def test_signs_lead_to_random_features_of_an_image_network(videos):
    video, model, meters = videos(2, 3, 3, 8, 12), pictures(), [Meter(), Meter()]
    rows = torch.tensor([0, 1])
    signs = FeatureSigns(CountedImageModel(model, meters), VideoRandom([1, 2]), 2, 224)
    first, second = signs(video, rows), signs(video, rows)
    assert set(first.unique().tolist()) <= {-1, 0, 1}
    assert first.abs().mean() > 0.9
    assert not torch.equal(first, second)
    assert [(m.forwards, m.backwards) for m in meters] == [(2, 2)] * 2
    # Signs point away from the random features, whose size is that of |N(0, 1)|.
    wanted = VideoRandom([1, 2]).normal(3, 4).abs()

    def distance(points):
        found = model.features(points.flatten(0, 1), 2).mean(dim=(2, 3)).view(2, 3, 4)
        return (found - wanted).square().sum(dim=2)

    assert (distance(video - 1e-3 * first) < distance(video)).all()
    alone = FeatureSigns(CountedImageModel(model, meters), VideoRandom([1, 2]), 2, 224)
    assert torch.equal(alone(video[1:], rows[1:])[0], first[1])


def test_an_image_network_is_asked_once_a_step(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    params = VbadParams(iterations=3, samples=6, tentative="net", depth=2)
    labels = labels_of(tiny, clean)
    first, again = (
        contest(Vbad(params), tiny, clean, labels, access="score", images={"net": pictures()})
        for _ in range(2)
    )
    assert torch.equal(first.result, again.result)
    assert [(m.forwards, m.backwards) for m in first.images] == [(3, 3)] * 2
    assert [m.forwards for m in first.victim.meters] == [1 + 3 * 7] * 2
    assert EXACT.within(first.result, clean).all()


def test_an_offset_has_one_weight_per_patch(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 8, 8)
    outcome = contest(
        Vbad(VbadParams(iterations=1, samples=4, patches=2)), tiny, clean,
        labels_of(tiny, clean), access="score", threat=EXACT,
    )  # fmt: skip
    pairs = [p for r, p in outcome.points if len(r) == 2]
    assert len(pairs) == 2
    for pair in pairs:
        torch.testing.assert_close(pair.mean(dim=0), clean[0])
        size = (pair[0] - clean[0]).abs()
        for frame in range(3):
            for top in (0, 4):
                for left in (0, 4):
                    patch = size[frame, :, top : top + 4, left : left + 4]
                    assert patch.max() - patch.min() < 1e-6


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 10, 1000])
def test_costs_and_budgets(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    outcome = contest(
        Vbad(VbadParams(iterations=3, samples=6)), tiny, clean, labels_of(tiny, clean),
        access="score", max_forwards=budget,
    )  # fmt: skip
    spent = {1: 1, 2: 1, 3: 1, 4: 4, 10: 8, 1000: 1 + 3 * 7}[budget]
    assert [m.forwards for m in outcome.victim.meters] == [spent] * 2
    assert all(EXACT.within(points, clean[rows]).all() for rows, points in outcome.points)


@pytest.mark.parametrize("targets", [None, [1]])
def test_beats_a_linear_model(targets, contest, linear, videos):
    w = torch.randn(1, 2, 3, 4, 4, generator=torch.Generator().manual_seed(1)) / 4
    w = w.repeat_interleave(3, -1).repeat_interleave(3, -2)
    clean = videos(1, 2, 3, 12, 12)
    reach = 0.15 * EPS * float(w.abs().sum())
    model = linear(w, [-float((clean * w).sum()) + (reach if targets is None else -reach)])
    outcome = contest(
        Vbad(VbadParams(samples=12, patches=4, texture=4)), model, clean,
        [1 if targets is None else 0], targets=targets, access="score", threat=EXACT,
        stop="first_success", max_forwards=1500,
    )  # fmt: skip
    assert outcome.victim.meters[0].done


def test_masks_seeds_and_batches(contest, tiny, videos, labels_of):
    clean = videos(2, 4, 3, 12, 10)
    labels = labels_of(tiny, clean)
    attack = Vbad(VbadParams(iterations=2, samples=4))
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
