from __future__ import annotations

import pytest
import torch
from vcr_core.errors import ConfigError
from vcr_core.randomness import VideoRandom
from vcr_defenses.diffusion.diffpure import DiffPure
from vcr_defenses.diffusion.freqpure import FreqPure
from vcr_defenses.params.diffusion import DiffPureParams, FreqPureParams


def purifier(folder: str, kind=FreqPure, **params):
    struct = FreqPureParams if kind is FreqPure else DiffPureParams
    return kind(struct(denoiser=folder, **params))


def clips(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape or (2, 1, 2, 3, 16, 16), generator=generator) * 0.8 + 0.1


BOTH = pytest.mark.parametrize("kind", [FreqPure, DiffPure])


@BOTH
def test_without_noise_nothing_changes(described, kind):
    x = clips()
    defense = purifier(described(), kind, noise_steps=0)
    out = defense.apply(x, VideoRandom([1, 2]))
    assert torch.equal(out, x)
    assert out.data_ptr() != x.data_ptr()
    assert not defense.stochastic


@BOTH
def test_a_perfect_denoiser_brings_the_clean_video_back(described, oracle, kind):
    x = clips(1, 1, 2, 3, 16, 16)
    defense = purifier(described(), kind, noise_steps=40, denoise_steps=4)
    oracle(defense, clean=x[0, 0])
    torch.testing.assert_close(defense.apply(x, VideoRandom([1])), x, rtol=0, atol=1e-3)


@BOTH
def test_the_reverse_pass_starts_at_the_level_of_the_noise(described, oracle, kind):
    """The published port adds noise up to step 100 and starts at 90."""
    more = {"ref": "input"} if kind is FreqPure else {}
    defense = purifier(described(), kind, noise_steps=100, denoise_steps=10, **more)
    seen = oracle(defense)
    defense.apply(clips(1, 1, 1, 3, 16, 16), VideoRandom([1]))
    assert seen.steps == [99, 89, 79, 69, 59, 49, 39, 29, 19, 9]


@BOTH
def test_zero_steps_of_denoising_stand_for_every_one(described, oracle, kind):
    more = {"ref": "input"} if kind is FreqPure else {}
    defense = purifier(described(), kind, noise_steps=12, denoise_steps=0, **more)
    seen = oracle(defense)
    defense.apply(clips(1, 1, 1, 3, 16, 16), VideoRandom([1]))
    assert seen.steps == list(range(11, -1, -1))


def test_a_denoised_reference_is_drawn_at_every_step(described, oracle):
    defense = purifier(described(), noise_steps=50, denoise_steps=5, ref_noise_steps=20)
    seen = oracle(defense)
    defense.apply(clips(1, 1, 1, 3, 16, 16), VideoRandom([1]))
    assert seen.steps == [49, 19, 39, 19, 29, 19, 19, 19, 9, 19]


def test_delta_counts_when_phases_are_projected_and_only_then(described, oracle):
    """In the published code the phase is replaced first, so its clip to ± delta does nothing."""
    x, found = clips(), {}
    for phase in ("project", "replace"):
        for delta in (0.1, 0.6):
            defense = purifier(
                described(name=f"{phase}{delta}"), phase=phase, delta=delta, ref="input"
            )
            oracle(defense, clean=clips(1, 3, 16, 16, seed=9)[0])
            found[phase, delta] = defense.apply(x, VideoRandom([1, 2]))
    assert torch.equal(found["replace", 0.1], found["replace", 0.6])
    assert (found["project", 0.1] - found["project", 0.6]).abs().mean() > 1e-3
    assert (found["project", 0.1] - found["replace", 0.1]).abs().mean() > 1e-3


def test_low_frequencies_of_the_input_survive_a_denoiser_that_invents(described, oracle):
    x = clips(1, 1, 2, 3, 16, 16)
    held = purifier(described(name="a"), ref="input", phase="replace", amplitude_radius=3,
                    phase_radius=3)  # fmt: skip
    free = purifier(described(name="b"), ref="input", amplitude_radius=0, phase_radius=0)
    means = []
    for defense in (held, free):
        oracle(defense, clean=clips(1, 3, 16, 16, seed=9)[0])
        out = defense.apply(x, VideoRandom([1]))
        pooled = torch.nn.functional.avg_pool2d((out - x)[0, 0], 8)
        means.append(float(pooled.abs().mean()))
    assert means[0] < 0.6 * means[1]


@BOTH
def test_same_seed_same_video_whatever_is_beside_it_and_however_frames_are_cut(
    described, oracle, kind
):
    x = clips(3, 2, 3, 3, 16, 20)
    results = []
    for chunk in (16, 2):
        defense = purifier(described(name=f"{kind}{chunk}"[-20:-2]), kind, chunk=chunk)
        seen = oracle(defense, eps=0.3)
        together = defense.apply(x, VideoRandom([4, 5, 6]))
        assert max(seen.batches) <= chunk
        alone = defense.apply(x[1:2], VideoRandom([5]))
        assert torch.equal(together[1:2], alone)
        results.append(together)
    assert torch.equal(*results)
    assert not torch.equal(results[0], defense.apply(x, VideoRandom([7, 8, 9])))


def test_shared_noise_is_the_same_for_all_frames(described, oracle):
    defense = purifier(described(), DiffPure, noise="shared", noise_steps=50, denoise_steps=5)
    oracle(defense)
    x = clips(1, 1, 1, 3, 16, 16).expand(1, 1, 4, 3, 16, 16)
    out = defense.apply(x, VideoRandom([1]))[0, 0]
    assert torch.equal(out[0], out[3])
    independent = purifier(described(name="b"), DiffPure, noise_steps=50, denoise_steps=5)
    oracle(independent)
    out = independent.apply(x, VideoRandom([1]))[0, 0]
    assert not torch.equal(out[0], out[3])


@BOTH
def test_more_noise_moves_the_video_further(described, oracle, kind):
    """Against a denoiser that knows nothing and predicts no noise."""
    x, distances = clips(), []
    for steps in (5, 20, 80, 180):
        defense = purifier(described(name=str(steps)), kind, noise_steps=steps, denoise_steps=3)
        oracle(defense)
        distances.append(float((defense.apply(x, VideoRandom([1, 2])) - x).square().mean()))
    assert distances == sorted(distances)
    if kind is DiffPure:
        assert distances[0] < 0.1 * distances[-1]


@BOTH
@pytest.mark.parametrize("sampler", ["ddpm", "ddim"])
def test_results_stay_in_range_for_both_samplers_and_several_rounds(
    described, oracle, kind, sampler
):
    defense = purifier(
        described(), kind, sampler=sampler, rounds=2, noise_steps=60, denoise_steps=3
    )
    seen = oracle(defense, eps=-2.0)
    out = defense.apply(clips(), VideoRandom([1, 2]))
    assert out.min() >= 0
    assert out.max() <= 1
    assert len(seen.steps) == 2 * 2 * 3 * (2 if kind is FreqPure else 1)


@BOTH
def test_a_vote_asks_one_draw_each_and_has_their_gradient(described, oracle, kind):
    defense = purifier(described(), kind, votes=3, noise_steps=30, denoise_steps=2)
    oracle(defense)
    shown = []

    def predict(x: torch.Tensor) -> torch.Tensor:
        shown.append(x.detach().clone())
        score = x.mean((1, 2, 3, 4, 5))
        return torch.stack([score, 1 - score], dim=1).log_softmax(1)

    x = clips().requires_grad_()
    function = defense.wrap_surrogate(predict, VideoRandom([1, 2]))
    out = function(x)
    assert len(shown) == 3
    assert not torch.equal(shown[0], shown[1])
    assert sum(function.details()[0]["votes"].values()) == 3
    (gradient,) = torch.autograd.grad(out[:, 0].sum(), x)
    assert (gradient != 0).all()
    with torch.no_grad():
        plain = defense.wrap(predict, VideoRandom([1, 2]))(x)
    assert torch.equal(plain, out)


@BOTH
def test_more_noise_than_the_model_knows_is_refused_by_name(described, kind):
    with pytest.raises(ConfigError, match=r"noise_steps = 300, but .* 200 steps"):
        purifier(described(), kind, noise_steps=300)


def test_a_reference_noisier_than_the_model_knows_is_refused(described):
    with pytest.raises(ConfigError, match="ref_noise_steps = 201"):
        purifier(described(), noise_steps=10, ref_noise_steps=201)
