"""The mixer of BMTC: a policy over backgrounds for every frame, and its training by reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import adaptive_avg_pool2d

if TYPE_CHECKING:
    from torch import Tensor

GRID = 8
"""Cells in height and width over which the mixer sees the mean colours of a frame."""

_SPREAD_RATE = 0.1

POSITION_WEIGHT = 8.0
"""Size of a position feature beside the 192 of size about 1 that describe the picture."""


def features(video: Tensor) -> Tensor:
    """Return what the mixer sees of each frame, ``[B, T, F]``.

    These are standardised mean colours of cells, and the frame's place in time: whether it is odd,
    and two harmonics of the clip. Without the place, frames of a steady scene would all get the
    same background, which says nothing to a network that looks at differences in time.

    Args:
        video: ``[B, T, C, H, W]``.
    """
    cells = adaptive_avg_pool2d(video.flatten(0, 1), GRID).flatten(1)
    spread = cells.std(dim=1, keepdim=True).clamp_min(1e-3)
    standard: Tensor = (cells - cells.mean(dim=1, keepdim=True)) / spread
    batch, frames = video.shape[:2]
    place = torch.arange(frames, device=video.device, dtype=video.dtype)
    phase = 2 * torch.pi * place / frames
    waves = [torch.cos(torch.pi * place)]
    waves += [wave(k * phase) for k in (1, 2) for wave in (torch.sin, torch.cos)]
    positions = POSITION_WEIGHT * torch.stack(waves, dim=1).expand(batch, frames, -1)
    return torch.cat([standard.view(batch, frames, -1), positions], dim=2)


@dataclass(slots=True)
class Mixer:
    """A linear softmax policy with the state of its optimiser.

    Attributes:
        weight: ``[A, F]``.
        bias: ``[A]``.
        weight_speed: momentum of ``weight``.
        bias_speed: momentum of ``bias``.
        spread: running mean square of the advantages; NaN before the first.
    """

    weight: Tensor
    bias: Tensor
    weight_speed: Tensor
    bias_speed: Tensor
    spread: Tensor

    @classmethod
    def uniform(cls, actions: int, inputs: int) -> Mixer:
        """Return a policy that prefers nothing yet."""
        return cls(
            weight=torch.zeros(actions, inputs),
            bias=torch.zeros(actions),
            weight_speed=torch.zeros(actions, inputs),
            bias_speed=torch.zeros(actions),
            spread=torch.tensor(float("nan")),
        )

    def logits(self, seen: Tensor) -> Tensor:
        """Return ``[..., A]`` of features ``[..., F]``."""
        return seen @ self.weight.T + self.bias

    def choice(self, seen: Tensor) -> Tensor:
        """Return the preferred action of each frame; ties to the lower index."""
        return self.logits(seen).argmax(dim=-1)

    def learn(
        self, seen: Tensor, actions: Tensor, advantage: Tensor, *, rate: float, momentum: float
    ) -> None:
        """Take one step of the policy gradient ``-sum_t log pi(a_t) * (R - b) / s``.

        Williams, Machine Learning 8, 1992; the running deviation ``s`` makes a learning rate mean
        the same on models whose losses move much or little. SGD with momentum, by hand: its state
        is written at the end of an epoch, so that training can be stopped.

        Args:
            seen: ``[B, T, F]``.
            actions: ``[B, T]`` that were taken.
            advantage: ``[B]``, by how much each reward differs from the one to expect, ``R - b``.
            rate: learning rate.
            momentum: of the optimiser.
        """
        square = advantage.square().mean()
        if bool(self.spread.isnan()):
            self.spread = square
        self.spread = self.spread + _SPREAD_RATE * (square - self.spread)
        advantage = advantage / self.spread.sqrt().clamp_min(1e-6)
        # d(-log pi(a))/d logits = pi - onehot(a)
        logits = self.logits(seen)
        slope = logits.softmax(dim=-1)
        slope = slope.scatter_add(-1, actions[..., None], -torch.ones_like(slope[..., :1]))
        slope = slope * advantage.view(-1, *[1] * (slope.ndim - 1)) / len(advantage)
        flat, inputs = slope.flatten(0, -2), seen.flatten(0, -2)
        self.weight_speed = momentum * self.weight_speed + flat.T @ inputs
        self.bias_speed = momentum * self.bias_speed + flat.sum(dim=0)
        self.weight = self.weight - rate * self.weight_speed
        self.bias = self.bias - rate * self.bias_speed

    def tensors(self) -> dict[str, Tensor]:
        """Return everything, to be written."""
        return {name: getattr(self, name).clone() for name in self.__dataclass_fields__}
