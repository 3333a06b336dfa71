"""Random noise: what every real attack has to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

    from vcr_example_plugin.params import NoiseParams


class Noise:
    """Moves every value by the radius, up or down at random; never looks at the model."""

    def __init__(self, params: NoiseParams) -> None:
        self.params = params

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return noisy videos.

        Args:
            victim: not used: the access of this attack is `none`.
            video: `[B, T, C, H, W]`, float32 in [0, 1]; not modified.
            goals: not used.
            ctx: the threat model and one random generator per video.

        Returns:
            The same shape, inside the threat's ball and in [0, 1].
        """
        signs = ctx.random.signs(*video.shape[1:]).to(video)
        step = self.params.strength * ctx.threat.radius(video)
        return ctx.threat.project(video + step * signs, video)
