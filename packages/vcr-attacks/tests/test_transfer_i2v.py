"""i2v: what it does to features, and that no video model is asked."""

from __future__ import annotations

import msgspec
import pytest
import torch
from torch import nn
from torch.nn.functional import cosine_similarity
from vcr_attacks.i2v import START, EnsembleImageToVideo, ImageToVideo
from vcr_attacks.params.transfer import EnsI2vParams, I2vParams
from vcr_core.image_models import ImageModel
from vcr_core.threat import Linf

EXACT = Linf("16/255", quantize=False)


def pictures(seed: int = 0) -> ImageModel:
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2), nn.ReLU()
    )
    for parameter in network.parameters():
        fan = parameter[0].numel() if parameter.ndim > 1 else 10
        parameter.data = torch.randn(parameter.shape, generator=generator) / fan**0.5
    return ImageModel(network, ("1", "3"), mean=(0.5,) * 3, std=(0.25,) * 3)


def params(**changes: object) -> I2vParams:
    return I2vParams(**{"networks": ["net"], "depths": [2], "steps": 8, **changes})


def attacked(contest, tiny, clean, chosen=None, **options):
    images = options.pop("images", {"net": pictures()})
    attack = options.pop("attack", ImageToVideo)(chosen or params())
    return contest(
        attack, tiny, clean, [0] * len(clean), access="transfer", images=images,
        threat=options.pop("threat", EXACT), **options,
    )  # fmt: skip


def likeness(model: ImageModel, one: torch.Tensor, other: torch.Tensor, depth: int = 2):
    """The cosine of each frame's features, [B, T]."""
    a, b = (model.features(v.flatten(0, 1), depth).flatten(1) for v in (one, other))
    return cosine_similarity(a, b).view(one.shape[:2])


def test_frames_become_less_alike_with_every_step(contest, tiny, videos):
    clean = videos(2, 4, 3, 12, 10)
    before = torch.ones(2, 4)
    for steps in (1, 3, 9, 27):
        result = attacked(contest, tiny, clean, params(steps=steps)).result
        now = likeness(pictures(), result, clean)
        assert (now < before).all()
        before = now


def test_the_first_step_by_hand(contest, tiny, videos):
    clean, model = videos(1, 2, 3, 8, 8), pictures()
    result = attacked(contest, tiny, clean, params(steps=1, depths=[1])).result
    point = (clean + START).requires_grad_()
    (grad,) = torch.autograd.grad(likeness(model, point, clean, 1).sum(), point)
    # Adam's first step has the size of its rate, whatever the gradient, where it is not tiny.
    sure = grad.abs() > 1e-6
    expected = clean + START - 0.005 * grad.sign()
    torch.testing.assert_close(result[sure], expected[sure], rtol=0, atol=1e-4)


def test_the_change_is_free_where_the_point_is_clamped(contest, tiny, videos):
    """Adam's variable leaves the ball and comes back no sooner than its moments turn."""
    clean = videos(1, 2, 3, 8, 8)
    threat = Linf("2/255", quantize=False)
    result = attacked(contest, tiny, clean, params(steps=20), threat=threat).result
    at_edge = ((result - clean).abs() > 2 / 255 - 1e-6).float().mean()
    assert threat.within(result, clean).all()
    assert at_edge > 0.8


def test_frames_and_videos_do_not_see_each_other(contest, tiny, videos):
    clean = videos(2, 4, 3, 8, 10)
    order = [2, 0, 3, 1]
    together = attacked(contest, tiny, clean).result
    turned = attacked(contest, tiny, clean[:, order]).result
    torch.testing.assert_close(turned, together[:, order], rtol=0, atol=1e-6)
    for i in range(2):
        assert torch.equal(attacked(contest, tiny, clean[i : i + 1]).result[0], together[i])


def test_no_video_model_is_asked_and_networks_are_counted(contest, tiny, videos):
    outcome = attacked(contest, tiny, videos(2, 3, 3, 8, 8), params(steps=5))
    assert [m.forwards for m in outcome.victim.meters] == [0, 0]
    assert [(m.forwards, m.backwards) for m in outcome.images] == [(6, 5)] * 2


def test_networks_together_lower_the_sum(contest, tiny, videos):
    clean = videos(1, 3, 3, 10, 8)
    images = {"a": pictures(1), "b": pictures(2)}
    chosen = EnsI2vParams(networks=["a", "b"], depths=[2, 1], steps=10)
    outcome = attacked(contest, tiny, clean, chosen, images=images, attack=EnsembleImageToVideo)
    for name, depth in (("a", 2), ("b", 1)):
        assert (likeness(images[name], outcome.result, clean, depth) < 0.999).all()
    assert [(m.forwards, m.backwards) for m in outcome.images] == [(22, 20)]
    alone = attacked(contest, tiny, clean, params(networks=["a"], steps=10), images=images)
    assert not torch.equal(alone.result, outcome.result)


def test_frames_region_and_range_are_kept(contest, tiny, videos):
    clean = videos(2, 4, 3, 33, 50).round()
    threat = Linf("16/255", frames=(1, 3), region=(0.0, 0.0, 0.5, 1.0))
    result = attacked(contest, tiny, clean, params(steps=3), threat=threat).result
    assert threat.within(result, clean).all()
    assert torch.equal(result[:, [0, 2]], clean[:, [0, 2]])
    assert torch.equal(result[..., 16:, :], clean[..., 16:, :])
    assert not torch.equal(result, clean)
    assert torch.equal(attacked(contest, tiny, clean, threat=Linf(0)).result, clean)


def test_large_frames_are_seen_smaller(contest, tiny, videos):
    clean, seen = videos(1, 2, 3, 16, 24), []
    model = pictures()
    model.network.register_forward_pre_hook(lambda _m, inputs: seen.append(inputs[0].shape[-2:]))
    result = attacked(contest, tiny, clean, params(size=8), images={"net": model}).result
    assert set(seen) == {(8, 12)}
    assert ((result - clean).abs().flatten(1).amax(dim=1) > 4 / 255).all()


def test_each_network_needs_a_depth():
    with pytest.raises(msgspec.ValidationError, match="2 values for 1 networks"):
        msgspec.convert({"depths": [1, 2]}, I2vParams)
