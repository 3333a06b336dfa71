"""What makes each tiny network a member of its family, on random weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from vcr_models.tiny.channelwise import ChannelWise
from vcr_models.tiny.front import colour_and_differences
from vcr_models.tiny.networks import build_network
from vcr_models.tiny.stem import ColourAndMotion
from vcr_models.tiny.swin import joined, shift_mask, windows
from vcr_models.tiny.timesformer import TinyTimeSformer
from vcr_models.tiny.tokens import attend, channels_first, channels_last

FAMILIES = ["tiny-slowfast", "tiny-uniformer", "tiny-x3d", "tiny-timesformer", "tiny-swin"]


def seeded(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_are_tiny_and_layers_can_be_hooked(name: str) -> None:
    network = build_network(name).eval()
    assert sum(p.numel() for p in network.parameters()) <= 1_500_000
    seen = []
    for child, module in network.named_children():
        module.register_forward_hook(lambda *_, child=child: seen.append(child))
    assert network(seeded(1, 16, 3, 32, 32)).shape == (1, 16)
    assert set(seen) == dict(network.named_children()).keys()


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_have_gradients(name: str) -> None:
    """Attacks of second order need them; fused attention has none on the CPU."""
    network = build_network(name).eval()
    x = seeded(1, 16, 3, 32, 32).requires_grad_(True)
    loss = network(x).square().sum()
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad(grad.square().sum(), x)
    assert second.isfinite().all()
    assert float(second.abs().max()) > 0.0


def test_the_slow_pathway_sees_every_fourth_frame() -> None:
    network = build_network("tiny-slowfast").eval()
    kept: dict[str, torch.Tensor] = {}
    for name in ("slow1", "fast1"):
        network.get_submodule(name).register_forward_hook(
            lambda _module, _inputs, out, name=name: kept.update({name: out.detach()})
        )
    x = seeded(1, 16, 3, 32, 32)
    network(x)
    before = dict(kept)
    # Frame 6 is in the differences of frames 5 and 6, neither of which is 0, 4, 8 or 12.
    x[:, 6] = 0.0
    network(x)
    assert torch.equal(kept["slow1"], before["slow1"])
    assert not torch.equal(kept["fast1"], before["fast1"])
    assert (before["slow1"].shape[2], before["fast1"].shape[2]) == (4, 15)


@pytest.mark.parametrize("step", [1, 2])
def test_differences_behind_the_convolution_are_the_same(step: int) -> None:
    layer = ColourAndMotion(4, step=step)
    x = seeded(2, 16, 3, 32, 32)
    colour, motion = layer.conv.weight.chunk(2)
    # The front divides colours by .25 and differences by .10: the ratio of 2.5 is the layer's.
    front = colour_and_differences(x)[:, ::step]
    weight = torch.cat([colour * 0.25, motion * 2.5 * 0.10], dim=1)
    expected = F.conv2d(front.flatten(0, 1), weight, stride=4, padding=2)
    expected = expected.unflatten(0, front.shape[:2]).transpose(1, 2)
    assert torch.allclose(layer(x), expected, atol=1e-5)


def test_a_channelwise_convolution_is_a_3d_one_with_a_factorised_kernel() -> None:
    layer = ChannelWise(3, 3, stride=2)
    x = seeded(2, 3, 8, 6, 6)
    kernel = layer.time.weight[:, 0, :, 0, None, None] * layer.space.weight[:, 0, None]
    expected = F.conv3d(x, kernel[:, None], layer.time.bias, (1, 2, 2), padding=1, groups=3)
    assert torch.allclose(layer(x), expected, atol=1e-6)


def test_attention_is_scaled_dot_product_attention() -> None:
    query, key, value, bias = (
        seeded(2, 3, 5, 4),
        seeded(2, 3, 7, 4),
        seeded(2, 3, 7, 4),
        seeded(3, 5, 7),
    )
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    assert torch.allclose(attend(query, key, value, bias), expected, atol=1e-6)


def test_the_order_of_axes_comes_back() -> None:
    maps = seeded(2, 3, 4, 5, 6)
    assert torch.equal(channels_first(channels_last(maps)), maps)


def test_time_and_places_are_attended_to_apart() -> None:
    """Within one block a token hears of its own place and of its own frame, in two steps."""
    block = TinyTimeSformer(16).block1.eval()
    x = seeded(1, 8, 16, 64).requires_grad_(True)
    over_time = block.time(block.time_norm(x).transpose(1, 2)).transpose(1, 2)
    (grad,) = torch.autograd.grad(over_time[0, 3, 5].sum(), x)
    heard = grad[0].abs().sum(dim=-1) > 0
    assert heard[:, 5].all()
    assert int(heard.sum()) == 8
    (grad,) = torch.autograd.grad(block.space(block.space_norm(x))[0, 3, 5].sum(), x)
    heard = grad[0].abs().sum(dim=-1) > 0
    assert heard[3].all()
    assert int(heard.sum()) == 16


def test_windows_come_back_and_hold_neighbours() -> None:
    x = torch.arange(8 * 8 * 8.0).reshape(1, 8, 8, 8, 1)
    parts = windows(x)
    assert parts.shape == (1, 8, 64, 1)
    assert torch.equal(joined(parts, (8, 8, 8)), x)
    assert torch.equal(parts[0, 7].reshape(4, 4, 4), x[0, 4:, 4:, 4:, 0])


@pytest.mark.parametrize(("size", "shift"), [((8, 8, 8), (2, 2, 2)), ((8, 4, 4), (2, 0, 0))])
def test_a_shifted_window_does_not_wrap_around(
    size: tuple[int, int, int], shift: tuple[int, int, int]
) -> None:
    """Two places of a shifted window attend to each other if they were close before the shift."""
    axes = torch.meshgrid(*(torch.arange(side) for side in size), indexing="ij")
    place = torch.stack(axes, dim=-1)[None].roll([-s for s in shift], dims=(1, 2, 3))
    parts = windows(place)[0]
    apart = (parts[:, :, None] - parts[:, None]).abs().amax(dim=-1)
    assert torch.equal(shift_mask(size, shift)[:, 0] == 0.0, apart < 4)
    assert not shift_mask(size, (0, 0, 0)).any()


def test_x3d_keeps_its_frames_and_bottlenecks() -> None:
    network = build_network("tiny-x3d").eval()
    x = network.get_submodule("stem")(seeded(1, 16, 3, 32, 32))
    for number in (1, 2, 3, 4):
        block = network.get_submodule(f"block{number}")
        x = block(x)
        inner = block.get_submodule("expand").weight.shape[0]
        assert inner == x.shape[1] * 9 // 4
        assert x.shape[2] == 8


def test_uniformer_is_local_before_it_is_global() -> None:
    network = build_network("tiny-uniformer").eval()
    maps = seeded(1, 32, 8, 8, 8).requires_grad_(True)
    (grad,) = torch.autograd.grad(network.get_submodule("local1")(maps)[..., 0, 0, 0].sum(), maps)
    # Reach 1 of the position embedding and 2 of the neighbours.
    assert not grad[..., 4:, :, :].any()
    assert not grad[..., 4:].any()
    deep = seeded(1, 64, 8, 4, 4).requires_grad_(True)
    (grad,) = torch.autograd.grad(network.get_submodule("global1")(deep)[..., 0, 0, 0].sum(), deep)
    assert (grad.abs().sum(dim=1) > 0).all()
