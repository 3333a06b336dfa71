"""Agreement of gradients between neighbouring frames: as a number, and as a term of a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.errors import NotDifferentiable
from vcr_core.victim import LossGrad

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.victim import LossFn, Victim


def agreement(grads: Tensor) -> Tensor:
    """Return ``cos(d_t, d_{t+1})`` of neighbouring frames, ``[B, T - 1]``; differentiable.

    Args:
        grads: ``[B, T, C, H, W]``; ``d_t`` is the direction of frame ``t``. A zero frame agrees
            with nothing: its cosines are 0.
    """
    flat = grads.flatten(2)
    # Gradients of a confident model are tiny: their squares would underflow without this.
    largest = flat.detach().abs().amax(dim=2, keepdim=True)
    scaled = flat / largest.where(largest > 0, largest.new_ones(()))
    units = scaled / torch.linalg.vector_norm(scaled, dim=2, keepdim=True).clamp_min(1e-12)
    cosines: Tensor = (units[:, :-1] * units[:, 1:]).sum(dim=2)
    return cosines


class ConsistentLoss:
    """A surrogate whose loss is ``L + weight * sum_t (1 - cos(d_t, d_{t+1}))``.

    ``d_t`` is the gradient of ``L`` at frame ``t``, so the gradient of the sum needs a second
    derivative: 2 backward passes a step instead of 1. Has what ``sign_loop.descend`` asks for. No
    closing query is made: the last points are the answer, whatever the surrogate says of them.

    Args:
        surrogate: white-box access that never stops early.
        weight: of the second term; with 0 there is none.
    """

    def __init__(self, surrogate: Victim, weight: float) -> None:
        self._surrogate = surrogate
        self._weight = weight

    def active(self) -> Tensor:
        """Return the rows that may move."""
        return self._surrogate.active()

    def scores(self, video: Tensor, rows: Tensor) -> None:
        """Ask nothing."""

    def loss_and_grad(self, video: Tensor, rows: Tensor, loss: LossFn = "ce") -> LossGrad:
        """Return loss, gradient and logits at ``video`` ``[b, T, C, H, W]``.

        Raises:
            NotDifferentiable: if the surrogate has no second derivative.
        """
        if not self._weight or video.shape[1] < 2:
            return self._surrogate.loss_and_grad(video, rows, loss)
        leaf = video.detach().requires_grad_()
        with torch.enable_grad():
            logits = self._surrogate.logits(leaf, rows)
            value = self._value(logits, rows, loss)
            (grads,) = torch.autograd.grad(value.sum(), leaf, create_graph=True)
            total = value + self._weight * (1 - agreement(grads)).sum(dim=1)
            try:
                (grad,) = torch.autograd.grad(total.sum(), leaf)
            except RuntimeError as error:
                raise NotDifferentiable(
                    f"the surrogate has no second derivative ({error}); set attack.consistency = 0"
                ) from error
        return LossGrad(total.detach(), grad, logits.detach())

    def _value(self, logits: Tensor, rows: Tensor, loss: LossFn) -> Tensor:
        if callable(loss):
            return loss(logits, rows)
        return self._surrogate.goals.loss(logits, rows, loss)
