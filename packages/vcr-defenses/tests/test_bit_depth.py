from __future__ import annotations

import pytest
import torch
from vcr_defenses.bit_depth import BitDepth
from vcr_defenses.params.spatial import BitDepthParams


@pytest.mark.parametrize("bits", [1, 3, 4, 8])
def test_levels_fixed_points_and_distance(bits, make_random):
    clips = torch.rand(1, 1, 2, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    clips[..., 0, 0], clips[..., 0, 1] = 0, 1
    defense = BitDepth(BitDepthParams(bits=bits))
    out = defense.apply(clips, make_random(1))
    assert len(out.unique()) <= 2**bits
    assert float((out - clips).abs().max()) <= 0.5 / (2**bits - 1) + 1e-6
    assert torch.equal(defense.apply(out, make_random(1)), out)
    assert out[..., 0, 0].unique().tolist() == [0]
    assert out[..., 0, 1].unique().tolist() == [1]


def test_eight_bits_keep_eight_bit_videos(make_clips, make_random):
    clips = make_clips()
    out = BitDepth(BitDepthParams(bits=8)).apply(clips, make_random())
    assert torch.equal(out, clips)


def test_values_are_rounded_not_cut_off(make_random):
    clips = torch.tensor([0.49, 0.51, 0.99]).view(1, 1, 1, 1, 1, 3)
    out = BitDepth(BitDepthParams(bits=1)).apply(clips, make_random(1))
    assert out.flatten().tolist() == [0, 1, 1]
