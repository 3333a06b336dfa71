"""The optimising loop and the chain rule behind it."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.flickering import Flickering
from vcr_attacks.framing import Framing
from vcr_attacks.korhonen import Korhonen
from vcr_attacks.optimiser_loop import Adam
from vcr_attacks.parametrised import through
from vcr_attacks.params.perceptual import (
    FlickeringParams,
    FramingParams,
    KorhonenParams,
    PatchParams,
    SsahParams,
    StadvParams,
    ZhangParams,
)
from vcr_attacks.patch import Patch
from vcr_attacks.ssah import Ssah
from vcr_attacks.stadv import Stadv, roughness, warp
from vcr_attacks.zhang import ZhangSsim
from vcr_core.threat import Linf, Unbounded

FREE = Unbounded(quantize=False)
ATTACKS = [
    pytest.param(Stadv(StadvParams(steps=5)), id="stadv"),
    pytest.param(Stadv(StadvParams(steps=5, scope="frame")), id="stadv-frame"),
    pytest.param(Flickering(FlickeringParams(steps=5)), id="flickering"),
    pytest.param(Korhonen(KorhonenParams(steps=5)), id="korhonen"),
    pytest.param(ZhangSsim(ZhangParams(steps=5)), id="zhang-ssim"),
    pytest.param(Ssah(SsahParams(steps=5, features="logits", negatives="own")), id="ssah"),
    pytest.param(Framing(FramingParams(steps=5)), id="framing"),
    pytest.param(Patch(PatchParams(steps=5)), id="patch"),
]
GRADIENTS = [p for p in ATTACKS if p.id != "ssah"]


def test_adam_is_the_formula_for_each_video_however_they_are_grouped():
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 2, 4, generator=generator)
    grads = torch.randn(6, 3, 2, 4, generator=generator)
    groups = [[0, 1, 2], [0, 2], [2, 0], [1], [0, 1, 2], [2]]
    ours, adam = start.clone(), Adam(start, 0.03)
    for step, rows in enumerate(groups):
        chosen = torch.tensor(rows)
        ours[chosen] -= adam.move(grads[step][chosen].clone(), chosen)
    for row in range(3):
        expected = start[row].double()
        first = second = torch.zeros(2, 4, dtype=torch.float64)
        own = [grads[step][row].double() for step, rows in enumerate(groups) if row in rows]
        for count, grad in enumerate(own, start=1):
            first = 0.9 * first + 0.1 * grad
            second = 0.999 * second + 0.001 * grad**2
            root = (second / (1 - 0.999**count)).sqrt() + 1e-8
            expected = expected - 0.03 * first / (1 - 0.9**count) / root
        torch.testing.assert_close(ours[row], expected.float(), rtol=0, atol=1e-6)


def test_chain_rule_equals_autograd_from_end_to_end(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    labels = torch.tensor(labels_of(tiny, clean))
    flow = 0.3 * torch.randn(2, 1, 2, 12, 10, generator=torch.Generator().manual_seed(1))
    seen = {}

    class Once:
        def attack(self, victim, video, goals, ctx):
            gradient = through(
                victim,
                lambda f, rows: warp(clean[rows], f),
                "margin",
                lambda f, _rows: 0.3 * roughness(f, mean=True),
            )
            seen["ours"] = gradient(flow, torch.arange(2))
            return victim.best()

    outcome = contest(Once(), tiny, clean, labels.tolist(), threat=FREE)
    assert [(m.forwards, m.backwards) for m in outcome.victim.meters] == [(1, 1)] * 2
    leaf = flow.clone().requires_grad_()
    logits = tiny.logits(warp(clean, leaf))[:, 0].log_softmax(1)
    loss = outcome.victim.goals.loss(logits, None, "margin") + 0.3 * roughness(leaf, mean=True)
    (expected,) = torch.autograd.grad(loss.sum(), leaf)
    torch.testing.assert_close(seen["ours"], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_loss_falls_and_the_range_is_kept(attack, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 17, 14)
    labels = labels_of(tiny, clean)
    outcome = contest(attack, tiny, clean, labels, threat=FREE)
    before, after = (outcome.victim.goals.loss(outcome.predict(v)) for v in (clean, outcome.result))
    assert (after < before).all()
    assert FREE.within(outcome.result, clean).all()


@pytest.mark.parametrize("attack", GRADIENTS)
def test_costs_are_steps_and_one(attack, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 11)
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), threat=FREE)
    assert [(m.forwards, m.backwards) for m in outcome.victim.meters] == [(6, 5)] * 2


@pytest.mark.parametrize("attack", GRADIENTS)
def test_targets_gain(attack, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 17, 14)
    labels = labels_of(tiny, clean)
    targets = [(y + 1) % 5 for y in labels]
    outcome = contest(attack, tiny, clean, labels, targets=targets, threat=FREE)
    rows = torch.arange(2)
    gain = outcome.predict(outcome.result) - outcome.predict(clean)
    assert (gain[rows, targets] > 0).all()


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_batch_of_three_equals_three_single_runs(attack, contest, linear, videos):
    weights = torch.randn(4, 2, 3, 12, 11, generator=torch.Generator().manual_seed(3)) / 28
    clean = videos(3, 2, 3, 12, 11)
    model = linear(weights, [0.4, 0.1, -0.3, 0.2])
    labels = model.logits(clean)[:, 0].argmax(1).tolist()
    together = contest(
        attack, model, clean, labels, stop="first_success", ids=["a", "b", "c"], threat=FREE
    )
    for i, name in enumerate("abc"):
        alone = contest(
            attack, model, clean[i : i + 1], labels[i : i + 1], stop="first_success", ids=[name],
            threat=FREE,
        )  # fmt: skip
        torch.testing.assert_close(alone.result[0], together.result[i], rtol=0, atol=1e-6)
        assert alone.victim.meters[0].forwards == together.victim.meters[i].forwards


@pytest.mark.parametrize("attack", ATTACKS)
def test_frames_and_region_are_kept(attack, contest, tiny, videos, labels_of):
    clean = videos(1, 4, 3, 16, 14)
    threat = Unbounded(frames=(1, 3), region=(0.0, 0.0, 1.0, 0.5))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), threat=threat)
    still = torch.ones_like(clean, dtype=torch.bool)
    still[:, [1, 3], :, :, :7] = False
    assert torch.equal(outcome.result[still], clean[still])
    moved = torch.cat([video for _, video in outcome.points]) - clean
    assert float(moved[:, [1, 3], :, :, :7].abs().max()) > 0 or isinstance(attack, Patch)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("shape", [(1, 1, 3, 33, 50), (1, 2, 3, 12, 11)])
def test_odd_sizes_and_single_frames(attack, shape, contest, tiny, videos, labels_of):
    clean = videos(*shape)
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), views=3, threat=Unbounded())
    assert outcome.result.shape == clean.shape
    levels = outcome.result * 255
    assert torch.equal(levels, levels.round())


CAPPED = [p for p in ATTACKS if p.id in ("flickering", "korhonen", "zhang-ssim", "ssah")]


@pytest.mark.parametrize("attack", CAPPED)
def test_a_cap_is_kept_and_reached_for(attack, contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    outcome = contest(attack, tiny, clean, labels, threat=Linf("2/255"))
    moved = (torch.cat([video for _, video in outcome.points]) - clean) * 255
    assert float(moved.abs().max()) == pytest.approx(2, abs=1e-3)
    assert float((outcome.result - clean).abs().max()) * 255 < 2.001
    same = contest(attack, tiny, clean, labels, threat=Linf(0))
    assert torch.equal(same.result, clean)
    assert same.victim.meters[0].forwards == 0


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_model_without_a_gradient_leaves_nothing_that_is_not_finite(
    attack, contest, linear, videos
):
    clean = videos(1, 2, 3, 12, 11)
    flat = linear(torch.zeros(1, 2, 3, 12, 11), [3.0])
    outcome = contest(attack, flat, clean, [1], threat=Unbounded())
    assert torch.isfinite(outcome.result).all()
    assert not outcome.victim.meters[0].achieved
