"""Trade a full-reference quality metric against the classifier's loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from vcr_core.components import build
from vcr_core.config.objects import choose_component
from vcr_core.errors import ComponentUnavailable, ContractViolation, IncompatibleComponents
from vcr_core.protocols import BaseVideoAttack, DifferentiableMetric

from vcr_attacks.optimiser_loop import Adam, optimise
from vcr_attacks.params.perceptual import ZhangDistsParams, ZhangLpipsParams, ZhangParams
from vcr_attacks.sign_loop import Ball, answer, unit_l2

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

_PROBE_SIDE = 64


class Zhang(BaseVideoAttack):
    """Adam on ``loss + weight * distance(clean, video)``.

    Zhang, Li, Min, Zhai, Guo, Yang, Ma, "Perceptual Attacks of No-Reference Image Quality Models
    with Human-in-the-Loop", NeurIPS 2022, equations (2) and (3), for classifiers of videos: the
    constraint is a full-reference metric in the Lagrangian, averaged over frames, not a radius. The
    gradient of each video is divided by its L2 norm before Adam. Starts at one level of noise,
    because the distance has no gradient at the clean video. Costs at most ``steps`` gradients of
    the victim and of the metric, and one forward pass.

    ``weight_search = "bisect"`` looks, for each video, for the largest weight at which it falls, in
    ``rounds`` runs of this cost, and returns the latest success at that weight.

    The best point of a run is chosen by success and loss alone, as of every attack here; with
    ``protocol.stop = "first_success"`` that is the first, and least changed, success.
    """

    metric: ClassVar[str]
    """Registry name of the metric."""

    def __init__(self, params: ZhangParams | None = None) -> None:
        self.params = params or ZhangParams()
        self.distance = differentiable_metric(self.metric, **self._options())

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``none`` or ``linf``, and one generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            IncompatibleComponents: if the metric cannot compare frames of this size, or for
                ``weight_search = "bisect"`` with a stop rule other than ``budget``.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        if params.weight_search == "bisect" and victim.rules.stop != "budget":
            raise IncompatibleComponents(
                f"{type(self).__name__}: weight_search = 'bisect' goes on after a success; "
                "set protocol.stop = 'budget'"
            )
        ball = Ball(threat, video)
        noise = ctx.random.integers(-1, 1, *video.shape[1:]).to(video) / 255
        everyone = torch.arange(len(video), device=video.device)
        start = ball(video + self._inside(noise), everyone)
        weights = video.new_full((len(video),), params.weight)
        if params.weight_search == "fixed":
            last, _ = self._run(victim, video, start, ball, weights)
            return answer(victim, last, params.keep)
        # The largest weight at which a video falls, by halving steps on the logarithm.
        kept, best = victim.best(), torch.full_like(weights, -1)
        for halving in range(params.rounds):
            if not victim.active().numel():
                break
            latest, fell = self._run(victim, video, start, ball, weights)
            heavier = fell & (weights > best)
            kept, best = latest.where(_videos(heavier), kept), weights.where(heavier, best)
            weights = weights * 10 ** (0.5**halving * (2 * fell.to(weights) - 1))
        return kept.where(_videos(best >= 0), victim.best())

    def _run(
        self, victim: Victim, video: Tensor, start: Tensor, ball: Ball, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Descend once with a weight for each video.

        Returns:
            ``[B, T, C, H, W]``, the latest success of videos that fell and the last point of the
            others, and ``[B]`` bool, which fell.
        """
        params = self.params
        successes = start.clone()
        fell = torch.zeros_like(weights, dtype=torch.bool)

        def gradient(points: Tensor, rows: Tensor) -> Tensor:
            found = victim.loss_and_grad(points, rows, params.loss)
            now = victim.goals.achieved(found.logits, rows)
            successes[rows[now]], fell[rows[now]] = points[now], True
            grad = found.grad
            if params.weight > 0:
                grad = grad + _videos(weights[rows]) * self._pull(video[rows], points)
            return unit_l2(self._inside(grad))

        last = optimise(
            victim,
            start,
            gradient,
            lambda points, _rows: points,
            steps=params.steps,
            adam=Adam(video, params.lr),
            bound=ball,
        )
        return successes.where(_videos(fell), last), fell

    def _options(self) -> dict[str, Any]:
        """Return the parameters of the metric."""
        return {}

    def _pull(self, clean: Tensor, points: Tensor) -> Tensor:
        """Return the gradient of each video's mean distance, some frames at a time."""
        frames = clean.shape[1]
        parts = []
        for first in range(0, frames, self.params.chunk_frames):
            chosen = slice(first, first + self.params.chunk_frames)
            leaf = points[:, chosen].detach().requires_grad_()
            with torch.enable_grad():
                value = self.distance.distance(clean[:, chosen], leaf).sum()
            (grad,) = torch.autograd.grad(value, leaf)
            parts.append(grad * (leaf.shape[1] / frames))
        # Where both are equal, distances with a root or a quotient have no gradient.
        return torch.cat(parts, dim=1).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    def _inside(self, change: Tensor) -> Tensor:
        """Return ``change`` with zeros along the border of each frame, in place."""
        width = self.params.border
        if width:
            change[..., :width, :] = change[..., -width:, :] = 0
            change[..., :, :width] = change[..., :, -width:] = 0
        return change


def _videos(values: Tensor) -> Tensor:
    return values.view(-1, 1, 1, 1, 1)


class ZhangSsim(Zhang):
    """:class:`Zhang` with ``1 - SSIM``."""

    metric = "ssim"


class ZhangLpips(Zhang):
    """:class:`Zhang` with LPIPS, from a backbone that is on this machine."""

    metric = "lpips"
    params: ZhangLpipsParams

    def __init__(self, params: ZhangLpipsParams | None = None) -> None:
        super().__init__(params or ZhangLpipsParams())

    def _options(self) -> dict[str, Any]:
        return {"net": self.params.net, "backbone": self.params.backbone}


class ZhangDists(Zhang):
    """:class:`Zhang` with DISTS, from a backbone that is on this machine."""

    metric = "dists"
    params: ZhangDistsParams

    def __init__(self, params: ZhangDistsParams | None = None) -> None:
        super().__init__(params or ZhangDistsParams())

    def _options(self) -> dict[str, Any]:
        return {"backbone": self.params.backbone}


def differentiable_metric(name: str, **params: Any) -> DifferentiableMetric:
    """Return a registered metric that offers a distance, tried on two pictures.

    Args:
        name: its registry name.
        **params: its parameters.

    Raises:
        ComponentUnavailable: if no such metric is installed, or it offers no distance.
        ContractViolation: if the distance of equal videos is not 0, or more noise is not more.
    """
    metric = build(choose_component("metric", name, params))
    if not isinstance(metric, DifferentiableMetric):
        raise ComponentUnavailable(
            f"metric {name!r} offers no differentiable distance; an attack cannot minimise it"
        )
    side = torch.linspace(0.2, 0.8, _PROBE_SIDE)
    clean = (side.view(-1, 1) * side).expand(1, 1, 3, -1, -1)
    checks = (torch.arange(_PROBE_SIDE).view(-1, 1) + torch.arange(_PROBE_SIDE)) % 2 - 0.5
    with torch.no_grad():
        same, near, far = (float(metric.distance(clean, clean + a * checks)) for a in (0, 0.1, 0.3))
    if not (abs(same) < 1e-4 and same < near < far):
        raise ContractViolation(
            f"metric {name!r}: distances {same:.4g}, {near:.4g} and {far:.4g} at noise 0, 0.1 and "
            "0.3; a distance is 0 for equal videos and grows"
        )
    return metric
