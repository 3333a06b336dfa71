from __future__ import annotations

import pytest
import torch
from torch.nn.functional import interpolate
from vcr_defenses.crop_resize import CropResize, at_most
from vcr_defenses.params.spatial import CropResizeParams


def test_nothing_to_cut_is_the_identity(make_clips, make_random):
    clips = make_clips()
    for params in (CropResizeParams(crop_px=(0, 0)), CropResizeParams(crop_frac=1.0)):
        defense = CropResize(params)
        assert not defense.stochastic
        assert torch.equal(defense.apply(clips, make_random()), clips)


def test_values_are_convex_combinations_of_the_frame(make_clips, make_random):
    clips = make_clips(2, 1, 3, 3, 40, 60) * 0.5 + 0.2
    out = CropResize().apply(clips, make_random())
    assert out.min() >= clips.min() - 1e-6
    assert out.max() <= clips.max() + 1e-6
    constant = torch.full_like(clips, 0.3)
    torch.testing.assert_close(CropResize().apply(constant, make_random()), constant)


def test_the_result_is_one_window_of_the_expected_size(make_clips, make_random):
    """Among all places of a window of known size exactly the drawn one explains the result."""
    clips = make_clips(1, 1, 1, 3, 40, 50)
    out = CropResize(CropResizeParams(crop_px=(6, 6))).apply(clips, make_random(1))[0, 0]
    hits = [
        (top, left)
        for top in range(7)
        for left in range(7)
        if torch.allclose(
            interpolate(clips[0, 0, :, :, top : top + 34, left : left + 44], (40, 50),
                        mode="bilinear"),
            out, atol=1e-6,
        )
    ]  # fmt: skip
    assert len(hits) == 1


def test_every_cut_and_place_is_drawn():
    drawn = at_most(torch.linspace(0, 1 - 1e-9, 2100, dtype=torch.float64), 20)
    assert drawn.bincount().tolist() == [100] * 21


def test_small_frames_lose_at_most_a_quarter(make_random):
    ramp = torch.linspace(0, 1, 16).view(1, 1, 1, 1, 1, 16).expand(40, 1, 1, 3, 12, 16)
    out = CropResize().apply(ramp.contiguous(), make_random(40))
    spans = out[..., 0, :].amax(dim=(1, 2, 3, 4)) - out[..., 0, :].amin(dim=(1, 2, 3, 4))
    assert spans.min() >= 12 / 15 - 1e-5


def test_a_fraction_of_the_frame_as_guo_et_al_take_it(make_random):
    ramp = torch.linspace(0, 1, 224).view(1, 1, 1, 1, 1, 224).expand(20, 1, 1, 3, 8, 224)
    out = CropResize(CropResizeParams(crop_frac=90 / 224)).apply(ramp.contiguous(), make_random(20))
    spans = (out[..., 0, -1] - out[..., 0, 0])[:, 0, 0, 0]
    torch.testing.assert_close(spans, torch.full((20,), 89 / 223), rtol=0, atol=1e-4)
    assert len(set(out[:, 0, 0, 0, 0, 0].tolist())) > 10


@pytest.mark.parametrize(("per", "same_clip", "same_frame"), [
    ("video", True, True), ("clip", False, True), ("frame", False, False),
])  # fmt: skip
def test_how_often_the_window_is_drawn(per, same_clip, same_frame, make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 48, 48).expand(1, 2, 3, 3, 48, 48)
    out = CropResize(CropResizeParams(per=per)).apply(clips, make_random(1, seed=3))
    assert torch.equal(out[0, 0, 0], out[0, 1, 0]) == same_clip
    assert torch.equal(out[0, 0, 0], out[0, 0, 1]) == same_frame
