"""Total variation minimisation with missing values, by primal-dual steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import pad

from vcr_defenses.gaussian_blur import blur, gaussian_taps

if TYPE_CHECKING:
    from torch import Tensor

_PRIMAL_STEP = 0.6
_TINY = 1e-12


@dataclass(slots=True)
class _State:
    """Iterates: ``z``, its extrapolation, and the duals over their weights."""

    z: Tensor
    ahead: Tensor
    down: Tensor
    right: Tensor
    later: Tensor


def minimise_tv(
    values: Tensor,
    kept: Tensor,
    weight: float,
    iterations: int,
    temporal_weight: float = 0.0,
) -> Tensor:
    """Return nearly ``argmin_z 1/2 |kept (z - values)|² + weight TV(z) + temporal_weight TV_t(z)``.

    ``TV`` is the sum over pixels of the length of the spatial gradient, as in Rudin, Osher and
    Fatemi, 1992, and ``TV_t`` the sum of absolute differences between rows of the first axis.
    Algorithm 1 of Chambolle and Pock, 2011. Differentiable if gradients are recorded, several
    times faster if not.

    Args:
        values: ``[n, H, W]``.
        kept: ``[n, H, W]``, 1 where a value counts and 0 where it is missing.
        weight: of the spatial term; 0 together with no temporal term fills gaps by a local mean.
        iterations: number of steps.
        temporal_weight: of the temporal term; 0 keeps the rows apart.
    """
    z = _filled(values, kept)
    if weight == 0 and temporal_weight == 0:
        return z
    recorded = torch.is_grad_enabled() and values.requires_grad
    step = _Step(values, kept, max(weight, _TINY), temporal_weight)
    state = _State(z, z, *(torch.zeros_like(z) for _ in range(3)))
    if not recorded:
        state.ahead = z.clone()
    for _ in range(iterations):
        if recorded:
            state = step.recorded(state)
        else:
            step.in_place(state)
    return state.z


class _Step:
    """One primal-dual step, in two ways that give the same numbers."""

    def __init__(self, values: Tensor, kept: Tensor, weight: float, temporal_weight: float) -> None:
        # The squared norm of the difference operator is at most 8, or 12 with time.
        dual_step = 1 / (_PRIMAL_STEP * (12 if temporal_weight else 8))
        self.rise = dual_step / weight
        self.fall = _PRIMAL_STEP * weight
        self.rise_in_time = dual_step / temporal_weight if temporal_weight else 0.0
        self.fall_in_time = _PRIMAL_STEP * temporal_weight
        self.shrink = 1 / (1 + _PRIMAL_STEP * kept)
        self.pulled = _PRIMAL_STEP * kept * values * self.shrink

    def recorded(self, old: _State) -> _State:
        """Return the next state, out of place."""
        ahead = old.ahead
        down = old.down + self.rise * pad(ahead[:, 1:] - ahead[:, :-1], (0, 0, 0, 1))
        right = old.right + self.rise * pad(ahead[..., 1:] - ahead[..., :-1], (0, 1))
        # The length is clamped before the root, whose derivative at zero is infinite.
        scale = (down.square() + right.square()).clamp_min(1).rsqrt()
        down, right = down * scale, right * scale
        flow = down - pad(down[:, :-1], (0, 0, 1, 0)) + right - pad(right[..., :-1], (1, 0))
        z = old.z + self.fall * flow
        later = old.later
        if self.rise_in_time:
            change = pad(ahead[1:] - ahead[:-1], (0, 0, 0, 0, 0, 1))
            later = (later + self.rise_in_time * change).clamp(-1, 1)
            z = z + self.fall_in_time * (later - pad(later[:-1], (0, 0, 0, 0, 1, 0)))
        z = torch.addcmul(self.pulled, z, self.shrink)
        return _State(z, 2 * z - old.z, down, right, later)

    def in_place(self, state: _State) -> None:
        """Overwrite a state with the next one."""
        z, ahead, down, right, later = (
            state.z, state.ahead, state.down, state.right, state.later,
        )  # fmt: skip
        down[:, :-1].add_(ahead[:, 1:], alpha=self.rise).sub_(ahead[:, :-1], alpha=self.rise)
        right[..., :-1].add_(ahead[..., 1:], alpha=self.rise).sub_(ahead[..., :-1], alpha=self.rise)
        scale = (down * down).addcmul_(right, right).clamp_min_(1).rsqrt_()
        down.mul_(scale)
        right.mul_(scale)
        if self.rise_in_time:
            later[:-1].add_(ahead[1:], alpha=self.rise_in_time).sub_(
                ahead[:-1], alpha=self.rise_in_time
            )
            later.clamp_(-1, 1)
        ahead.copy_(z)
        z.add_(down, alpha=self.fall).add_(right, alpha=self.fall)
        z[:, 1:].sub_(down[:, :-1], alpha=self.fall)
        z[..., 1:].sub_(right[..., :-1], alpha=self.fall)
        if self.rise_in_time:
            z.add_(later, alpha=self.fall_in_time)
            z[1:].sub_(later[:-1], alpha=self.fall_in_time)
        torch.addcmul(self.pulled, z, self.shrink, out=z)
        torch.lerp(ahead, z, 2.0, out=ahead)


def total_variation(planes: Tensor) -> Tensor:
    """Return the isotropic total variation of each plane ``[..., H, W]``."""
    down = pad(planes[..., 1:, :] - planes[..., :-1, :], (0, 0, 0, 1))
    right = pad(planes[..., 1:] - planes[..., :-1], (0, 1))
    return (down.square() + right.square()).sqrt().sum(dim=(-2, -1))


def _filled(values: Tensor, kept: Tensor) -> Tensor:
    """Return values with the missing ones guessed from the kept ones around them."""
    taps = gaussian_taps(values.new_tensor([1.5]), torch.tensor([2], device=values.device))
    both = blur(torch.stack([values * kept, kept], dim=1), taps)
    count = kept.sum(dim=(-2, -1), keepdim=True)
    mean = (values * kept).sum(dim=(-2, -1), keepdim=True) / count.clamp_min(1)
    far = torch.where(count > 0, mean, 0.5)
    guess = torch.where(both[:, 1] > 1e-6, both[:, 0] / both[:, 1].clamp_min(1e-6), far)
    return torch.where(kept > 0, values, guess)
