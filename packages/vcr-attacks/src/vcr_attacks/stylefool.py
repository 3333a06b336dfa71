"""StyleFool: a video in another picture's style, refined by estimated gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.cells import Cells
from vcr_attacks.nes import NesSlope
from vcr_attacks.params.prepared import StylefoolParams
from vcr_attacks.query_loop import Queries, Steps, advance, follow, score_loss
from vcr_attacks.sign_loop import Ball, steepest
from vcr_attacks.stylefool_bank import REPORT_FILE, StyleBank, collect, read_bank
from vcr_attacks.stylefool_features import make_features
from vcr_attacks.stylefool_search import Box, Walk
from vcr_attacks.stylefool_transfer import Gatys, statistics_matched
from vcr_attacks.universal import place

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext, PrepareContext
    from vcr_core.victim import Victim

_STEP_SHARE = 0.2
"""First step as a share of the radius, as in the published code (0.01 of 0.05)."""


class Stylefool(BaseVideoAttack):
    """StyleFool: choose a style, stylise, then search near the stylised video from scores alone.

    Cao, Xiao, Sun, Wang, Xue, Wen, "StyleFool: Fooling Video Classification Systems via Style
    Transfer", IEEE S&P 2023. Beforehand, pictures are collected from training videos. A video gets
    the style of a picture of another class whose colour theme is nearest; targeted, of a picture of
    the target class that the model is sure of. Sign steps against NES's estimate follow.

    With norm ``none`` the search stays within ``radius`` around the *stylised* video, and the
    distance to the original is unbounded; the record's ``perturbation.eps`` is the distance between
    answer and stylised video. With norm ``linf`` everything stays in the threat's ball
    around the *original*: the stylised video is projected into it first.

    A targeted search without a norm walks from a training video of the target class (see
    :class:`~vcr_attacks.stylefool_search.Walk`). Where there is none, or where the model does not
    see the target in it, the search begins at the stylised video, as with ``start = "styled"``.

    Costs ``1 + iterations * (samples + 1)`` queries; of a walk ``2 + iterations * (samples + 5)``
    at most. Stylising asks nothing. A pair is asked whole or not at all.
    """

    def __init__(self, params: StylefoolParams | None = None) -> None:
        self.params = params or StylefoolParams()
        self._gatys: Gatys | None = None
        if self.params.styliser == "gatys":
            features = make_features(self.params.features, self.params.weights)
            self._gatys = Gatys(self.params, features)

    def prepare(self, ctx: PrepareContext) -> None:
        """Write pictures with themes and chances, starts of target classes, and ``bank.json``.

        Costs a forward pass a training video. Stops and goes on after each.
        """
        if not (ctx.folder / REPORT_FILE).exists():
            collect(self.params, ctx)

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return stylised and perturbed videos.

        Args:
            victim: score access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``none`` or ``linf``, one generator per video and the
                folder of the artifact.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            IncompatibleComponents: if frames are too small for the features.
            NotAvailable: if nothing was prepared.
        """
        threat = ctx.threat
        if threat.is_zero:
            return video.clone()
        bank = read_bank(ctx.folder)
        styled = threat.project(self.stylised(video, goals, bank), video)
        if threat.quantize:
            styled = threat.store(styled, video)
        search = _Search(self.params, victim, video, styled, goals, ctx)
        if threat.norm == "none" and goals.targets is not None and self.params.start == "class":
            search.walk(bank.starts, goals.targets)
        else:
            search.follow()
        found = victim.best()
        if threat.norm == "none":
            # The record's distances are those to the original; this one is to the stylised video.
            apart = (found - styled).abs().flatten(1).amax(dim=1)
            ctx.log(range(len(video)), eps=apart.tolist())
        return found

    def stylised(self, video: Tensor, goals: Goals, bank: StyleBank) -> Tensor:
        """Return each video in the style chosen for it, ``[B, T, C, H, W]`` in [0, 1]."""
        params = self.params
        found = torch.empty_like(video)
        # One by one: convolutions round differently in batches of another size.
        for row, clip in enumerate(video):
            target = None if goals.targets is None else int(goals.targets[row])
            chosen = bank.choice(clip, int(goals.labels[row]), target, params.confidence_weight)
            style = bank.pictures[chosen].to(video) / 255
            if self._gatys is None:
                drawn = statistics_matched(clip, style)
            else:
                drawn = self._gatys(clip, style)
            found[row] = drawn if params.strength == 1 else clip.lerp(drawn, params.strength)
        return found


class _Search:
    """The refinement of a batch."""

    def __init__(
        self,
        params: StylefoolParams,
        victim: Victim,
        video: Tensor,
        styled: Tensor,
        goals: Goals,
        ctx: AttackContext,
    ) -> None:
        self.params = params
        self.ctx = ctx
        self.goals = goals
        self.video = video
        self.styled = styled
        threat = ctx.threat
        self.last = video.new_full((len(video),), params.radius)
        # With a norm, the threat's own ball is where answers are; else the one around the style.
        ball = Ball(threat, video) if threat.norm == "linf" else None
        loss = score_loss(params.loss, goals)
        self.near = Queries(
            victim, goals, threat, video, loss, ball=ball or Box(threat, video, styled, self.last)
        )
        self.slope = self._estimate(self.near, "")
        self.steps = Steps(
            self._sizes(),
            least=params.least_step,
            plateau=params.plateau,
            choosy=params.accept_only_better,
        )

    def follow(self) -> None:
        """Search from the stylised videos on."""
        losses = self.near.look(self.styled)
        follow(
            self.near, self.styled, losses, self.steps, self.slope,
            iterations=self.params.iterations, norm="linf",
        )  # fmt: skip

    def walk(self, starts: dict[int, Tensor], targets: Tensor) -> None:
        """Search from videos of the target classes on, where there are such."""
        threat, victim = self.ctx.threat, self.near.victim
        losses = self.near.look(self.styled)
        box = Box(threat, self.video, self.styled, 1.0)
        away = Queries(victim, self.goals, threat, self.video, "ce", ball=box, candidates=False)
        begin = self._begin(starts, targets, box)
        rows = self._recognised(away, begin, starts, targets)
        last = box.reach(self.last)
        walk = Walk(away, targets, box, last, begin, rows, self._sizes())
        losses[rows] = torch.inf
        points, slope = self.styled.clone(), self._estimate(away, "walk")
        self.steps.begin(losses)
        direction = steepest("linf")
        for _ in range(self.params.iterations):
            rows = self.near.going_on(3)
            if not rows.numel():
                return
            far = rows[walk.under_way[rows]]
            if far.numel():
                walk.advance(far, slope)
                arrived = far[~walk.under_way[far]]
                points[arrived] = walk.points[arrived]
            near = rows[~torch.isin(rows, far)]
            if near.numel():
                advance(self.near, points, near, self.steps, self.slope, direction)

    def _begin(self, starts: dict[int, Tensor], targets: Tensor, box: Box) -> Tensor:
        """Return where walks begin: videos of the target classes, in the shape of the attacked."""
        found = self.styled.clone()
        frames, size = self.video.shape[1], (self.video.shape[3], self.video.shape[4])
        for row, target in enumerate(targets.tolist()):
            if target in starts:
                clip = starts[target].to(self.video).unsqueeze(0) / 255
                one = torch.tensor([row], device=found.device)
                found[row] = box(place(clip, frames, size), one)[0]
        return found

    def _recognised(
        self, away: Queries, begin: Tensor, starts: dict[int, Tensor], targets: Tensor
    ) -> Tensor:
        """Return the rows whose start the model takes for the target; a query for each start."""
        rows = away.able(1)
        known = [target in starts for target in targets[rows].tolist()]
        rows = rows[torch.tensor(known, dtype=torch.bool, device=rows.device)]
        if not rows.numel():
            return rows
        scores = away.victim.scores(begin[rows], rows, candidate=False)
        return rows[scores.argmax(dim=1) == targets[rows]]

    def _estimate(self, queries: Queries, stream: str) -> NesSlope:
        params = self.params
        random = self.ctx.random.child(stream) if stream else self.ctx.random
        return NesSlope(
            queries,
            Cells(self.video, params.grid),
            random,
            pairs=params.samples // 2,
            sigma=params.sigma,
            momentum=params.momentum,
        )

    def _sizes(self) -> Tensor:
        """Return first steps ``[B, T or 1, 1, 1, 1]``."""
        step, threat = self.params.step, self.ctx.threat
        like = self.last.view(-1, 1, 1, 1, 1)
        if step != "auto":
            return torch.full_like(like, step)
        radius = threat.radius(self.video) if threat.norm == "linf" else like
        return (_STEP_SHARE * radius).expand(len(self.video), -1, -1, -1, -1)
