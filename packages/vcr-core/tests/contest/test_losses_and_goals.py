"""Losses are minimised in every mode; goals and targets follow the protocol."""

from __future__ import annotations

import math

import pytest
import torch
from vcr_core.errors import UsageError
from vcr_core.goals import Goals, choose_targets
from vcr_core.losses import LOSSES, cross_entropy, dlr, flicker, margin, probability
from vcr_core.prediction import aggregate, corner

Z = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]], dtype=torch.float64).log()
Y = torch.tensor([0, 1])
T = torch.tensor([2, 0])


@pytest.mark.golden
def test_values_by_hand() -> None:
    assert cross_entropy(Z, Y, None).exp().tolist() == pytest.approx([0.7, 0.6])
    assert (-cross_entropy(Z, Y, T)).exp().tolist() == pytest.approx([0.1, 0.1])
    assert margin(Z, Y, None).tolist() == pytest.approx([math.log(3.5), math.log(2)])
    assert margin(Z, Y, T).tolist() == pytest.approx([math.log(7), math.log(6)])
    assert probability(Z, Y, None).tolist() == pytest.approx([0.7, 0.6])
    assert probability(Z, Y, T).tolist() == pytest.approx([-0.1, -0.1])


@pytest.mark.golden
@pytest.mark.parametrize(
    ("gap", "value"), [(0.01, 0.002), (0.05, 0.05), (0.1, 0.1), (0.0, 0.0), (-0.2, 0.0)]
)
def test_flicker_hinge(gap: float, value: float) -> None:
    high = (1 + gap - 0.05) / 2
    z = torch.tensor([[high, 1 - high]], dtype=torch.float64).log()
    assert float(flicker(z, torch.tensor([0]), None)) == pytest.approx(value, abs=1e-9)


def test_dlr_is_invariant_to_shift_and_scale() -> None:
    z = torch.randn(5, 6, dtype=torch.float64)
    y, t = torch.arange(5), torch.arange(5).flip(0)
    for target in (None, t):
        assert torch.allclose(dlr(z, y, target), dlr(3 * z + 7, y, target))


def test_dlr_needs_enough_classes() -> None:
    with pytest.raises(UsageError, match="at least 3 classes"):
        dlr(torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64), None)
    with pytest.raises(UsageError, match=r"at least 4 classes \(targeted\)"):
        dlr(torch.zeros(1, 3), torch.zeros(1, dtype=torch.int64), torch.ones(1, dtype=torch.int64))


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("targeted", [False, True])
def test_every_loss_falls_when_the_goal_comes_closer(kind: str, targeted: bool) -> None:
    z = torch.tensor([[0.45, 0.3, 0.15, 0.1]], dtype=torch.float64).log()
    goals = Goals(torch.tensor([0]), torch.tensor([2]) if targeted else None)
    closer = z.clone()
    if targeted:
        closer[0, 2] += 0.2
    else:
        closer[0, 0] -= 0.2
    closer = closer.log_softmax(1)
    assert float(goals.loss(closer, kind=kind)) < float(goals.loss(z, kind=kind))  # type: ignore[arg-type]


def test_a_target_probability_of_1e_minus_20_has_a_gradient() -> None:
    z = torch.tensor([[0.0, -46.0, -46.0]], requires_grad=True)
    goals = Goals(torch.tensor([0]), torch.tensor([1]))
    loss = goals.loss(aggregate(z.unsqueeze(1))).sum()
    (grad,) = torch.autograd.grad(loss, z)
    assert torch.allclose(grad, torch.tensor([[1.0, -1.0, 0.0]]), atol=1e-6)


def test_the_aggregate_is_the_log_of_the_mean_probability() -> None:
    views = torch.randn(2, 3, 4, dtype=torch.float64)
    assert torch.allclose(aggregate(views).exp(), views.softmax(-1).mean(1))


def test_the_gradient_of_the_aggregate_is_the_protocols() -> None:
    views = torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(-aggregate(views)[0, 1], views)
    p = views.detach().softmax(-1)[0]
    weight = p[:, 1] / p[:, 1].sum()
    expected = weight[:, None] * (p - torch.eye(4, dtype=torch.float64)[1])
    assert torch.allclose(grad[0], expected, rtol=1e-12)


def test_ties_go_to_the_lower_index_and_are_no_success() -> None:
    z = torch.zeros(1, 3)
    assert not bool(Goals(torch.tensor([0])).achieved(z))
    assert bool(Goals(torch.tensor([1])).achieved(z))
    assert corner(z[0].log_softmax(0), 0)["pred"] == 0


class TestTargets:
    z = torch.tensor([[0.0, -1e30, -5.0, -1.0]])
    y = torch.tensor([0])

    def choose(self, policy: str | int, ids: tuple[str, ...] = ("a",)) -> list[int]:
        chosen = choose_targets(policy, self.z, self.y, seed=1, ids=ids)  # type: ignore[arg-type]
        return chosen.tolist()

    def test_policies(self) -> None:
        assert self.choose("least-likely") == [1]
        assert self.choose("second") == [3]
        assert self.choose("next") == [1]
        assert self.choose(2) == [2]

    def test_least_likely_is_never_the_label(self) -> None:
        z = torch.tensor([[-9.0, 0.0, 0.0]])
        assert choose_targets("least-likely", z, self.y, seed=1, ids=["a"]).tolist() == [1]

    def test_random_depends_on_seed_and_id_and_is_never_the_label(self) -> None:
        drawn = {self.choose("random", (f"v{i}",))[0] for i in range(40)}
        assert drawn == {1, 2, 3}
        assert self.choose("random") == self.choose("random")

    def test_an_explicit_target_must_exist_and_differ(self) -> None:
        with pytest.raises(UsageError, match="classes 0 to 3"):
            self.choose(4)
        with pytest.raises(UsageError, match="true label of 'a'"):
            self.choose(0)
