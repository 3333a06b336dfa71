"""Background mixup with temporal consistency, a transfer attack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import torch
from safetensors.torch import load
from vcr_core.errors import NotAvailable
from vcr_core.losses import cross_entropy
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.backgrounds import fitted, mixture
from vcr_attacks.consistency import ConsistentLoss
from vcr_attacks.mixer import Mixer, features
from vcr_attacks.mixer_training import BACKGROUNDS_FILE, MIXER_FILE, REPORT_FILE, train
from vcr_attacks.params.prepared import BmtcParams
from vcr_attacks.sign_loop import Ball, descend, steepest, step_sizes

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext, PrepareContext
    from vcr_core.victim import LossFn, Victim


class Bmtc(BaseVideoAttack):
    """BMTC: start at a mixture with chosen backgrounds, then sign steps on a surrogate.

    Li, Ni, Pang, "Temporal Consistency Constrained Transferable Adversarial Attacks with Background
    Mixup for Action Recognition", IJCAI 2025. Beforehand a policy learns by reward which of the
    training videos' backgrounds to mix into which frame; then
    ``x'_0 = project(gamma * x + (1 - gamma) * B[a])`` and sign steps of ``eps / steps`` against
    the gradient of ``L + consistency * sum_t (1 - cos(d_t, d_{t+1}))``, ``d_t`` the surrogate's
    gradient at frame ``t``. Everything stays in the ball around the *clean* video.

    The model under attack is never asked. Costs ``steps`` forwards of the surrogate, and
    2 backwards each (1 with ``consistency = 0``).
    """

    def __init__(self, params: BmtcParams | None = None) -> None:
        self.params = params or BmtcParams()

    def prepare(self, ctx: PrepareContext) -> None:
        """Write ``backgrounds.safetensors``, ``mixer.safetensors`` and ``training.json``.

        Costs a forward of the surrogate for every training video, and a gradient for each of them
        and of ``mixer_epochs``. Stops and goes on at ends of epochs.
        """
        if not (ctx.folder / MIXER_FILE).exists():
            train(self.params, ctx)

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: not asked.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: untargeted.
            ctx: the threat model, the surrogate and the folder of the artifact.

        Raises:
            NotAvailable: if nothing was prepared.
            NotDifferentiable: if the surrogate has no second derivative.
        """
        params = self.params
        if ctx.threat.is_zero:
            return video.clone()
        backgrounds, mixer, classes = _prepared(ctx)
        seen = features(video).cpu()
        actions = mixer.choice(seen)
        if params.sample:
            chances = mixer.logits(seen).softmax(dim=-1)
            draws = ctx.random.uniform(video.shape[1], 1).to(chances)
            actions = (chances.cumsum(dim=-1) < draws).sum(dim=-1).clamp_max(len(mixer.bias) - 1)
        actions = actions.to(video.device)
        ball = Ball(ctx.threat, video)
        rows = torch.arange(len(video), device=video.device)
        start = ball(mixture(video, fitted(backgrounds, video), actions, params.gamma), rows)
        surrogate = ctx.surrogate(params.surrogate)
        return descend(
            cast("Victim", ConsistentLoss(surrogate, params.consistency)),
            start,
            ball,
            steps=params.steps,
            sizes=self._sizes(ctx, video),
            direction=steepest(ctx.threat.norm),
            loss=self._loss(goals, classes.to(video.device)[actions]),
        )

    def _sizes(self, ctx: AttackContext, video: Tensor) -> Tensor:
        """Return the step of each video; by default the radius over the number of steps."""
        steps, step, threat = self.params.steps, self.params.step, ctx.threat
        if step == "auto" and threat.per_frame_eps is None and isinstance(threat.eps, float | int):
            step = threat.eps / steps
        if step != "auto":
            return step_sizes(step, steps, threat, video)
        return step_sizes("auto", steps, threat, video) / 2.5

    def _loss(self, goals: Goals, classes: Tensor) -> LossFn:
        """Return the goals' loss, with the attraction to the backgrounds' classes if asked for.

        Args:
            goals: of the contest.
            classes: ``[B, T]``, the class of each frame's background.
        """
        params = self.params
        if not params.guidance:
            return params.loss

        def guided(logits: Tensor, rows: Tensor) -> Tensor:
            wanted = classes[rows]
            pull = [
                cross_entropy(logits, wanted[:, t], wanted[:, t]) for t in range(wanted.shape[1])
            ]
            return goals.loss(logits, rows, params.loss) + params.guidance * torch.stack(pull).mean(
                0
            )

        return guided


def _prepared(ctx: AttackContext) -> tuple[Tensor, Mixer, Tensor]:
    """Return backgrounds, mixer and the backgrounds' classes."""
    folder = ctx.folder
    if folder is None or not (folder / MIXER_FILE).is_file():
        raise NotAvailable(
            "attack bmtc has no backgrounds and no mixer; make them with 'vcr prepare bmtc' and "
            "the options of the run"
        )
    backgrounds = load((folder / BACKGROUNDS_FILE).read_bytes())["backgrounds"]
    policy = load((folder / MIXER_FILE).read_bytes())
    mixer = Mixer.uniform(*policy["weight"].shape)
    mixer.weight, mixer.bias = policy["weight"], policy["bias"]
    report: dict[str, Any] = json.loads((folder / REPORT_FILE).read_text(encoding="utf-8"))
    return backgrounds, mixer, torch.tensor(report["classes"])
