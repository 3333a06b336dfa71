"""One short attack of each access; they work, and are not meant to be strong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch

from vcr_core.errors import NotAvailable
from vcr_core.randomness import VideoRandom

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext, PrepareContext
    from vcr_core.victim import Victim

_STEPS = 10


class SignDescent:
    """White-box: ten signed gradient steps of a quarter of the radius (I-FGSM)."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the best points; see :class:`vcr_core.protocols.Attack`."""
        if ctx.threat.is_zero:
            return video.clone()
        point = video.clone()
        for _ in range(_STEPS):
            rows = victim.active()
            if not len(rows):
                break
            _, grad, _ = victim.loss_and_grad(point[rows], rows)
            threat, clean = ctx.threat.select(rows), video[rows]
            step = threat.radius(clean) / 4 * grad.sign()
            point[rows] = threat.project(point[rows] - step, clean)
        rows = victim.active()
        if len(rows):
            victim.scores(point[rows], rows)
        return victim.best()


class BandSearch:
    """Score: random signs that are constant on a channel's quadrant, kept when the loss falls."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the best points; see :class:`vcr_core.protocols.Attack`."""
        if ctx.threat.is_zero:
            return video.clone()
        height, width = video.shape[-2:]
        row = (torch.arange(height) * 2 // height).to(video.device)
        column = (torch.arange(width) * 2 // width).to(video.device)
        for _ in range(60):
            rows = victim.active()
            if not len(rows):
                break
            signs = ctx.random.signs(3, 2, 2, rows=rows)[:, :, row][..., column]
            threat = ctx.threat.select(rows)
            step = threat.radius(video[rows]) * signs[:, None]
            victim.scores(threat.project(video[rows] + step, video[rows]), rows)
        return victim.best()


class Grain:
    """No access: random signs at the radius, the baseline that every attack has to beat."""

    def attack(
        self, victim: Victim | None, video: Tensor, goals: Goals, ctx: AttackContext
    ) -> Tensor:
        """Return noisy videos; see :class:`vcr_core.protocols.Attack`."""
        signs = ctx.random.signs(*video.shape[1:])
        return ctx.threat.project(video + ctx.threat.radius(video) * signs, video)


class Universal:
    """White-box with an offline step: one colour shift for all videos, drawn once."""

    _FILE = "shift.json"

    def prepare(self, ctx: PrepareContext) -> None:
        """Write the sign of the shift per channel, once."""
        path = ctx.folder / self._FILE
        if not path.exists():
            signs = VideoRandom([ctx.seed]).signs(3)[0]
            path.write_text(json.dumps(signs.tolist()), encoding="utf-8")

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return videos with the prepared shift.

        Raises:
            NotAvailable: if nothing was prepared.
        """
        path = None if ctx.folder is None else ctx.folder / self._FILE
        if path is None or not path.exists():
            raise NotAvailable(f"{self._FILE} is missing; run `vcr prepare` first")
        signs = video.new_tensor(json.loads(path.read_text(encoding="utf-8"))).view(3, 1, 1)
        point = ctx.threat.project(video + ctx.threat.radius(video) * signs, video)
        victim.scores(point)
        return point
