from __future__ import annotations

import pytest
import torch
from vcr_defenses.params.spatial import RotateParams
from vcr_defenses.rotate import Rotate, rotate


def disc(height: int, width: int) -> torch.Tensor:
    y = torch.arange(height).view(-1, 1) - (height - 1) / 2
    x = torch.arange(width).view(1, -1) - (width - 1) / 2
    return torch.sigmoid(2 * (15 - (y**2 + x**2).sqrt())).view(1, 1, height, width)


@pytest.mark.parametrize("size", [(48, 96), (96, 48), (33, 50)])
def test_angle_zero_is_the_identity(size, make_clips):
    planes = make_clips(2, 3, *size)
    torch.testing.assert_close(rotate(planes, torch.zeros(2)), planes, rtol=0, atol=1e-5)


@pytest.mark.golden
@pytest.mark.parametrize("size", [(48, 96), (96, 48), (64, 64)])
@pytest.mark.parametrize("degrees", [-30.0, 10.0, 45.0, 90.0, 137.0])
def test_a_centred_disc_is_unchanged_whatever_the_aspect(size, degrees):
    planes = disc(*size)
    turned = rotate(planes, torch.tensor([degrees]))
    assert float((turned - planes).abs().mean()) < 0.002


def test_a_right_angle_turns_a_square_frame_anticlockwise(make_clips):
    planes = make_clips(1, 3, 21, 21)
    turned = rotate(planes, torch.tensor([90.0]))
    torch.testing.assert_close(turned, planes.rot90(1, (-2, -1)), rtol=0, atol=1e-4)


def test_there_and_back_is_close_to_the_identity(smooth_clips):
    planes = smooth_clips[0, 0]
    turned = rotate(planes, torch.full((4,), 25.0))
    back = rotate(turned, torch.full((4,), -25.0))
    inside = disc(48, 64).expand_as(planes) > 0.999
    assert float((back - planes)[inside].abs().mean()) < 0.01


def test_a_constant_stays_constant_inside_and_corners_follow_the_padding(make_random):
    clips = torch.full((1, 1, 2, 3, 40, 60), 0.7)
    for pad in ("zeros", "reflect"):
        out = Rotate(RotateParams(pad=pad)).apply(clips, make_random(1))
        torch.testing.assert_close(out[..., 15:25, 25:35], clips[..., 15:25, 25:35])
        corner = float(out[..., 0, 0].max())
        assert (corner < 0.1) if pad == "zeros" else (corner == pytest.approx(0.7, abs=1e-5))


def test_no_angle_no_change_no_randomness(make_clips, make_random):
    defense, clips = Rotate(RotateParams(max_degrees=0)), make_clips()
    assert not defense.stochastic
    assert torch.equal(defense.apply(clips, make_random()), clips)


@pytest.mark.parametrize(("per", "same_clip", "same_frame"), [
    ("video", True, True), ("clip", False, True), ("frame", False, False),
])  # fmt: skip
def test_how_often_the_angle_is_drawn(per, same_clip, same_frame, make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 24, 30).expand(1, 2, 3, 3, 24, 30)
    out = Rotate(RotateParams(per=per)).apply(clips, make_random(1))
    assert torch.equal(out[0, 0, 0], out[0, 1, 0]) == same_clip
    assert torch.equal(out[0, 0, 0], out[0, 0, 1]) == same_frame


def test_videos_of_a_batch_turn_by_different_angles(make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 24, 30).expand(2, 1, 1, 3, 24, 30)
    out = Rotate().apply(clips, make_random(2))
    assert not torch.equal(out[0], out[1])
