"""Projection, verification and rounding of every norm."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from vcr_core.errors import UsageError
from vcr_core.threat import L0, L1, L2, Linf, ThreatModel, Unbounded, as_fraction, frame_positions

THREATS = [
    Linf("8/255"),
    Linf("0.5/255"),
    Linf("4/255", frames=(1,), region=(0.0, 0.0, 0.5, 1.0)),
    ThreatModel(per_frame_eps=(0.0, 1 / 255, 9 / 255)),
    L2(2.0),
    L1(3.0),
    L0(0.1),
    Unbounded(),
]


def videos(seed: int = 0, batch: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    clean = torch.randint(0, 256, (batch, 3, 3, 5, 7), generator=generator) / 255
    return clean, clean + torch.randn(clean.shape, generator=generator) * 0.3


@pytest.mark.parametrize("threat", THREATS, ids=lambda t: t.norm)
def test_projection_and_storage_stay_inside(threat: ThreatModel) -> None:
    clean, far = videos()
    projected = threat.project(far, clean)
    assert bool(threat.within(projected, clean).all())
    stored = threat.store(projected, clean)
    assert bool(threat.within(stored, clean).all())
    assert torch.equal((stored * 255).round() / 255, stored)
    assert 0 <= float(stored.min()) <= float(stored.max()) <= 1


@pytest.mark.parametrize("threat", THREATS, ids=lambda t: t.norm)
def test_projection_is_idempotent_and_keeps_what_is_inside(threat: ThreatModel) -> None:
    clean, far = videos()
    once = threat.project(far, clean)
    assert torch.allclose(threat.project(once, clean), once, atol=1e-6)
    assert torch.equal(threat.project(clean, clean), clean)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 64))
def test_whole_levels_stay_whole(seed: int, level: int) -> None:
    clean, far = videos(seed, batch=1)
    threat = Linf(f"{level}/255")
    stored = threat.store(threat.project(far, clean), clean)
    moved = ((stored - clean) * 255).abs().round()
    assert int(moved.max()) <= level
    assert bool(torch.isin((stored * 255).round(), torch.arange(256.0)).all())


def test_half_a_level_cannot_be_stored_and_gives_the_clean_video() -> None:
    clean, far = videos()
    threat = Linf("0.5/255")
    assert torch.equal(threat.store(threat.project(far, clean), clean), clean)
    free = Linf("0.5/255", quantize=False)
    assert float((free.store(free.project(far, clean), clean) - clean).abs().max()) > 0.001


def test_off_the_grid_rounding_stays_in_the_ball() -> None:
    clean = torch.full((1, 1, 3, 2, 2), 100.4 / 255)
    threat = Linf("1/255")
    stored = threat.store(clean + 1 / 255, clean)
    assert torch.allclose(stored * 255, torch.tensor(101.0))
    narrow = Linf("0.2/255")
    assert torch.allclose(narrow.store(clean, clean) * 255, torch.tensor(100.0))


def test_eps_zero_is_the_clean_video_bit_for_bit() -> None:
    clean, far = videos()
    for threat in (Linf(0), L2(0), L1(0), L0(0)):
        assert torch.equal(threat.project(far, clean), clean)


def test_masks_leave_the_rest_untouched() -> None:
    clean, far = videos()
    moved = Linf("8/255", frames=(2,), region=(0.0, 0.5, 1.0, 1.0)).project(far, clean) != clean
    assert not bool(moved[:, :2].any())
    assert not bool(moved[..., :4].any())
    assert bool(moved[:, 2, :, :, 4:].all())


def test_violation_says_how_far_outside() -> None:
    clean = torch.full((2, 1, 3, 2, 2), 0.5)
    adv = clean.clone()
    adv[1] += 0.1
    assert Linf(0.04).violation(adv, clean).tolist() == pytest.approx([0, 0.06], abs=1e-6)
    assert Linf(0.04).within(adv, clean).tolist() == [True, False]
    assert bool(Linf(0.04).within(clean + 0.04 + 1e-8, clean).all())
    assert L2(0.1).violation(adv, clean)[1] == pytest.approx(0.1 * 12**0.5 - 0.1, abs=1e-6)
    assert L0(0.25).violation(adv, clean)[1] == pytest.approx(0.75)
    assert Unbounded().violation(clean + 0.7, clean)[0] == pytest.approx(0.2, abs=1e-6)


def test_one_radius_a_video() -> None:
    clean, far = videos()
    threat = Linf(0.1).with_eps(torch.tensor([0.0, 0.05]))
    moved = (threat.project(far, clean) - clean).abs().flatten(1).amax(1)
    assert moved.tolist() == pytest.approx([0, 0.05], abs=1e-6)


def test_l1_projection_is_the_nearest_point() -> None:
    clean = torch.full((1, 1, 1, 1, 3), 0.5)
    adv = clean + torch.tensor([0.3, -0.2, 0.0])
    nearest = L1(0.3).project(adv, clean) - clean
    assert nearest.flatten().tolist() == pytest.approx([0.2, -0.1, 0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "value"), [("8/255", 8 / 255), ("0.5/255", 0.5 / 255), (0.1, 0.1), ("1 / 4", 0.25)]
)
def test_fractions(text: str | float, value: float) -> None:
    assert as_fraction(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["eight", "1/0", "1/x", ""])
def test_what_is_no_fraction_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="neither a number nor a fraction"):
        as_fraction(text)


def test_eps_above_the_range_suggests_the_unit() -> None:
    with pytest.raises(UsageError, match="did you mean '8/255'"):
        Linf(8)
    with pytest.raises(UsageError, match="cannot be negative"):
        Linf("-1/255")


def test_frames_by_number_are_evenly_spaced() -> None:
    assert frame_positions(2, 8) == (2, 6)
    assert frame_positions([0, 3], 8) == (0, 3)
    assert frame_positions(None, 8) is None
    with pytest.raises(UsageError, match="has 8 frames"):
        frame_positions(9, 8)
    clean, far = videos()
    with pytest.raises(UsageError, match="frames 0 to 2"):
        Linf(frames=(3,)).project(far, clean)


def test_a_query_outside_is_answered_on_the_nearest_video_inside() -> None:
    clean, far = videos()
    for threat in (Linf("4/255"), Linf("4.5/255"), Linf("4/255", frames=(1,))):
        assert torch.equal(
            threat.store(far, clean), threat.store(threat.project(far, clean), clean)
        )


def test_an_empty_batch_is_stored_as_one() -> None:
    clean, far = videos()
    for threat in THREATS:
        assert threat.store(far[:0], clean[:0]).shape[0] == 0


def test_a_border_between_two_levels_is_kept() -> None:
    clean, far = videos()
    threat = Linf("2.5/255")
    stored = threat.store(threat.project(far, clean), clean)
    assert float(((stored - clean) * 255).abs().max()) == pytest.approx(2, abs=1e-3)
