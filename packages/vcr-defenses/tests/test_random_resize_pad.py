from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn.functional import interpolate
from vcr_defenses.params.spatial import RandomResizePadParams
from vcr_defenses.random_resize_pad import Placement, RandomResizePad, place


@pytest.mark.golden
def test_published_sizes_and_those_of_other_frames():
    defense = RandomResizePad()
    draws = torch.cartesian_prod(
        torch.linspace(0, 1 - 1e-6, 400), torch.tensor([0.5]), torch.tensor([0.5, 0.9])
    )
    draws = torch.cat([draws, torch.zeros(len(draws), 1)], dim=1)
    for side, sizes, canvas in ((299, (310, 330), 331), (224, (232, 247), 248)):
        placements = [defense.placement(draw, side, side) for draw in draws]
        drawn = {p.size for p in placements}
        assert drawn == {(r, r) for r in range(sizes[0], sizes[1] + 1)}
        assert {p.canvas for p in placements} == {(canvas, canvas)}


@pytest.mark.parametrize("size", [(224, 224), (33, 50), (1, 1), (2, 3), (8, 400)])
def test_offset_size_and_rest_fill_the_canvas(size):
    generator = torch.Generator().manual_seed(0)
    for draw in torch.rand(200, 4, generator=generator):
        p = RandomResizePad().placement(draw, *size)
        for axis in (0, 1):
            assert 1 <= p.size[axis] < p.canvas[axis]
            assert 0 <= p.offset[axis] <= p.canvas[axis] - p.size[axis]


def test_number_of_patterns_of_one_size():
    """Xie et al., section 3.2: ``(P - r + 1)²`` places of a frame of size ``r``."""
    corners = torch.linspace(0, 1 - 1e-6, 60)
    draws = (torch.tensor([0.99, a, b, 0.0]) for a, b in itertools.product(corners, corners))
    placements = [RandomResizePad().placement(draw, 224, 224) for draw in draws]
    (rows, _), (canvas, _) = placements[0].size, placements[0].canvas
    assert len({p.offset for p in placements}) == (canvas - rows + 1) ** 2


def test_the_border_is_black_and_the_inside_a_plain_resize(make_clips):
    planes = make_clips(1, 3, 30, 40) * 0.8 + 0.1
    where = Placement(size=(32, 42), canvas=(36, 45), offset=(3, 1), mirrored=False)
    placed = place(planes, where, "bilinear")
    assert placed.shape == (1, 3, 36, 45)
    inside = placed[..., 3:35, 1:43]
    assert torch.equal(inside, interpolate(planes, (32, 42), mode="bilinear"))
    border = placed.clone()
    border[..., 3:35, 1:43] = 0
    assert torch.count_nonzero(border) == 0


def test_the_larger_frame_is_passed_on_where_asked(make_clips, make_random):
    clips = make_clips(2, 1, 2, 3, 30, 30)
    seen = []
    defense = RandomResizePad(RandomResizePadParams(back=False))
    defense.wrap(lambda c: seen.append(c) or c.mean((2, 3, 4, 5)), make_random())(clips)
    assert seen[0].shape == (2, 1, 2, 3, 33, 33)
    assert defense.surrogate(clips, make_random()).shape == seen[0].shape


def test_contest_entry_samples_pixels_and_flips(make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 20, 20)
    params = RandomResizePadParams(interpolation="nearest", back=False, flip=1.0)
    out = RandomResizePad(params).apply(clips, make_random(1))
    assert set(out.unique().tolist()) <= set(clips.unique().tolist()) | {0.0}
    unflipped = RandomResizePad(RandomResizePadParams(interpolation="nearest", back=False)).apply(
        clips.flip(-1), make_random(1)
    )
    assert torch.equal(out, unflipped)


def test_all_frames_share_a_draw(make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 30, 30).expand(1, 2, 3, 3, 30, 30)
    out = RandomResizePad().apply(clips, make_random(1))
    torch.testing.assert_close(out, out[:, :1, :1].expand_as(out))
