from __future__ import annotations

import math

import pytest
import torch
from vcr_defenses.diffusion.spectrum import exchange, low_pass, wrap_angle

SIZES = [(16, 16), (15, 17), (12, 21)]
every_size = pytest.mark.parametrize("size", SIZES)


def images(size: tuple[int, int], seed: int, count: int = 2) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, 3, *size, generator=generator, dtype=torch.float64)


def mixed(x0, reference, **changes):
    given = {"amplitude_radius": 4, "phase_radius": 4, "phase": "project", "delta": 0.3} | changes
    return exchange(x0, reference, **given)


@every_size
@pytest.mark.parametrize("radius", [0, 1, 3.5, 100])
def test_the_mask_is_symmetric_so_the_image_stays_real(size, radius):
    mask = low_pass(*size, radius)
    mirrored = mask.flip(0, 1).roll((1, 1), (0, 1))
    # The highest frequency of an even side stands for both signs.
    assert torch.equal(mask, mirrored)
    spectrum = torch.fft.fft2(images(size, 0)) * mask
    assert torch.fft.ifft2(spectrum).imag.abs().max() < 1e-12


def test_the_mask_of_an_odd_size_is_centred_on_the_mean():
    """The published grid is off by one against the shifted spectrum of an odd size."""
    mask = torch.fft.fftshift(low_pass(7, 7, 1))
    assert mask.nonzero().tolist() == [[2, 3], [3, 2], [3, 3], [3, 4], [4, 3]]


@every_size
def test_all_frequencies_replaced_give_the_reference(size):
    x0, reference = images(size, 0), images(size, 1)
    out = mixed(x0, reference, amplitude_radius=99, phase_radius=99, phase="replace")
    torch.testing.assert_close(out, reference)


@every_size
def test_radius_zero_takes_the_mean_only(size):
    x0, reference = images(size, 0), images(size, 1)
    out = mixed(x0, reference, amplitude_radius=0, phase_radius=0)
    torch.testing.assert_close(out.mean((2, 3)), reference.mean((2, 3)))
    torch.testing.assert_close(
        out - out.mean((2, 3), keepdim=True), x0 - x0.mean((2, 3), keepdim=True)
    )


@every_size
def test_delta_zero_is_replace_and_delta_pi_leaves_phases_alone(size):
    x0, reference = images(size, 0), images(size, 1)
    torch.testing.assert_close(
        mixed(x0, reference, delta=0.0), mixed(x0, reference, phase="replace")
    )
    ours, theirs = torch.fft.fft2(x0), torch.fft.fft2(reference)
    amplitude = torch.where(low_pass(*size, 4), theirs.abs(), ours.abs())
    kept = torch.fft.ifft2(torch.polar(amplitude, ours.angle())).real
    torch.testing.assert_close(mixed(x0, reference, delta=math.pi), kept)


@every_size
@pytest.mark.parametrize("delta", [0.05, 0.3, 1.0])
def test_phases_end_within_delta_of_the_reference(size, delta):
    x0, reference = images(size, 0), images(size, 1)
    out = torch.fft.fft2(mixed(x0, reference, delta=delta))
    away = wrap_angle(out.angle() - torch.fft.fft2(reference).angle()).abs()
    low = low_pass(*size, 4)
    assert (away[..., low] <= delta + 1e-5).all()
    torch.testing.assert_close(out.abs()[..., low], torch.fft.fft2(reference).abs()[..., low])
    kept = torch.fft.fft2(x0)[..., ~low]
    torch.testing.assert_close(out[..., ~low], kept)


def test_projection_is_not_replacement_as_in_the_published_code():
    """There the phase is overwritten before it is clipped, so delta does nothing."""
    x0, reference = images((16, 16), 0), images((16, 16), 1)
    near, far = (mixed(x0, reference, delta=d) for d in (0.1, 0.6))
    assert (near - far).abs().max() > 1e-2
    assert (near - mixed(x0, reference, phase="replace")).abs().max() > 1e-3


def test_phases_on_both_sides_of_the_cut_are_neighbours():
    """A clip without wrapping would throw the phase to the far side."""
    x = torch.arange(16, dtype=torch.float64)
    wave = [(2 + torch.cos(2 * math.pi * x / 16 + p)).expand(1, 1, 16, 16) for p in (3.1, -3.1)]
    out = mixed(*wave, delta=0.3)
    torch.testing.assert_close(out, wave[0])


@every_size
@pytest.mark.parametrize("phase", ["project", "replace"])
def test_an_image_is_its_own_reference(size, phase):
    x = images(size, 3)
    torch.testing.assert_close(mixed(x, x, phase=phase), x)
