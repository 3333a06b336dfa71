"""Attack on the similarity of features that leaves low frequencies alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam, optimise
from vcr_attacks.params.perceptual import SsahParams
from vcr_attacks.sign_loop import Ball, answer
from vcr_attacks.ssah_bank import BANK_FILE, collect, read_bank

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext, PrepareContext
    from vcr_core.victim import Victim

_SHRINK = 1 - 1e-6


class Ssah(BaseVideoAttack):
    """SSAH: away from the video's own features, towards dissimilar ones, in high frequencies.

    Luo, Lin, Xie, Wu, Zhao, Zhang, Tao, "Frequency-driven Imperceptible Adversarial Attack on
    Semantic Similarity", CVPR 2022, equations (2) to (9). Adam on ``w = arctanh(2x - 1)``
    minimises :func:`dissimilarity` plus ``weight`` times the change of the Haar approximation
    band of every frame.

    The authors move towards the least similar picture of the mini-batch, which makes a result
    depend on its neighbours. The default moves towards the least similar of reference videos whose
    features were prepared; targeted, towards the one of the target class that the model is surest
    of. ``negatives = "own"`` looks among changed versions of the video itself and needs nothing
    prepared.

    Costs, per video, 1 forward pass to begin with (5 with ``negatives = "own"``), then at most
    ``steps`` times two forward and one backward pass (features, then the judgement of the point;
    one forward pass with ``features = "logits"``), and one at the end. Uses no randomness.
    """

    def __init__(self, params: SsahParams | None = None) -> None:
        self.params = params or SsahParams()

    def prepare(self, ctx: PrepareContext) -> None:
        """Write ``bank.safetensors``, the pooled features of the training videos.

        Costs two forward passes a training video. Stops and goes on every 16 videos.

        Raises:
            NotAvailable: if the model has no such layer.
        """
        if (ctx.folder / BANK_FILE).exists():
            return
        (first,) = ctx.load(ctx.items[:1])
        layer = self._layer(ctx.victim(first))

        def features(victim: Victim, video: Tensor) -> Tensor:
            rows = torch.arange(len(video), device=video.device)
            return self._features(victim, video, rows, layer)

        collect(ctx, features, layer)

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos.

        Args:
            victim: white-box access, of a model with feature layers.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``none`` or ``linf``, and the folder of the artifact.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            IncompatibleComponents: for ``negatives = "batch"`` with a single video, or for a
                target without ``negatives = "bank"``.
            NotAvailable: if the model has no such layer, if nothing was prepared, or no video of a
                target class.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        if goals.targets is not None and params.negatives != "bank":
            raise IncompatibleComponents(
                f"ssah: negatives = {params.negatives!r} knows no videos of the target class; set "
                "attack.negatives = 'bank', or threat.targeted = false"
            )
        bank = read_bank(ctx.folder) if params.negatives == "bank" else None
        layer = self._layer(victim)
        everyone = torch.arange(len(video), device=video.device)
        with torch.no_grad():
            own = self._features(victim, video, everyone, layer).detach()
            if bank is None:
                other = self._negatives(victim, video, everyone, layer, own)
            elif goals.targets is None:
                other = bank.least_similar(own)
            else:
                other = bank.surest(goals.targets, own)
        low = low_band(video, temporal=params.temporal)
        ball = Ball(threat, video)

        def show(free: Tensor, rows: Tensor) -> Tensor:
            return ball(pixels(free), rows)

        def gradient(free: Tensor, rows: Tensor) -> Tensor:
            leaf = free.detach().requires_grad_()
            with torch.enable_grad():
                points = pixels(leaf)
                found = self._features(victim, points, rows, layer)
                value = dissimilarity(found, own[rows], other[rows], params.margin)
                if params.weight > 0:
                    band = low_band(points, temporal=params.temporal)
                    change = F.smooth_l1_loss(band, low[rows], reduction="none")
                    value = value + params.weight * change.flatten(1).sum(dim=1)
                (grad,) = torch.autograd.grad(value.sum(), leaf)
            if layer != "logits":
                # Features say nothing about the prediction; logits are judged as they are asked.
                victim.scores(show(free, rows), rows)
            return grad

        start = free_variables(video)
        last = optimise(
            victim,
            start,
            gradient,
            show,
            steps=params.steps,
            adam=Adam(start, params.lr),
            bound=lambda free, rows: free_variables(show(free, rows)),
        )
        return answer(victim, last, params.keep)

    def _layer(self, victim: Victim) -> str:
        asked = self.params.features
        if asked == "logits":
            return asked
        offered = victim.feature_layers
        if not offered or (asked and asked not in offered):
            what = f"no feature layer {asked!r}" if asked else "no feature layers"
            raise NotAvailable(
                f"ssah: the model has {what} (it offers {', '.join(offered) or 'none'}); "
                "set attack.features to one of these or to 'logits'"
            )
        return asked or offered[-1]

    def _features(self, victim: Victim, video: Tensor, rows: Tensor, layer: str) -> Tensor:
        """Return one feature vector a video, ``[b, D]``, with a graph to ``video``."""
        if layer == "logits":
            return victim.logits(video, rows)
        return pooled(victim.features(video, rows, layer), len(rows))

    def _negatives(
        self, victim: Victim, video: Tensor, rows: Tensor, layer: str, own: Tensor
    ) -> Tensor:
        """Return the features ``[B, D]`` that are least similar to each video's own."""
        if self.params.negatives == "batch":
            if len(video) < 2:
                raise IncompatibleComponents(
                    "ssah: negatives = 'batch' needs another video in the batch, which holds one; "
                    "set attack.negatives = 'own'"
                )
            likeness = F.cosine_similarity(own[:, None], own[None], dim=2)
            return own[likeness.argmin(dim=1)]
        found = [
            self._features(victim, changed, rows, layer).detach() for changed in versions(video)
        ]
        options = torch.stack(found, dim=1)
        likeness = F.cosine_similarity(own[:, None], options, dim=2)
        return options[rows, likeness.argmin(dim=1)]


def dissimilarity(found: Tensor, own: Tensor, other: Tensor, margin: float) -> Tensor:
    """Return the self-paced loss ``[b]``; Luo et al., equations (4) to (6).

    ``max(0, w_p s_p - w_n s_n)`` with the similarities to the own and to the other features, and
    weights ``w_p = max(0, s_p - m)``, ``w_n = max(0, 1 + m - s_n)`` that are not differentiated.

    Args:
        found: features ``[b, D]`` of the perturbed videos.
        own: those of the clean ones.
        other: those to move towards.
        margin: m.
    """
    positive = F.cosine_similarity(found, own, dim=1)
    negative = F.cosine_similarity(found, other, dim=1)
    keep = (positive.detach() - margin).clamp_min(0)
    seek = (1 + margin - negative.detach()).clamp_min(0)
    return (keep * positive - seek * negative).clamp_min(0)


def low_band(video: Tensor, *, temporal: bool = False) -> Tensor:
    """Return ``[b, T, C, H, W]`` rebuilt from the Haar approximation band alone.

    In closed form every pixel becomes the mean of its 2x2 block (2x2x2 with ``temporal``). Odd
    sizes are padded by repeating the last row, column or frame.
    """
    frames, _, height, width = video.shape[1:]
    time = 2 if temporal else 1
    channels_first = video.transpose(1, 2)
    odd = (0, width % 2, 0, height % 2, 0, frames % time)
    blocks = F.avg_pool3d(F.pad(channels_first, odd, mode="replicate"), (time, 2, 2))
    rebuilt = blocks
    for axis, factor in ((2, time), (3, 2), (4, 2)):
        rebuilt = rebuilt.repeat_interleave(factor, dim=axis)
    return rebuilt[:, :, :frames, :height, :width].transpose(1, 2)


def pooled(features: Tensor, count: int) -> Tensor:
    """Return one vector a video, ``[count, D]``: the mean over views, frames, tokens and places.

    Args:
        features: activations whose first axis holds ``count`` videos with any number of views or
            frames each: ``[n, D]``, tokens ``[n, N, D]`` or maps ``[n, D, ...]``.
        count: number of videos.
    """
    grouped = features.reshape(count, -1, *features.shape[1:])
    if grouped.dim() == 4:
        grouped = grouped.mean(dim=2)
    elif grouped.dim() > 4:
        grouped = grouped.flatten(3).mean(dim=3)
    return grouped.mean(dim=1)


def versions(video: Tensor) -> list[Tensor]:
    """Return videos that show something else than ``video`` with the same pixels.

    Backwards in time, turned by half, still, and in inverted colours; all ``[B, T, C, H, W]``.
    """
    still = video[:, :1].expand_as(video)
    return [video.flip(1), video.flip(3, 4), still, 1 - video]


def pixels(free: Tensor) -> Tensor:
    """Return ``(tanh(w) + 1) / 2``, in [0, 1]."""
    return (free.tanh() + 1) / 2


def free_variables(video: Tensor) -> Tensor:
    """Return ``arctanh(2x - 1)``, with x kept 5e-7 away from 0 and 1."""
    return (2 * video - 1).clamp(-_SHRINK, _SHRINK).atanh()
