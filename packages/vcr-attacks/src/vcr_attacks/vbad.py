"""V-BAD: tentative directions, and NES for how each patch follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.cells import Cells
from vcr_attacks.nes import NesSlope
from vcr_attacks.params.query import VbadParams
from vcr_attacks.pictures import frame_features
from vcr_attacks.query_loop import Queries, Steps, first_steps, follow, score_loss

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.image_models import CountedImageModel
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

_STEP_SHARE = 0.2
"""First step as a share of eps, as in the published code (0.01 of 0.05)."""


class Vbad(BaseVideoAttack):
    """V-BAD in the L-infinity ball.

    Jiang, Ma, Chen, Bailey, Jiang, "Black-box Adversarial Attacks on Video Recognition Models", ACM
    MM 2019, section 3.2: a tentative direction of signs is cut into patches of every frame, NES
    finds a weight for each patch, and a sign step follows the weighted direction. That leaves as
    many dimensions as there are patches.

    Costs ``1 + iterations * (samples + 1)`` queries. A pair is asked whole or not at all. With
    ``tentative`` the name of an image network, the signs are those of the gradient that pulls its
    features of each frame, averaged over the frame, to random ones, as published; a gradient of
    that network a step comes on top. By default they are random cells, so no other model is needed
    and less is known. Both are drawn anew for every step.

    Differs from the published method: a targeted search starts at the clean video and stays in the
    ball, not at a video of the target class, whose features the signs would lead to. Probes are
    inside the ball, and ``sigma`` is one 8-bit level.
    """

    def __init__(self, params: VbadParams | None = None) -> None:
        self.params = params or VbadParams()

    @property
    def image_models(self) -> tuple[str, ...]:
        """The image network, which a run reads before its first video."""
        return () if self.params.tentative == "random" else (self.params.tentative,)

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: score access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``linf``, and one generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        queries = Queries(victim, goals, threat, video, score_loss(params.loss, goals))
        slope = NesSlope(
            queries,
            Cells(video, params.patches, colours=False),
            ctx.random,
            pairs=params.samples // 2,
            sigma=params.sigma,
            # Weights belong to the direction that they were found for, and that one changes.
            momentum=0.0,
            pattern=self._tentative(video, ctx),
        )
        follow(
            queries,
            video,
            queries.look(video),
            Steps(
                first_steps(params.step, _STEP_SHARE, threat, video),
                least=params.least_step,
                plateau=params.plateau,
            ),
            slope,
            iterations=params.iterations,
            norm=threat.norm,
        )
        return victim.best()

    def _tentative(self, video: Tensor, ctx: AttackContext) -> Callable[[Tensor, Tensor], Tensor]:
        random = ctx.random.child("tentative")
        if self.params.tentative == "random":
            return Tentative(video, random, self.params.texture)
        network = ctx.image_model(self.params.tentative)
        return FeatureSigns(network, random, self.params.depth, self.params.size)


class Tentative:
    """Random signs in cells of every frame, the same in all channels."""

    def __init__(self, video: Tensor, random: VideoRandom, grid: int | None) -> None:
        self._cells = Cells(video, grid, colours=False)
        self._random = random
        self._like = video

    def __call__(self, points: Tensor, rows: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]`` of -1 and 1, other ones at every call."""
        signs = self._random.signs(*self._cells.shape, rows=rows).to(self._like)
        return self._cells.spread(signs)


class FeatureSigns:
    """Signs of the way to random features of an image network."""

    def __init__(
        self, network: CountedImageModel, random: VideoRandom, depth: int, size: int
    ) -> None:
        self._network = network
        self._random = random
        self._depth = depth
        self._size = size

    def __call__(self, points: Tensor, rows: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]`` of -1, 0 (where no feature sees the pixel) and 1."""
        return torch.cat([self._of(points[i : i + 1], rows[i : i + 1]) for i in range(len(rows))])

    def _of(self, point: Tensor, row: Tensor) -> Tensor:
        leaf = point.detach().requires_grad_()
        with torch.enable_grad():
            found = frame_features(self._network, leaf, row, self._depth, self._size)
            means = found.flatten(2).mean(dim=2)
            wanted = self._random.normal(*means.shape, rows=row).to(means)[0].abs()
            (grad,) = torch.autograd.grad((means - wanted).square().sum(), leaf)
        return grad.sign()
