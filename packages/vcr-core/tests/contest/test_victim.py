"""The victim counts, refuses, remembers and stops, for each video on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from vcr_core.errors import BudgetExhausted, ContractViolation, NotDifferentiable
from vcr_core.protocols import InputDefense
from vcr_core.threat import Linf, Unbounded
from vcr_core.victim import Meter, Victim

MakeVictim = Callable[..., Victim]


class Noise(InputDefense):
    def apply(self, clips: Tensor, random: Any) -> Tensor:
        return clips + random.normal(*clips.shape[1:], std=0.02)


NOISE = (Noise(), "exact", True)


def counts(victim: Victim) -> list[tuple[int, int]]:
    return [(m.forwards, m.backwards) for m in victim.meters]


class TestCounting:
    def test_each_call_counts_one_video_once_whatever_its_views(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(views=3)
        victim.scores(clean)
        victim.loss_and_grad(clean[[0, 2]], torch.tensor([0, 2]))
        victim.labels(clean[1:2], torch.tensor([1]))
        assert counts(victim) == [(2, 1), (2, 0), (2, 1)]

    def test_candidates_of_one_video_count_each(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(access="score")
        victim.scores(clean[[0, 0, 0]], torch.tensor([0, 0, 0]))
        assert counts(victim)[0] == (3, 0)

    def test_candidates_of_one_call_count_one_after_another(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        predicted = make_victim().labels(clean).tolist()
        others = torch.rand(50, *clean.shape[1:], generator=torch.Generator().manual_seed(0))
        away = make_victim(threat=Unbounded(quantize=False), stop="budget").labels
        other = next(x for x in others if int(away(x[None], torch.tensor([0]))) != predicted[0])
        victim = make_victim(labels=predicted, access="score", threat=Unbounded(quantize=False))
        candidates = torch.stack([clean[0], clean[0], other.to(clean), clean[0]])
        victim.scores(candidates, torch.tensor([0] * 4))
        meter = victim.meters[0]
        assert (meter.queries_to_first_success, meter.forwards) == (3, 4)
        assert [asked for asked, _, _ in meter.trace] == [1, 2, 3, 4]

    def test_points_that_are_no_candidates_count_and_cannot_win(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        predicted = make_victim().labels(clean).tolist()
        others = torch.rand(50, *clean.shape[1:], generator=torch.Generator().manual_seed(0))
        away = make_victim(threat=Unbounded(), stop="budget").labels
        other = next(x for x in others if int(away(x[None], torch.tensor([0]))) != predicted[0])
        victim = make_victim(labels=predicted, access="score", threat=Linf("8/255"))
        row = torch.tensor([0])
        scores = victim.scores(other.to(clean)[None], row, candidate=False)
        # Neither moved into the ball nor judged, and rounded as any video that could be stored.
        assert int(scores.argmax()) != predicted[0]
        rounded = (other.to(clean)[None] * 255).round() / 255
        assert torch.equal(scores, victim.scores(rounded, row, candidate=False))
        meter = victim.meters[0]
        assert (meter.forwards, meter.achieved, meter.queries_to_first_success) == (2, False, None)
        assert meter.trace == []
        assert torch.equal(victim.best(row), clean[:1])
        assert victim.active().tolist() == [0, 1, 2]

    def test_points_that_are_no_candidates_use_up_the_budget(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(access="score", max_forwards=1)
        first = victim.scores(clean[:1], torch.tensor([0]), candidate=False)
        # The second video has budget left, the first is answered with its last scores.
        both = victim.scores(clean[:2], torch.tensor([0, 1]), candidate=False)
        assert torch.equal(both[0], first[0])
        assert counts(victim) == [(1, 0), (1, 0), (0, 0)]
        with pytest.raises(BudgetExhausted):
            victim.scores(clean[:2], torch.tensor([0, 1]), candidate=False)

    def test_eot_draws_count(self, make_victim: MakeVictim, clean: Tensor) -> None:
        victim = make_victim(NOISE, eot=4, stop="budget")
        victim.loss_and_grad(clean)
        assert counts(victim) == [(4, 4)] * 3

    def test_a_backward_through_logits_counts(self, make_victim: MakeVictim, clean: Tensor) -> None:
        victim = make_victim()
        leaf = clean.clone().requires_grad_()
        victim.logits(leaf).sum().backward()
        assert counts(victim) == [(1, 1)] * 3
        assert leaf.grad is not None
        assert float(leaf.grad.abs().max()) > 0


class TestGradients:
    def test_equals_autograd_at_the_point(self, make_victim: MakeVictim, clean: Tensor) -> None:
        victim = make_victim()
        got = victim.loss_and_grad(clean)
        leaf = clean.clone().requires_grad_()
        z = victim.logits(leaf)
        (expected,) = torch.autograd.grad(victim.goals.loss(z).sum(), leaf)
        assert torch.allclose(got.grad, expected, atol=1e-6)

    def test_eot_is_the_mean_over_draws(self, make_victim: MakeVictim, clean: Tensor) -> None:
        mean = make_victim(NOISE, eot=3, stop="budget").loss_and_grad(clean).grad
        single = make_victim(NOISE, eot=1, stop="budget")
        parts = [single.loss_and_grad(clean).grad for _ in range(3)]
        assert torch.allclose(mean, sum(parts) / 3, atol=1e-6)  # type: ignore[arg-type]

    def test_a_custom_loss_is_used(self, make_victim: MakeVictim, clean: Tensor) -> None:
        victim = make_victim()
        loss, grad, logits = victim.loss_and_grad(clean, loss=lambda z, rows: z[:, 0] * 0 + 1)
        assert loss.tolist() == [1, 1, 1]
        assert float(grad.abs().max()) == 0
        assert logits.shape == (3, 5)

    def test_a_cut_graph_is_named(self, make_victim: MakeVictim, clean: Tensor) -> None:
        victim = make_victim()
        model = victim._view.model.model  # type: ignore[attr-defined]
        original = model.logits
        model.logits = lambda clips: original(clips.detach())
        with pytest.raises(NotDifferentiable, match="does not reach the pixels"):
            victim.loss_and_grad(clean)

    def test_a_gradient_that_is_not_finite_is_named(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        with pytest.raises(ContractViolation, match="not finite"):
            make_victim().loss_and_grad(clean, loss=lambda z, rows: (z[:, 0] * 0).sqrt())

    def test_zero_gradients_are_counted(self, make_victim: MakeVictim, clean: Tensor) -> None:
        victim = make_victim()
        victim.loss_and_grad(clean, loss=lambda z, rows: z.sum(1) * 0)
        assert [m.zero_gradients for m in victim.meters] == [1, 1, 1]


class TestAccess:
    @pytest.mark.parametrize(
        ("access", "call"),
        [("score", "loss_and_grad"), ("score", "logits"), ("decision", "scores"),
         ("transfer", "labels"), ("none", "labels")],
    )  # fmt: skip
    def test_what_was_not_declared_is_refused(
        self, make_victim: MakeVictim, clean: Tensor, access: str, call: str
    ) -> None:
        with pytest.raises(ContractViolation, match=f"declared '{access}'"):
            getattr(make_victim(access=access), call)(clean)


class TestBudget:
    def test_is_never_exceeded_and_is_per_video(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(max_forwards=3, stop="budget")
        victim.scores(clean[:1], torch.tensor([0]))
        for _ in range(2):
            victim.scores(clean)
        result = victim.loss_and_grad(clean)
        assert counts(victim) == [(3, 0), (3, 1), (3, 1)]
        assert float(result.grad[0].abs().max()) == 0
        assert victim.active().tolist() == [1, 2]
        with pytest.raises(BudgetExhausted):
            victim.scores(clean)
        assert victim.active().tolist() == []

    def test_candidates_are_cut_to_what_is_left(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(access="score", max_forwards=2, stop="budget")
        logits = victim.scores(clean[[0] * 5], torch.tensor([0] * 5))
        assert counts(victim)[0] == (2, 0)
        assert logits.shape == (5, 5)
        assert victim.remaining(0) == 0

    def test_eot_is_not_started_if_it_cannot_be_paid(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(NOISE, eot=4, max_forwards=3, stop="budget")
        with pytest.raises(BudgetExhausted):
            victim.loss_and_grad(clean)
        assert counts(victim) == [(0, 0)] * 3

    def test_what_is_left_may_be_too_little_to_go_on(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(access="score", max_forwards=2, stop="budget")
        victim.scores(clean)
        victim.give_up(torch.tensor([2]))
        assert victim.active().tolist() == [0, 1]
        assert [m.exhausted for m in victim.meters] == [False, False, True]
        assert counts(victim) == [(1, 0)] * 3

    def test_backwards_have_their_own(self, make_victim: MakeVictim, clean: Tensor) -> None:
        victim = make_victim(max_backwards=1, stop="budget")
        victim.loss_and_grad(clean)
        with pytest.raises(BudgetExhausted):
            victim.loss_and_grad(clean)


class TestStopping:
    def test_first_success_ends_a_video_and_its_point_is_the_best(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(labels=[0, 0, 0])
        rows_before = victim.active().tolist()
        predicted = victim.labels(clean)
        wrong = (predicted != 0).nonzero().flatten().tolist()
        assert rows_before == [0, 1, 2]
        assert victim.active().tolist() == [r for r in rows_before if r not in wrong]
        later = (clean + 0.3).clamp(0, 1)
        victim.scores(later)
        assert torch.equal(victim.best()[wrong], clean[wrong])

    def test_budget_never_stops_and_prefers_success_to_a_lower_loss(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        victim = make_victim(labels=[0, 0, 0], stop="budget")
        victim.scores(clean)
        assert victim.active().tolist() == [0, 1, 2]

    def test_confidence_applies_to_targets(self, make_victim: MakeVictim, clean: Tensor) -> None:
        predicted = make_victim().labels(clean).tolist()
        other = [(p + 1) % 5 for p in predicted]
        sure = make_victim(labels=other, targets=predicted, stop="confidence", confidence=0.0)
        unsure = make_victim(labels=other, targets=predicted, stop="confidence", confidence=0.999)
        sure.scores(clean), unsure.scores(clean)
        assert sure.active().tolist() == []
        assert unsure.active().tolist() == [0, 1, 2]

    def test_a_random_victim_must_lose_fresh_draws(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        wrong = [(p + 1) % 5 for p in make_victim().labels(clean).tolist()]
        victim = make_victim(NOISE, labels=wrong, confirm=3)
        victim.scores(clean)
        assert counts(victim) == [(4, 0)] * 3
        assert victim.active().tolist() == []

    def test_without_a_query_the_best_point_is_the_clean_one(
        self, make_victim: MakeVictim, clean: Tensor
    ) -> None:
        assert torch.equal(make_victim().best(), clean)


def test_queries_are_answered_on_what_would_be_stored(
    make_victim: MakeVictim, clean: Tensor
) -> None:
    nudged = (clean + 0.3 / 255).clamp(0, 1)
    rounded = make_victim(stop="budget").scores(nudged)
    assert torch.equal(rounded, make_victim(stop="budget").scores(clean))
    free = make_victim(stop="budget", threat=Linf("8/255", quantize=False))
    assert not torch.equal(free.scores(nudged), rounded)


def test_a_video_is_answered_as_if_it_were_alone(make_victim: MakeVictim, clean: Tensor) -> None:
    together = make_victim(NOISE, stop="budget").loss_and_grad(clean)
    alone = make_victim(NOISE, stop="budget").loss_and_grad(clean[1:2], torch.tensor([1]))
    assert torch.allclose(together.grad[1:2], alone.grad, atol=1e-12)


def test_the_trace_keeps_first_and_last_of_many() -> None:
    meter = Meter(trace=[(i, float(i), 0.5) for i in range(1000)])
    sampled = meter.sampled_trace()
    assert len(sampled) == 64
    assert sampled[0][0] == 0
    assert sampled[-1][0] == 999
