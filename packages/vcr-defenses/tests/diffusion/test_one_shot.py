from __future__ import annotations

import pytest
import torch
from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.one_shot import OneShotDenoiser
from vcr_defenses.params.diffusion import FrameDenoiserParams


def denoiser(folder: str, **params) -> OneShotDenoiser:
    return OneShotDenoiser(FrameDenoiserParams(denoiser=folder, **params), "denoised-smoothing")


def clips(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.25])
def test_the_step_has_the_noise_of_the_input(described, oracle, sigma):
    one = denoiser(described())
    seen = oracle(one)
    one(clips(2, 1, 3, 3, 16, 16), sigma)
    (step,) = seen.steps
    ratios = [sched.noise_ratio(one.space.schedule.abar(step + d)) for d in (-1, 1)]
    assert ratios[0] <= 2 * sigma <= ratios[1]


def test_reduced_frames_are_less_noisy_so_the_step_is_earlier(described, oracle):
    one = denoiser(described())
    full, reduced = one.step(0.1, 32, 32), one.step(0.1, 64, 64)
    assert 0 < reduced < full


@pytest.mark.parametrize("shape", [(2, 2, 3, 3, 16, 20), (3, 4, 3, 16, 16)])
def test_a_perfect_denoiser_removes_all_noise_from_clips_and_from_videos(described, oracle, shape):
    one = denoiser(described())
    clean = clips(*shape[-3:])
    step = one.step(0.1, *shape[-2:])
    sigma = sched.noise_ratio(one.space.schedule.abar(step)) / 2
    oracle(one, clean=clean)
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    out = one(clean + sigma * noise, sigma)
    assert out.shape == shape
    torch.testing.assert_close(out, clean.expand(shape), rtol=0, atol=1e-4)


def test_without_noise_it_is_the_identity(described):
    one = denoiser(described())
    x = clips(2, 3, 3, 16, 16)
    assert torch.equal(one(x, 0.0), x)


def test_the_gradient_is_exact(described, oracle):
    one = denoiser(described(), chunk=1)
    seen = oracle(one)
    seen.predict = lambda x, t: (2 * x).sin()
    x = (clips(2, 3, 8, 8).double() * 0.4 + 0.3).requires_grad_()
    # Frames pass in single precision.
    assert torch.autograd.gradcheck(lambda v: one(v, 0.05), x, eps=1e-3, atol=2e-3, rtol=1e-2)


def test_more_noise_than_the_model_knows_is_refused(described):
    with pytest.raises(ValueError, match="more than the schedule's last step"):
        denoiser(described(steps=20)).step(0.5, 16, 16)
