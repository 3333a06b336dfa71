from __future__ import annotations

import msgspec
import pytest
import torch
from vcr_core.adaptive import DefenseLink, View
from vcr_core.protocols import ClipSpec, DetailedFn
from vcr_core.randomness import VideoRandom
from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.flow import warp, warp_error
from vcr_defenses.diffusion.guidance import Guidance, Level
from vcr_defenses.diffusion.latent import RearrangedPixels, VideoModel
from vcr_defenses.diffusion.videopure import VideoPure
from vcr_defenses.params.diffusion import VideopureParams

SCHEDULE = sched.from_betas(sched.scaled_linear_betas(0.00085, 0.012, 1000), final_is_one=False)


def oracle(noise=None, ratio=2):
    """A model that predicts a fixed noise, by default one constant that frames share."""

    def predict(latents, t):
        if noise is None:
            return torch.full_like(latents, 0.3)
        return noise(latents, t)

    return VideoModel(RearrangedPixels(ratio), predict, SCHEDULE, offset=1)


def fixed_noise(latents, t):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(latents.shape, generator=generator)


def moving_noise(latents, t):
    """Depends on the latents of every frame by themselves, as a network's output does."""
    return torch.tanh(latents * 3 + t / 100)


def videopure(noise=None, **params) -> VideoPure:
    return VideoPure(VideopureParams(**params), oracle(noise))


def test_the_inversion_visits_the_published_steps():
    assert videopure().steps == [1, 21, 41, 61, 81, 101]


def test_no_steps_leave_one_candidate_the_round_trip(make_clips, make_random):
    clips = make_clips()
    for mode in ("videopure", "ddim-inversion", "ddim", "ddpm"):
        made = videopure(mode=mode, invert_steps=0).candidates(clips, make_random())
        assert made.shape == (1, *clips.shape)
        torch.testing.assert_close(made[0], clips, rtol=0, atol=1e-6)


@pytest.mark.parametrize("steps", [5, 7, 10, 30, 50])
@pytest.mark.parametrize("noise", [None, fixed_noise, lambda z, t: torch.zeros_like(z)])
def test_inversion_and_denoising_cancel_for_a_constant_noise(steps, noise, make_clips):
    # Also with a count that does not divide the 1000 training steps.
    defense = videopure(noise, num_inference_steps=steps, invert_steps=5)
    assert defense.steps[-1] < 1000
    z = defense.model.encode(make_clips()[0, 0])
    back = defense.denoise(defense.invert(z, None))
    torch.testing.assert_close(back, z, rtol=0, atol=1e-4)


def test_inverted_frames_differ_from_their_clean_part_by_the_same_noise(make_clips):
    defense = videopure(fixed_noise, broadcast_frame=1)
    z = defense.model.encode(make_clips()[0, 0])
    level = SCHEDULE.abar(defense.steps[-1])
    noise = (defense.invert(z, 1) - (level / SCHEDULE.final) ** 0.5 * z) / (1 - level) ** 0.5
    torch.testing.assert_close(noise, noise[:, :, :1].expand_as(noise), rtol=0, atol=1e-5)
    own = (defense.invert(z, None) - (level / SCHEDULE.final) ** 0.5 * z) / (1 - level) ** 0.5
    assert (own - own[:, :, :1]).abs().max() > 1


@pytest.mark.parametrize("count", [1, 3, 6])
def test_one_candidate_a_step_and_the_end(count, make_clips, make_random):
    clips = make_clips(1, 2, 3, 3, 10, 14)
    made = videopure(moving_noise, invert_steps=count).candidates(clips, make_random(1))
    assert made.shape == (count + 1, *clips.shape)
    assert not torch.equal(made[0], made[-1])
    for mode in ("ddim-inversion", "ddim", "ddpm"):
        one = videopure(moving_noise, mode=mode, invert_steps=count)
        assert len(one.candidates(clips, make_random(1))) == 1


def test_two_calls_are_equal_bit_by_bit_and_draw_nothing(make_clips, make_random):
    clips, defense = make_clips(), videopure(moving_noise)
    random = make_random()
    first = defense.candidates(clips, random)
    assert torch.equal(first, defense.candidates(clips, make_random(seed=99)))
    assert torch.equal(random.uniform(3), make_random().uniform(3))


@pytest.mark.parametrize("mode", ["ddim", "ddpm"])
def test_modes_that_add_noise_are_random_by_video(mode, make_clips, make_random):
    clips = make_clips(1, 1, 2, 3, 8, 8).expand(2, 1, 2, 3, 8, 8)
    defense = videopure(moving_noise, mode=mode, invert_steps=2)
    assert defense.stochastic
    out = defense.apply(clips, make_random())
    assert torch.equal(out, defense.apply(clips, make_random()))
    assert not torch.equal(out, defense.apply(clips, make_random(seed=8)))
    assert not torch.equal(out[0], out[1])
    alone = defense.apply(clips[1:], make_random().select([1]))
    torch.testing.assert_close(alone[0], out[1])
    assert not videopure(mode=mode, invert_steps=0).stochastic


def test_without_guidance_candidates_are_the_predicted_clean_videos(make_clips, make_random):
    clips = make_clips(1, 1, 3, 3, 8, 12)
    defense = videopure(moving_noise, scale=0)
    made = defense.candidates(clips, make_random(1))
    model = defense.model
    z = defense.invert(model.encode(clips[0, 0]), 0)
    steps = [*defense.steps[::-1], -1]
    for i, step in enumerate(defense.steps[::-1]):
        eps, abar = model.predict_eps(z, step), SCHEDULE.abar(step)
        x0 = sched.predict_x0(z, eps, abar)
        torch.testing.assert_close(made[i, 0, 0], model.decode(x0, (8, 12)), rtol=0, atol=0)
        z = sched.ddim_step(x0, eps, abar, SCHEDULE.abar(steps[i + 1]))
    torch.testing.assert_close(made[-1, 0, 0], model.decode(z, (8, 12)), rtol=0, atol=0)


def test_guidance_leaves_the_trajectory_alone(make_clips, make_random):
    clips = make_clips(1, 1, 3, 3, 8, 12)
    plain, guided = (
        videopure(moving_noise, scale=scale, w_sp=0).candidates(clips, make_random(1))
        for scale in (0.0, 4.0)
    )
    moved = (guided - plain).abs().flatten(1).max(dim=1).values
    # At every step by about as much: the moves do not add up along the trajectory.
    assert moved.max() < 3 * moved[moved > 0].min()


@pytest.mark.parametrize("shape", [(1, 1, 17, 3, 16, 16), (2, 3, 1, 3, 9, 5), (1, 2, 2, 3, 33, 50)])
@pytest.mark.parametrize("mode", ["videopure", "ddim-inversion", "ddim", "ddpm"])
def test_any_length_and_odd_sizes_come_back(mode, shape, make_clips, make_random):
    clips = make_clips(*shape)
    kept = clips.clone()
    defense = videopure(moving_noise, mode=mode, invert_steps=2, side=12, frame_chunk=4)
    out = defense.apply(clips, make_random(shape[0]))
    assert out.shape == clips.shape
    assert out.dtype == torch.float32
    assert out.min() >= 0
    assert out.max() <= 1
    assert torch.equal(clips, kept)


# -- voting ------------------------------------------------------------------------------------


def ballots_of(labels, clips):
    """A prediction function that answers with these labels, one a call."""
    left = iter(labels)

    def predict(shown):
        assert shown.shape == clips.shape
        out = torch.full((len(shown), 4), -5.0)
        for row, label in enumerate(next(left)):
            out[row, label] = 0.0
        return out.log_softmax(dim=1)

    return predict


def test_candidates_vote_and_ties_go_to_the_lower_class(make_clips, make_random):
    clips = make_clips(2, 1, 2, 3, 8, 8)
    # Seven candidates of two videos: 3 x class 2 beats 2, 1, 1; 3 x class 1 ties with 3 x class 3.
    labels = [(2, 3), (0, 3), (2, 1), (1, 1), (2, 3), (0, 1), (3, 0)]
    vote = videopure().wrap(ballots_of(labels, clips), make_random())
    assert vote(clips).argmax(dim=1).tolist() == [2, 1]
    assert isinstance(vote, DetailedFn)
    assert [d["votes"] for d in vote.details()] == [
        {"0": 2, "1": 1, "2": 3, "3": 1},
        {"0": 1, "1": 3, "3": 3},
    ]


def test_without_a_vote_the_last_candidate_counts(make_clips, make_random):
    """The VCR-Bench port classifies the last candidate only."""
    clips = make_clips(1, 1, 2, 3, 8, 8)
    seen = []

    def predict(shown):
        seen.append(shown)
        return torch.zeros(len(shown), 4).log_softmax(dim=1)

    defense = videopure(moving_noise, vote=False)
    defense.wrap(predict, make_random(1))(clips)
    assert len(seen) == 1
    assert torch.equal(seen[0], defense.candidates(clips, make_random(1))[-1])


class _Linear:
    clip = ClipSpec(frames=3)

    def __init__(self):
        self.asked = 0

    def logits(self, clips):
        self.asked += len(clips)
        weights = torch.randn(3, *clips[0].shape, generator=torch.Generator().manual_seed(4))
        return torch.einsum("ntchw,ktchw->nk", clips, weights).unsqueeze(1) / 20


def test_an_adaptive_attacker_gets_the_mean_gradient_over_candidates(make_clips, make_random):
    video = make_clips(1, 1, 3, 3, 8, 8)[:, 0].requires_grad_()
    defense, model = videopure(moving_noise, invert_steps=2), _Linear()
    links = [DefenseLink("videopure", defense, "surrogate", False)]
    view = View(model, torch.arange(3).view(1, 3), links)
    score = view(video, make_random(1))
    assert model.asked == 3
    with torch.no_grad():
        assert torch.equal(view(video, make_random(1)), score)
    gradient = torch.autograd.grad(score[0, 1], video)[0]
    made = defense.candidates(video.detach().unsqueeze(1), make_random(1))
    leaves = made[:, 0].clone().requires_grad_()
    ballots = model.logits(leaves.flatten(0, 1)).squeeze(1).log_softmax(dim=1)
    merged = ballots.logsumexp(dim=0)[1]
    expected = torch.autograd.grad(merged, leaves)[0].sum(dim=0)
    torch.testing.assert_close(gradient, expected)


# -- guidance ----------------------------------------------------------------------------------


def latents(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_written_out_gradient_is_that_of_the_losses(sign):
    z, eps, reference = (latents(s, 1, 4, 3, 6, 8) for s in range(3))
    flow, level = latents(5, 1, 2, 2, 6, 8), Level.of(0.9, 0.95)
    guidance = Guidance(strength="as-coded", sign_sp=sign)
    leaf = z.clone().requires_grad_()
    x0 = sched.predict_x0(leaf, eps, level.abar)
    warped = torch.stack([warp(x0[:, :, i + 1].detach(), flow[:, i]) for i in range(2)], dim=2)
    temporal = sum((warped[:, :, i] - x0[:, :, i]).abs().mean() for i in range(2))
    spatial = (x0 - reference).square().mean()
    loss = -5 * temporal + sign * 800 * spatial
    expected = z - 4 * level.log_variance * torch.autograd.grad(loss, leaf)[0]
    assert level.log_variance < 0
    torch.testing.assert_close(guidance.move(z, eps, reference, flow, level), expected)


def test_both_strengths_agree_at_the_published_size():
    z, eps, reference = (latents(s, 1, 4, 32, 28, 28) for s in range(3))
    flow, level = torch.zeros(1, 31, 2, 28, 28), Level.of(0.9, 0.95)
    coded, scaled = (
        Guidance(strength=strength).move(z, eps, reference, flow, level)
        for strength in ("as-coded", "published-size")
    )
    torch.testing.assert_close(coded, scaled)
    # A small clip would be thrown far away by the constants as they are.
    small = [v[:, :, :4, :8, :8] for v in (z, eps, reference, flow.transpose(1, 2))]
    part = small[3].transpose(1, 2)[:, :3]
    far, near = (
        (Guidance(strength=s).move(*small[:3], part, level) - small[0]).abs().mean()
        for s in ("as-coded", "published-size")
    )
    assert far > 30 * near


def test_guidance_smooths_along_the_flow_and_leaves_the_attacked_video():
    z, eps, reference = (latents(s, 2, 4, 5, 8, 8) for s in range(3))
    flow, level = latents(7, 2, 4, 2, 8, 8), Level.of(0.9, 0.95)

    def clean(guidance):
        return sched.predict_x0(guidance.move(z, eps, reference, flow, level), eps, level.abar)

    plain = clean(Guidance(scale=0))
    smooth = clean(Guidance(w_sp=0, scale=0.4))
    assert (warp_error(smooth, flow) < warp_error(plain, flow)).all()
    away, towards = clean(Guidance(w_temp=0)), clean(Guidance(w_temp=0, sign_sp=-1))
    distance = [(v - reference).square().mean() for v in (towards, plain, away)]
    assert distance == sorted(distance)


def test_several_guided_steps_are_parts_of_one():
    z, eps, reference = (latents(s, 1, 4, 3, 8, 8) for s in range(3))
    flow, level = torch.zeros(1, 2, 2, 8, 8), Level.of(0.9, 0.95)
    one, many = (
        Guidance(w_temp=0, scale=1, steps=n).move(z, eps, reference, flow, level) for n in (1, 10)
    )
    # Close, and a little further, as the pull away grows with the distance.
    assert (many - z).norm() > (one - z).norm()
    torch.testing.assert_close(one, many, rtol=0, atol=0.02)


@pytest.mark.golden
def test_log_variances_of_the_published_schedule():
    steps = [-1, 1, 21, 101]
    found = [
        Level.of(SCHEDULE.abar(t), SCHEDULE.abar(max(t - 20, -1))).log_variance for t in steps[1:]
    ]
    assert found == pytest.approx([-7.8, -6.5, -3.9], abs=0.06)


def test_a_step_to_the_clean_video_is_no_leap():
    """Published schedules with set_alpha_to_one have a last posterior without variance."""
    assert Level.of(0.9998, 1.0).log_variance == pytest.approx(-8.5, abs=0.1)
    with_clean_end = sched.from_betas(sched.linear_betas(1e-4, 0.02, 1000))
    model = VideoModel(RearrangedPixels(1), moving_noise, with_clean_end)
    clips = torch.full((1, 1, 2, 3, 8, 8), 0.5) + torch.linspace(-0.2, 0.2, 8)
    guided, plain = (
        VideoPure(VideopureParams(invert_steps=2, scale=s), model).candidates(
            clips, VideoRandom([0])
        )
        for s in (4.0, 0.0)
    )
    assert (guided - plain).abs().mean() < 0.003


def test_more_steps_than_there_are_is_refused():
    with pytest.raises(msgspec.ValidationError, match="invert_steps 51"):
        msgspec.convert({"invert_steps": 51}, type=VideopureParams)
