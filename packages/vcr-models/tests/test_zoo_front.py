"""What lies between source pixels and a network: sizes, crops, statistics, views and time."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from vcr_core.errors import ContractViolation
from vcr_core.protocols import LabelSpace
from vcr_core.specs import ClipSpec
from vcr_models.zoo.classifier import ZooClassifier
from vcr_models.zoo.front import Front, corners, resized

LABELS = LabelSpace("three", ("a", "b", "c"))


class Mean(nn.Module):
    """Channel means per frame, weighted by time: sensitive to order and to mixing."""

    def forward(self, clips):
        means = clips.mean(dim=(3, 4))
        weights = torch.arange(1.0, 1 + means.shape[2])
        return means @ weights


def front(**more):
    return Front(**{"resize": 32, "size": 32, "crops": 1, "mean": (0.5,) * 3, "std": (0.25,) * 3}
                 | more)  # fmt: skip


def model(crops=1, layout="NCTHW", network=None, resize=32, size=32):
    clip = ClipSpec(frames=4, crops=crops, size=size)
    at = front(resize=resize, size=size, crops=crops)
    return ZooClassifier(network or Mean(), LABELS, clip, at, layout, "net")


@pytest.mark.parametrize(
    ("shape", "to", "wanted"),
    [
        ((48, 64), 24, (24, 32)),
        ((64, 48), 24, (32, 24)),
        ((340, 256), 256, (340, 256)),
        ((45, 61), 30, (30, 41)),
        ((50, 90), (128, 171), (128, 171)),
        ((24, 24), 32, (32, 32)),
    ],
)
def test_sizes(shape, to, wanted):
    clips = torch.rand(1, 2, 3, *shape)
    out = resized(clips, to)
    assert out.shape[-2:] == wanted
    if shape == wanted:
        assert out is clips


def test_places_of_crops():
    assert corners(10, 20, 10, 1) == [(0, 5, False)]
    assert corners(10, 20, 10, 3) == [(0, 0, False), (0, 10, False), (0, 5, False)]
    assert corners(20, 10, 10, 3) == [(0, 0, False), (10, 0, False), (5, 0, False)]
    ten = corners(12, 20, 8, 10)
    assert len(ten) == 10
    assert [flip for *_, flip in ten] == [False, True] * 5
    assert {(top, left) for top, left, _ in ten} == {(0, 0), (0, 12), (4, 0), (4, 12), (2, 6)}
    with pytest.raises(ValueError, match="1, 3 or 10"):
        corners(10, 10, 10, 5)


def test_crops_are_windows_of_the_resized_frames_and_normalised():
    clips = torch.rand(2, 4, 3, 32, 56)
    views = front(crops=3).views(clips)
    assert views.shape == (2, 3, 4, 3, 32, 32)
    assert torch.allclose(views[:, 0], (clips[..., :32] - 0.5) / 0.25)
    assert torch.allclose(views[:, 1], (clips[..., 24:] - 0.5) / 0.25)
    assert torch.allclose(views[:, 2], (clips[..., 12:44] - 0.5) / 0.25)


def test_a_crop_is_a_view_of_its_own_and_time_stays_inside():
    clips = torch.rand(3, 4, 3, 32, 56)
    three = model(crops=3).logits(clips)
    assert three.shape == (3, 3, 3)
    alone = model(crops=1).logits(clips[..., 12:44])
    assert torch.allclose(three[:, 2], alone[:, 0], atol=1e-6)
    backwards = model(crops=3).logits(clips.flip(1))
    assert not torch.allclose(three, backwards)
    other = clips.clone()
    other[1] = 0
    assert torch.equal(model(crops=3).logits(other)[[0, 2]], three[[0, 2]])


def test_layouts_agree():
    class Swapped(Mean):
        def forward(self, clips):
            return super().forward(clips.transpose(1, 2))

    clips = torch.rand(2, 4, 3, 40, 40)
    assert torch.equal(
        model().logits(clips), model(layout="NTCHW", network=Swapped()).logits(clips)
    )


def test_gradients_reach_every_pixel_inside_the_crops():
    clips = torch.rand(1, 4, 3, 32, 56, requires_grad=True)
    model(crops=3).logits(clips).sum().backward()
    assert (clips.grad != 0).all()
    clips = torch.rand(1, 4, 3, 32, 56, requires_grad=True)
    model(crops=1).logits(clips).sum().backward()
    assert (clips.grad[..., 12:44] != 0).all()
    assert (clips.grad[..., :12] == 0).all()


def test_light_views_are_one_crop_and_share_the_network():
    full = model(crops=3)
    light = full.for_views("light")
    clips = torch.rand(1, 4, 3, 32, 56)
    assert light.logits(clips).shape == (1, 1, 3)
    assert light.network is full.network
    assert light.for_views("full").logits(clips).shape == (1, 3, 3)


def test_wrong_clips_and_networks():
    with pytest.raises(ValueError, match=r"\[N, 4, 3, H, W\]"):
        model().logits(torch.rand(1, 5, 3, 32, 32))

    class Two(nn.Module):
        def forward(self, clips):
            return torch.zeros(2 * len(clips), 3)

    with pytest.raises(ContractViolation, match=r"net returned shape \[2, 3\] for 1 views"):
        model(network=Two()).logits(torch.rand(1, 4, 3, 32, 32))
