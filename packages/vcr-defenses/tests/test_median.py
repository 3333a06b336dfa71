from __future__ import annotations

import pytest
import torch
from vcr_defenses.median import Median
from vcr_defenses.medians import median_of, median_over
from vcr_defenses.params.spatial import MedianParams


@pytest.mark.parametrize("count", [1, 3, 5, 7, 9, 15, 25, 81])
def test_selection_equals_the_library_also_with_ties(count):
    generator = torch.Generator().manual_seed(count)
    values = [torch.randint(0, 9, (500,), generator=generator).float() for _ in range(count)]
    assert torch.equal(median_of(values), torch.stack(values).median(dim=0).values)


def test_matches_scipy_with_mirrored_borders(make_clips, make_random):
    ndimage = pytest.importorskip("scipy.ndimage")
    clips = make_clips(1, 1, 2, 3, 17, 22)
    for size in (3, 5):
        out = Median(MedianParams(size=size)).apply(clips, make_random(1))
        # scipy calls "mirror" what repeats the border pixel once.
        expected = ndimage.median_filter(clips.numpy(), (1, 1, 1, 1, size, size), mode="mirror")
        assert torch.equal(out, torch.from_numpy(expected))


def test_impulses_vanish_constants_stay_and_values_are_input_values(make_clips, make_random):
    clips = torch.full((1, 1, 1, 3, 11, 12), 0.4)
    clips[..., 5, 6] = 1.0
    out = Median().apply(clips, make_random(1))
    assert torch.equal(out, torch.full_like(clips, 0.4))
    clips = make_clips()
    out = Median().apply(clips, make_random())
    assert set(out.unique().tolist()) <= set(clips.unique().tolist())


def test_commutes_with_monotone_maps(make_clips, make_random):
    clips = make_clips()
    squared = Median().apply(clips**2, make_random())
    assert torch.equal(squared, Median().apply(clips, make_random()) ** 2)


def test_gradient_goes_to_the_selected_value_once():
    source = torch.tensor([[0.2, 0.2, 0.9, 0.5, 0.1]], requires_grad=True)
    views = [(slice(None), slice(k, k + 3)) for k in range(3)]
    out = median_over(source, views, 0)
    assert out.flatten().tolist() == pytest.approx([0.2, 0.5, 0.5])
    (gradient,) = torch.autograd.grad(out.sum(), source)
    assert gradient.flatten().tolist() == [1, 0, 0, 2, 0]
