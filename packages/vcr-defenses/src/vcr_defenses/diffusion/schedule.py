"""The noise schedule of a variance-preserving diffusion, and its steps as pure functions.

Notation of Ho et al., NeurIPS 2020, and Song et al., ICLR 2021 (DDIM): ``abar`` is the share of
signal variance, ``x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) e``. Every function takes ``abar`` as
plain numbers, works on tensors of any shape and draws nothing; noise is an argument. Step -1 is the
level before the first one, normally that of the clean image (``abar`` 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor


@dataclass(frozen=True, slots=True)
class NoiseSchedule:
    """Signal levels of the training steps ``0 .. len - 1``.

    Attributes:
        levels: ``abar_t``, falling, each in (0, 1].
        final: ``abar`` of step -1: 1 for most models, ``levels[0]`` where the scheduler's
            configuration says ``set_alpha_to_one = false``.
    """

    levels: tuple[float, ...]
    final: float = 1.0

    def __post_init__(self) -> None:
        """Refuse levels that no diffusion has."""
        chain = (self.final, *self.levels)
        if not self.levels or any(a < b for a, b in pairwise(chain)):
            raise ValueError("the levels of a noise schedule must fall from step to step")
        if not 0 < chain[-1] <= chain[0] <= 1:
            raise ValueError(
                f"the levels of a noise schedule lie in (0, 1], got {chain[0]:g} .. {chain[-1]:g}"
            )

    def __len__(self) -> int:
        """Return the number of training steps."""
        return len(self.levels)

    def abar(self, step: int) -> float:
        """Return the signal level of a step, -1 .. len - 1.

        Raises:
            ValueError: for a step outside; a negative index never wraps around.
        """
        if not -1 <= step < len(self.levels):
            raise ValueError(f"step {step} is outside of -1 .. {len(self.levels) - 1}")
        return self.final if step < 0 else self.levels[step]

    def step_of_noise(self, sigma: float) -> int:
        """Return the step whose noise-to-signal ratio is nearest to ``sigma``, or -1.

        The ratio ``sqrt((1 - abar) / abar)`` is the standard deviation of the noise in the
        scale of ``x_0`` (Carlini et al., ICLR 2023, section 3).

        Args:
            sigma: 0 or more, in units of the model's own range.

        Raises:
            ValueError: if the schedule never gets that noisy.
        """
        ratios = [noise_ratio(self.abar(step)) for step in range(-1, len(self.levels))]
        if sigma > ratios[-1]:
            raise ValueError(
                f"noise of {sigma:g} is more than the schedule's last step has ({ratios[-1]:g})"
            )
        return min(range(len(ratios)), key=lambda i: abs(ratios[i] - sigma)) - 1


def linear_betas(start: float, end: float, steps: int) -> list[float]:
    """Return ``steps`` variances that grow linearly."""
    width = max(steps - 1, 1)
    return [start + (end - start) * i / width for i in range(steps)]


def scaled_linear_betas(start: float, end: float, steps: int) -> list[float]:
    """Return variances whose square roots grow linearly (latent diffusion)."""
    return [b * b for b in linear_betas(math.sqrt(start), math.sqrt(end), steps)]


def cosine_betas(steps: int, most: float = 0.999) -> list[float]:
    """Return the cosine schedule of Nichol & Dhariwal, ICML 2021, equation (17)."""

    def signal(t: float) -> float:
        return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2

    return [min(1 - signal((i + 1) / steps) / signal(i / steps), most) for i in range(steps)]


def from_betas(betas: Sequence[float], *, final_is_one: bool = True) -> NoiseSchedule:
    """Return the schedule of given step variances."""
    levels, product = [], 1.0
    for beta in betas:
        product *= 1 - beta
        levels.append(product)
    return NoiseSchedule(tuple(levels), 1.0 if final_is_one else levels[0])


def from_config(config: Mapping[str, Any]) -> NoiseSchedule:
    """Return the schedule that a diffusers ``scheduler_config.json`` describes.

    Raises:
        ValueError: for a kind of schedule that has no meaning here.
    """
    if config.get("rescale_betas_zero_snr"):
        raise ValueError("rescale_betas_zero_snr leaves no signal at the last step: not supported")
    steps = int(config.get("num_train_timesteps", 1000))
    ends = float(config.get("beta_start", 1e-4)), float(config.get("beta_end", 0.02))
    kind = config.get("beta_schedule", "linear")
    if config.get("trained_betas") is not None:
        betas = [float(b) for b in config["trained_betas"]]
    elif kind == "linear":
        betas = linear_betas(*ends, steps)
    elif kind == "scaled_linear":
        betas = scaled_linear_betas(*ends, steps)
    elif kind == "squaredcos_cap_v2":
        betas = cosine_betas(steps)
    else:
        raise ValueError(
            f"beta_schedule {kind!r} is not known; known: linear, scaled_linear, squaredcos_cap_v2"
        )
    return from_betas(betas, final_is_one=bool(config.get("set_alpha_to_one", True)))


def spread_steps(last: int, count: int) -> list[int]:
    """Return ``count`` steps from ``last`` down to near 0, evenly spaced, each once.

    A reverse pass that starts where the noise was added begins with ``last``; the gap to step -1
    after the final one is as wide as the others. With ``count > last`` every step is there.

    Example:
        >>> spread_steps(49, 5)
        [49, 39, 29, 19, 9]
    """
    length = last + 1
    count = min(count, length)
    return [last - i * length // count for i in range(count)]


def leading_steps(train: int, count: int, offset: int = 0) -> list[int]:
    """Return ``count`` steps ``offset + i * (train // count)``, rising, as diffusers spaces them.

    Example:
        >>> leading_steps(1000, 50, 1)[:6]
        [1, 21, 41, 61, 81, 101]
    """
    return [offset + i * (train // count) for i in range(count)]


def noise_ratio(abar: float) -> float:
    """Return ``sqrt((1 - abar) / abar)``, the noise in the scale of ``x_0``."""
    return math.sqrt((1 - abar) / abar)


def add_noise(x0: Tensor, noise: Tensor, abar: float) -> Tensor:
    """Return ``sqrt(abar) x0 + sqrt(1 - abar) noise``."""
    return math.sqrt(abar) * x0 + math.sqrt(1 - abar) * noise


def predict_x0(x: Tensor, eps: Tensor, abar: float) -> Tensor:
    """Return the clean image that ``eps`` implies: :func:`add_noise` solved for ``x0``."""
    return (x - math.sqrt(1 - abar) * eps) / math.sqrt(abar)


def eps_of_x0(x: Tensor, x0: Tensor, abar: float) -> Tensor:
    """Return the noise that a predicted clean image implies; zeros where there is none."""
    return (x - math.sqrt(abar) * x0) / math.sqrt(max(1 - abar, 1e-12))


def eps_of_velocity(x: Tensor, velocity: Tensor, abar: float) -> Tensor:
    """Return the noise of ``v``: ``sqrt(abar) v + sqrt(1 - abar) x`` (Salimans & Ho, ICLR 2022)."""
    return math.sqrt(abar) * velocity + math.sqrt(1 - abar) * x


def ddim_sigma(abar: float, abar_next: float, eta: float = 1.0) -> float:
    """Return the standard deviation of a DDIM step (Song et al., equation 16); 1 is DDPM's."""
    if abar >= abar_next or abar >= 1:
        return 0.0
    return eta * math.sqrt((1 - abar_next) / (1 - abar) * (1 - abar / abar_next))


def ddim_step(
    x0: Tensor,
    eps: Tensor,
    abar: float,
    abar_next: float,
    *,
    eta: float = 0.0,
    noise: Tensor | None = None,
) -> Tensor:
    """Return the image at the level ``abar_next`` (Song et al., ICLR 2021, equation 12).

    Args:
        x0: predicted clean image.
        eps: predicted noise.
        abar: level now.
        abar_next: level after the step, higher than ``abar``.
        eta: 0 is deterministic; 1 has the variance of DDPM.
        noise: standard normal, needed for ``eta > 0``.

    Raises:
        ValueError: if noise is needed and not given.
    """
    sigma = ddim_sigma(abar, abar_next, eta)
    out = math.sqrt(abar_next) * x0 + math.sqrt(max(1 - abar_next - sigma**2, 0.0)) * eps
    if sigma == 0:
        return out
    if noise is None:
        raise ValueError(f"a DDIM step with eta {eta:g} needs noise")
    return out + sigma * noise


def ddim_invert_step(x: Tensor, eps: Tensor, abar: float, abar_next: float) -> Tensor:
    """Return the image one level noisier along the deterministic path, ``eps`` taken at ``abar``.

    The inverse of :func:`ddim_step` with ``eta`` 0 as long as ``eps`` is the same in both.
    """
    return add_noise(predict_x0(x, eps, abar), eps, abar_next)


def ddpm_step(
    x: Tensor, x0: Tensor, abar: float, abar_next: float, noise: Tensor | None = None
) -> Tensor:
    """Return a draw from ``q(x_next | x, x0)`` (Ho et al., equations 6 and 7).

    Args:
        x: image now.
        x0: predicted clean image.
        abar: level now.
        abar_next: level after the step; any higher one, so steps may be skipped.
        noise: standard normal; ``None`` returns the mean.
    """
    alpha = abar / abar_next
    spread = 1 - abar
    if spread == 0:
        return x0
    mean = (
        math.sqrt(abar_next) * (1 - alpha) / spread * x0
        + math.sqrt(alpha) * (1 - abar_next) / spread * x
    )
    sigma = ddim_sigma(abar, abar_next)
    return mean if noise is None or sigma == 0 else mean + sigma * noise
