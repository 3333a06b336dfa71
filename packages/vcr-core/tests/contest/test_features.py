"""Activations through the victim: metered, rounded as stored, behind the defenses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from vcr_core.errors import BudgetExhausted, ContractViolation, NotAvailable
from vcr_core.protocols import InputDefense
from vcr_core.threat import Linf
from vcr_core.victim import Victim

MakeVictim = Callable[..., Victim]


class Darken(InputDefense):
    def apply(self, clips: Tensor, random: Any) -> Tensor:
        return clips / 2


class Vote:
    def wrap(self, predict: Any, random: Any) -> Any:
        return lambda clips: (predict(clips) + predict(clips.flip(-1))) / 2


@pytest.fixture
def layered(net: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def features(self: Any, clips: Tensor, layer: str) -> Tensor:
        return clips.flatten(1) if layer == "pixels" else clips.flatten(1).square()

    monkeypatch.setattr(type(net), "features", features, raising=False)
    monkeypatch.setattr(type(net), "feature_layers", ("pixels", "squares"), raising=False)
    return net


def test_a_model_without_features_says_so(make_victim: MakeVictim, clean: Tensor) -> None:
    victim = make_victim()
    assert victim.feature_layers == ()
    with pytest.raises(NotAvailable, match="'pixels'"):
        victim.features(clean, None, "pixels")
    assert victim.meters[0].forwards == 0


def test_features_have_a_graph_and_both_passes_count(
    layered: Any, make_victim: MakeVictim, clean: Tensor
) -> None:
    victim = make_victim(views=1, threat=Linf(0.1, quantize=False))
    assert victim.feature_layers == ("pixels", "squares")
    rows = torch.tensor([2, 0])
    leaf = clean[rows].clone().requires_grad_()
    found = victim.features(leaf, rows, "squares")
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    used = leaf.shape[1] - 1  # the last frame is not in the first view
    torch.testing.assert_close(grad[:, :used], 2 * clean[rows][:, :used])
    assert [(m.forwards, m.backwards) for m in victim.meters] == [(1, 1), (0, 0), (1, 1)]


def test_features_are_those_of_the_stored_point(
    layered: Any, make_victim: MakeVictim, clean: Tensor
) -> None:
    victim = make_victim(views=1)
    leaf = (clean + 0.3 / 255).requires_grad_()
    found = victim.features(leaf, None, "pixels")
    torch.testing.assert_close(found, clean[:, :-1].flatten(1), rtol=0, atol=1e-7)
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    assert bool((grad[:, :-1] == 1).all())


def test_features_lie_behind_defenses_of_the_clips(
    layered: Any, make_victim: MakeVictim, clean: Tensor
) -> None:
    victim = make_victim((Darken(), "exact", False), views=1)
    found = victim.features(clean, None, "pixels")
    torch.testing.assert_close(found, clean[:, :-1].flatten(1) / 2)
    hidden = make_victim((Vote(), "exact", False), views=1)
    with pytest.raises(NotAvailable, match="'Vote'"):
        hidden.features(clean, None, "pixels")


def test_features_keep_budget_and_access(
    layered: Any, make_victim: MakeVictim, clean: Tensor
) -> None:
    victim = make_victim(max_forwards=1)
    victim.features(clean, None, "pixels")
    with pytest.raises(BudgetExhausted):
        victim.features(clean, None, "pixels")
    with pytest.raises(ContractViolation, match="white-box"):
        make_victim(access="score").features(clean, None, "pixels")
