"""Parameters of the attacks that step along gradients."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from vcr_attacks.params.common import GradientLoss, Keep, Steps


class IfgsmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``ifgsm``. The radius is the threat's."""

    steps: Steps = 20
    step: (
        Annotated[
            float, Meta(gt=0, le=1, description="step size '1/255', or auto = 2.5 * eps / steps")
        ]
        | Literal["auto"]
    ) = 1 / 255
    loss: GradientLoss = "ce"
    keep: Keep = "best"


class PgdParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``pgd``. Norm and radius are the threat's."""

    steps: Steps = 20
    step: (
        Annotated[
            float,
            Meta(gt=0, description="step size in units of the norm, or auto = 2.5 * eps / steps"),
        ]
        | Literal["auto"]
    ) = "auto"
    random_start: Annotated[
        bool, Meta(description="start at a random point of the ball instead of the clean video")
    ] = True
    restarts: Annotated[
        int, Meta(ge=1, description="runs from new starts, for videos not yet broken")
    ] = 1
    loss: GradientLoss = "ce"
    keep: Keep = "best"

    def __post_init__(self) -> None:
        """Refuse restarts that would all be the same."""
        if self.restarts > 1 and not self.random_start:
            raise ValueError("restarts above 1 need random_start = true: every run would be equal")
