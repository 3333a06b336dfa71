"""Parameters of the defenses that classify many noisy copies."""

from __future__ import annotations

import math
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from vcr_defenses.params.diffusion import FrameDenoiserParams

Sigma: TypeAlias = Annotated[
    float, Meta(ge=0, description="standard deviation of the noise, '25/255' or a fraction")
]
Copies: TypeAlias = Annotated[
    int, Meta(ge=1, description="noisy copies that vote; each is a forward pass")
]
Alpha: TypeAlias = Annotated[
    float, Meta(gt=0, lt=0.5, description="probability of a wrong vote and of a wrong bound")
]
Abstain: TypeAlias = Annotated[
    bool, Meta(description="make no prediction where the vote could be chance at level alpha")
]
GradientCopies: TypeAlias = Annotated[
    int, Meta(ge=1, description="noisy copies behind a gradient that an attack takes")
]
BoundCopies: TypeAlias = Annotated[
    int, Meta(ge=0, description="copies that bound the certificate; 0 = no certificate")
]
SelectCopies: TypeAlias = Annotated[
    int, Meta(ge=1, description="other copies, which choose the class to certify")
]


class RandomizedSmoothingParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``randomized-smoothing``."""

    mode: Annotated[
        Literal["vote", "single"],
        Meta(
            description="vote: the class of most of n copies, or an abstention; "
            "single: one copy, sigma U(sigma_low, sigma_high), no vote and no certificate"
        ),
    ] = "vote"
    sigma: Sigma = 0.1
    n: Copies = 100
    alpha: Alpha = 0.001
    abstain: Abstain = True
    gradient_n: GradientCopies = 8
    certify_n: BoundCopies = 0
    certify_n0: SelectCopies = 100
    clamp: Annotated[
        bool, Meta(description="clamp noisy copies to [0, 1], as all models here expect")
    ] = True
    sigma_low: Annotated[float, Meta(ge=0, description="mode single: '5/255'")] = 5 / 255
    sigma_high: Annotated[float, Meta(ge=0, description="mode single: '25/255'")] = 25 / 255

    def __post_init__(self) -> None:
        """Refuse an empty range of sigma, and votes and certificates that can lead to nothing."""
        if self.sigma_low > self.sigma_high:
            raise ValueError(
                f"sigma_low = {self.sigma_low:g} is above sigma_high = {self.sigma_high:g}"
            )
        if self.mode == "vote":
            check_copies(self)
        elif self.certify_n:
            raise ValueError("certify_n: mode 'single' takes no vote, so it certifies nothing")


class DenoisedSmoothingParams(
    FrameDenoiserParams, forbid_unknown_fields=True, frozen=True, kw_only=True
):
    """Parameters of ``denoised-smoothing``."""

    sigma: Sigma = 0.25
    n: Copies = 16
    alpha: Alpha = 0.001
    abstain: Abstain = True
    gradient_n: GradientCopies = 4
    certify_n: BoundCopies = 0
    certify_n0: SelectCopies = 100

    def __post_init__(self) -> None:
        """Refuse what neither a denoiser nor a vote can do."""
        FrameDenoiserParams.__post_init__(self)
        check_copies(self)


NoisyVoteParams: TypeAlias = RandomizedSmoothingParams | DenoisedSmoothingParams


def check_copies(params: NoisyVoteParams) -> None:
    """Refuse numbers of copies that can lead to nothing.

    Raises:
        ValueError: naming the number that would do.
    """
    if params.abstain and 2 * 0.5**params.n > params.alpha:
        least = math.ceil(math.log2(2 / params.alpha))
        raise ValueError(
            f"n = {params.n}: even a unanimous vote could be chance at alpha = "
            f"{params.alpha:g}; use n = {least} or more, or abstain = false"
        )
    if not params.certify_n:
        return
    if params.sigma == 0:
        raise ValueError("certify_n: without noise (sigma = 0) nothing can be certified")
    if params.alpha ** (1 / params.certify_n) <= 0.5:
        least = math.floor(math.log2(1 / params.alpha)) + 1
        raise ValueError(
            f"certify_n = {params.certify_n}: too few for any certificate at alpha = "
            f"{params.alpha:g}; use {least} or more"
        )
