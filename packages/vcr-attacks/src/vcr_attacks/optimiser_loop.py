"""Adam on variables of any shape, one state per video: the loop of all optimising attacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.victim import Victim

Gradient: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""From variables ``[b, ...]`` and rows ``[b]`` to their gradient, asking the victim on the way."""

Rows: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""From variables ``[b, ...]`` and rows ``[b]`` to a tensor of ``b`` videos."""


class Adam:
    """Kingma & Ba, ICLR 2015, algorithm 1, with moments and step counts of each video.

    A video that is left out of a step keeps its state, which an optimiser over the whole batch
    would not grant it.

    Args:
        like: the variables ``[B, ...]``.
        lr: step size, in units of the variables.
        betas: decay of the two moments.
        tiny: added to the root of the second moment.
        moments: what :attr:`moments` gave, to go on from there.
    """

    def __init__(
        self,
        like: Tensor,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        tiny: float = 1e-8,
        moments: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.lr = lr
        self.betas = betas
        self.tiny = tiny
        self._first = torch.zeros_like(like)
        self._second = torch.zeros_like(like)
        self._count = like.new_zeros(len(like))
        if moments:
            self._first, self._second = moments["first"], moments["second"]
            self._count = moments["count"]

    @property
    def moments(self) -> dict[str, Tensor]:
        """What is known of every video's gradients so far."""
        return {"first": self._first, "second": self._second, "count": self._count}

    def move(self, grad: Tensor, rows: Tensor) -> Tensor:
        """Return what to subtract from the variables of videos ``rows``; may overwrite ``grad``.

        Args:
            grad: ``[b, ...]``.
            rows: ``[b]``, each video once.
        """
        beta1, beta2 = self.betas
        count = self._count[rows] + 1
        first = self._first[rows].mul_(beta1).add_(grad, alpha=1 - beta1)
        second = self._second[rows].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        self._count[rows], self._first[rows], self._second[rows] = count, first, second
        shape = (-1, *(1,) * (grad.ndim - 1))
        root = second.div_((1 - beta2**count).view(shape)).sqrt_().add_(self.tiny)
        return first.mul_(self.lr).div_((1 - beta1**count).view(shape)).div_(root)


def optimise(
    victim: Victim,
    start: Tensor,
    gradient: Gradient,
    show: Rows,
    *,
    steps: int,
    adam: Adam,
    bound: Rows,
    scale: Tensor | None = None,
) -> Tensor:
    """Run ``v <- bound(v - scale * adam(grad))`` and return the last videos.

    Only active videos move, and a video that a step's query found to be done keeps its variables.
    Each costs what ``gradient`` asks, at most ``steps`` times, and one closing forward pass, in
    which its last point is looked at. Success and best points are the victim's to keep.

    Args:
        victim: metered access; says which videos are active.
        start: variables ``[B, ...]``; not modified.
        gradient: asks the victim at the videos of the variables and returns their gradient.
        show: the videos ``[b, T, C, H, W]`` that variables stand for.
        steps: number of updates.
        adam: the optimiser, of the shape of ``start``.
        bound: projection of variables after a step; may overwrite them.
        scale: factor on each step, ``[B, ...]``.

    Raises:
        BudgetExhausted: when no active video has budget left; best points are with the victim.
    """
    variables = start.clone()
    for _ in range(steps):
        rows = victim.active()
        if not rows.numel():
            break
        here = variables[rows]
        move = adam.move(gradient(here, rows), rows)
        if scale is not None:
            move.mul_(scale[rows])
        going = torch.isin(rows, victim.active())
        rows = rows[going]
        variables[rows] = bound(here[going].sub_(move[going]), rows)
    everyone = torch.arange(len(variables), device=variables.device)
    videos = show(variables, everyone).detach()
    rows = victim.active()
    if rows.numel():
        victim.scores(videos[rows], rows)
    return videos
