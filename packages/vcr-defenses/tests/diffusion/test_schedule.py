from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from vcr_defenses.diffusion import schedule as sched


def tensor(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012},
        {"beta_schedule": "squaredcos_cap_v2", "num_train_timesteps": 50},
        {"trained_betas": [0.1, 0.2, 0.05], "num_train_timesteps": 3},
    ],
)
def test_levels_are_those_of_diffusers(config):
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.DDPMScheduler(**config).alphas_cumprod
    ours = torch.tensor(sched.from_config(config).levels)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_the_level_before_the_first_step_follows_the_configuration():
    assert sched.from_config({}).abar(-1) == 1
    first = sched.from_config({"set_alpha_to_one": False})
    assert first.abar(-1) == first.abar(0)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"beta_schedule": "sigmoid"}, "beta_schedule 'sigmoid' is not known"),
        ({"rescale_betas_zero_snr": True}, "no signal"),
        ({"trained_betas": [0.1, -0.2]}, "fall"),
    ],
)
def test_schedules_without_meaning_are_refused(config, message):
    with pytest.raises(ValueError, match=message):
        sched.from_config(config)


@pytest.mark.parametrize("step", [-2, 1000])
def test_a_step_outside_never_wraps_around(step):
    with pytest.raises(ValueError, match="outside"):
        sched.from_config({}).abar(step)


@pytest.mark.golden
def test_steps_of_the_published_settings():
    # FreqPure on ImageNet: 50 steps of noise taken away in 5.
    assert sched.spread_steps(49, 5) == [49, 39, 29, 19, 9]
    assert sched.leading_steps(1000, 50, 1)[:6] == [1, 21, 41, 61, 81, 101]


@pytest.mark.parametrize(("last", "count"), [(49, 5), (6, 7), (3, 99), (199, 13), (0, 1)])
def test_a_reverse_pass_starts_where_the_noise_was_added(last, count):
    steps = sched.spread_steps(last, count)
    assert steps[0] == last
    assert steps[-1] >= 0
    assert len(steps) == len(set(steps)) == min(count, last + 1)
    assert steps == sorted(steps, reverse=True)


@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.25, 0.5, 1.0])
def test_the_step_of_a_noise_level_is_within_one_grid_step(sigma):
    schedule = sched.from_config({})
    step = schedule.step_of_noise(2 * sigma)
    below, above = (schedule.abar(max(-1, step + d)) for d in (-1, 1))
    assert sched.noise_ratio(below) <= 2 * sigma <= sched.noise_ratio(above)


def test_no_noise_is_the_level_before_the_first_step():
    assert sched.from_config({}).step_of_noise(0) == -1


def test_more_noise_than_was_trained_is_refused():
    with pytest.raises(ValueError, match="more than the schedule's last step"):
        sched.from_config({"num_train_timesteps": 10}).step_of_noise(1)


def test_prediction_and_noise_are_inverse():
    x0, noise = tensor(2, 3), tensor(2, 3, seed=1)
    x = sched.add_noise(x0, noise, 0.37)
    torch.testing.assert_close(sched.predict_x0(x, noise, 0.37), x0)
    torch.testing.assert_close(sched.eps_of_x0(x, x0, 0.37), noise)
    velocity = math.sqrt(0.37) * noise - math.sqrt(0.63) * x0
    torch.testing.assert_close(sched.eps_of_velocity(x, velocity, 0.37), noise)


@pytest.mark.parametrize("count", [5, 7, 10, 30])
@pytest.mark.parametrize("eps", [0.0, 0.7])
def test_inversion_and_denoising_undo_each_other(count, eps):
    """A wrong step in the inversion shows for counts that do not divide 1000."""
    schedule = sched.from_config({})
    rising = [-1, *reversed(sched.spread_steps(300, count))]
    start = x = tensor(2, 3, 4, 4)
    noise = torch.full_like(x, eps)
    for now, after in pairwise(rising):
        x = sched.ddim_invert_step(x, noise, schedule.abar(now), schedule.abar(after))
    falling = rising[::-1]
    for now, after in pairwise(falling):
        abar = schedule.abar(now)
        x = sched.ddim_step(sched.predict_x0(x, noise, abar), noise, abar, schedule.abar(after))
    assert (x - start).norm() / start.norm() < 1e-10


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_ddim_steps_are_those_of_diffusers(eta):
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.DDIMScheduler(clip_sample=False)
    theirs.set_timesteps(50)
    x, eps, noise = tensor(1, 3, 4, 4), tensor(1, 3, 4, 4, seed=1), tensor(1, 3, 4, 4, seed=2)
    wanted = theirs.step(eps, 400, x, eta=eta, variance_noise=noise).prev_sample
    schedule = sched.from_config({})
    now, after = schedule.abar(400), schedule.abar(380)
    ours = sched.ddim_step(sched.predict_x0(x, eps, now), eps, now, after, eta=eta, noise=noise)
    torch.testing.assert_close(ours, wanted.double(), rtol=1e-4, atol=1e-5)


def test_ancestral_steps_are_ddim_with_eta_one_and_have_the_posterior_of_diffusers():
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.DDPMScheduler(clip_sample=False)
    x, eps = tensor(1, 3, 4, 4), tensor(1, 3, 4, 4, seed=1)
    schedule = sched.from_config({})
    now, after = schedule.abar(100), schedule.abar(99)
    x0 = sched.predict_x0(x, eps, now)
    noise = tensor(1, 3, 4, 4, seed=2)
    mean = sched.ddpm_step(x, x0, now, after)
    std = float(theirs._get_variance(100)) ** 0.5
    by_ddim = sched.ddim_step(x0, eps, now, after, eta=1, noise=noise)
    step = sched.ddpm_step(x, x0, now, after, noise)
    torch.testing.assert_close(step, mean + std * noise, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(by_ddim, mean + std * noise, rtol=1e-4, atol=1e-5)


def test_a_random_step_without_noise_is_refused():
    with pytest.raises(ValueError, match="needs noise"):
        sched.ddim_step(tensor(1), tensor(1), 0.5, 0.8, eta=1)
