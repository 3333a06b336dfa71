"""Chunked gradients are those of the whole; adaptive gradients are what they claim to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from vcr_core.adaptive import View
from vcr_core.errors import ContractViolation, NotDifferentiable
from vcr_core.protocols import InputDefense
from vcr_core.randomness import VideoRandom

SEEDS = [11, 12, 13]


class Noise(InputDefense):
    """Adds noise drawn per video."""

    def apply(self, clips: Tensor, random: Any) -> Tensor:
        return clips + random.normal(*clips.shape[1:], std=0.05)


class Steps(InputDefense):
    """Rounds to 16 levels: no gradient of its own, the identity stands in."""

    def apply(self, clips: Tensor, random: Any) -> Tensor:
        return (clips * 15).round() / 15


def _grad(view: View, video: Tensor, label: int = 1) -> tuple[Tensor, Tensor]:
    leaf = video.double().requires_grad_()
    z = view(leaf, VideoRandom(SEEDS))
    (grad,) = torch.autograd.grad(z[:, label].sum(), leaf)
    return z.detach(), grad


@pytest.mark.parametrize("views", [1, 3, 30])
@pytest.mark.parametrize("chunk", [1, 2, 7])
@pytest.mark.parametrize("defended", [False, True])
def test_any_chunk_gives_the_joint_gradient(
    make_view: Callable[..., View], clean: Tensor, views: int, chunk: int, defended: bool
) -> None:
    links = [(Noise(), "exact", True)] if defended else []
    z, whole = _grad(make_view(*links, views=views), clean)
    z_parts, parts = _grad(make_view(*links, views=views, chunk=chunk), clean)
    assert torch.allclose(z, z_parts, rtol=1e-12)
    assert torch.allclose(whole, parts, rtol=1e-10, atol=1e-14)


def test_one_source_frame_has_one_gradient_the_sum_over_its_uses(
    make_view: Callable[..., View], clean: Tensor
) -> None:
    view = make_view(views=2)
    _, tied = _grad(view, clean)
    clips = view.clips(clean.double()).detach().requires_grad_()
    z = view._undefended(clips)
    (free,) = torch.autograd.grad(z[:, 1].sum(), clips)
    summed = torch.zeros_like(tied)
    for v in range(2):
        for t in range(clips.shape[2]):
            summed[:, view.gather[v, t]] += free[:, v, t]
    assert torch.allclose(tied, summed, rtol=1e-10, atol=1e-15)


def test_bpda_is_the_undefended_gradient_at_the_defended_point(
    make_view: Callable[..., View], clean: Tensor
) -> None:
    steps = Steps()
    _, through = _grad(make_view((steps, "surrogate", False)), clean)
    _, plain = _grad(make_view(), (clean.double() * 15).round() / 15)
    assert torch.equal(through, plain)


def test_the_forward_value_through_a_surrogate_is_the_defenses_own(
    make_view: Callable[..., View], clean: Tensor
) -> None:
    z, _ = _grad(make_view((Steps(), "surrogate", False)), clean)
    with torch.no_grad():
        own = make_view((Steps(), "surrogate", False))(clean.double(), VideoRandom(SEEDS))
    assert torch.equal(z, own)


def test_no_gradient_is_refused_by_name(make_view: Callable[..., View], clean: Tensor) -> None:
    with pytest.raises(NotDifferentiable, match="'Steps' gives no gradient"):
        _grad(make_view((Steps(), "none", False)), clean)
    with pytest.raises(NotDifferentiable, match="surrogate gradient only"):
        _grad(make_view((Steps(), "surrogate", False), gradient="exact"), clean)
    with torch.no_grad():
        make_view((Steps(), "none", False))(clean, VideoRandom(SEEDS))


def test_a_chain_applies_in_order_and_each_link_has_its_own_stream(
    make_view: Callable[..., View], clean: Tensor
) -> None:
    first = make_view((Steps(), "surrogate", False), (Noise(), "exact", True))
    second = make_view((Noise(), "exact", True), (Steps(), "surrogate", False))
    with torch.no_grad():
        a, b = (v(clean, VideoRandom(SEEDS)) for v in (first, second))
        again = first(clean, VideoRandom(SEEDS))
    assert torch.equal(a, again)
    assert not torch.equal(a, b)


def test_nan_after_a_defense_is_an_error_and_no_prediction(
    make_view: Callable[..., View], clean: Tensor
) -> None:
    class Broken(Steps):
        def apply(self, clips: Tensor, random: Any) -> Tensor:
            return clips * float("nan")

    with torch.no_grad(), pytest.raises(ContractViolation, match=r"'Broken'.*not finite"):
        make_view((Broken(), "exact", False))(clean, VideoRandom(SEEDS))


def test_logits_of_the_wrong_shape_are_named(make_view: Callable[..., View], clean: Tensor) -> None:
    view = make_view()
    view.model.model.logits = lambda clips: torch.zeros(len(clips), 5)  # type: ignore[attr-defined]
    with pytest.raises(ContractViolation, match=r"\[N, V_crop, K\]"):
        view(clean, VideoRandom(SEEDS))
