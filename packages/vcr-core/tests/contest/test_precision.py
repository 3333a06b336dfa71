"""Passes under ``torch.autocast``: float32 outside, and gradients that float16 can hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from vcr_core.chunking import chunked
from vcr_core.metering import GuardedModel
from vcr_core.precision import EXPONENT, autocast, power_of_two
from vcr_core.testing.toys.cnn import ToyCnn

HALVES = [torch.bfloat16, torch.float16]


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.Sequential(nn.Conv3d(2, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 5))
    return layers.eval().requires_grad_(False)


def clips(count: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(count, 2, 4, 6, 6, generator=generator)


def gradient(dtype: torch.dtype | None, weights: Tensor, count: int = 3) -> Tensor:
    leaf, net = clips(count).requires_grad_(), network()
    out = autocast(net, leaf, dtype)
    loss = (out.square().sum(dim=1) * weights).sum()
    return torch.autograd.grad(loss, leaf)[0]


def test_off_is_the_call_itself() -> None:
    net, given = network(), clips()
    assert torch.equal(autocast(net, given, None), net(given))


@pytest.mark.parametrize("dtype", HALVES)
def test_inside_is_half_and_outside_is_float32(dtype: torch.dtype) -> None:
    seen: list[torch.dtype] = []
    net = network()
    net[0].register_forward_hook(lambda _m, _i, out: seen.append(out.dtype))
    leaf = clips().requires_grad_()
    out = autocast(net, leaf, dtype)
    assert seen == [dtype]
    assert out.dtype == torch.float32
    assert torch.autograd.grad(out.sum(), leaf)[0].dtype == torch.float32
    exact = network()(clips())
    assert 0 < (out - exact).abs().max() < 0.02 * exact.abs().max()


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients_are_close_however_small_they_are(dtype: torch.dtype) -> None:
    """1e-12 is far below the smallest float16; a row may be far from another one."""
    weights = torch.tensor([1.0, 1e-12, 1e5])
    exact, found = gradient(None, weights), gradient(dtype, weights)
    for row in range(3):
        gap = (found[row] - exact[row]).abs().max() / exact[row].abs().max()
        assert gap < 0.03, (row, gap)


def test_without_the_scale_float16_would_lose_them() -> None:
    leaf, net = clips().requires_grad_(), network()
    with torch.autocast("cpu", dtype=torch.float16):
        out = net(leaf)
    loss = (out.float().square().sum(dim=1) * 1e-12).sum()
    assert not torch.autograd.grad(loss, leaf)[0].any()


def test_rows_do_not_know_each_other() -> None:
    alone = gradient(torch.float16, torch.tensor([1e-9]), count=1)
    among = gradient(torch.float16, torch.tensor([1e-9, 1e6, 0.0]))
    assert (among[0] - alone[0]).abs().max() <= 2e-3 * alone.abs().max()
    assert not among[2].any()


def test_chunks_are_passes_of_their_own() -> None:
    net, leaf = network(), clips(4).requires_grad_()
    whole = autocast(net, leaf, torch.float16)
    parts = chunked(lambda part: autocast(net, part, torch.float16), leaf, 2)
    torch.testing.assert_close(parts, whole, rtol=0, atol=2e-3)
    ours, theirs = (torch.autograd.grad(out.square().sum(), leaf)[0] for out in (parts, whole))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-3)


def test_scales_are_powers_of_two_that_reach_the_range() -> None:
    grad = torch.tensor([[3e-9, -1e-8], [0.0, 0.0], [7e4, 1.0], [float("inf"), 1.0]])
    scale = power_of_two(grad, 4)
    assert torch.equal(scale.log2(), scale.log2().round())
    top = (grad.abs().amax(1) * scale)[[0, 2]]
    assert ((top >= 2 ** (EXPONENT - 1)) & (top < 2**EXPONENT)).all()
    assert scale[1] == scale[3] == 1
    assert power_of_two(grad[:3], 2).shape == (1,)


def test_a_guard_passes_it_on() -> None:
    model, given = ToyCnn(), torch.rand(2, 8, 3, 32, 32)
    exact = GuardedModel(model)
    half = GuardedModel(model, dtype=torch.bfloat16)
    for ask in (lambda m: m.logits(given), lambda m: m.examine(given)[0]):
        assert torch.equal(ask(exact), model.logits(given))
        assert ask(half).dtype == torch.float32
        assert not torch.equal(ask(half), ask(exact))
    assert torch.equal(half.at_rate(None).logits(given), half.logits(given))
