"""Metered access to the model under attack: counting, budgets, best points, stop rules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from vcr_core.accounts import Meter as Meter
from vcr_core.accounts import Rules as Rules
from vcr_core.errors import BudgetExhausted, ContractViolation, NotAvailable, NotDifferentiable
from vcr_core.losses import Loss
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.threat import Storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from vcr_core.adaptive import View
    from vcr_core.goals import Goals
    from vcr_core.metering import GuardedModel
    from vcr_core.threat import ThreatModel

LossFn: TypeAlias = "Loss | Callable[[Tensor, Tensor], Tensor]"
"""A name from ``vcr_core.losses``, or a function of logits ``[b, K]`` and rows ``[b]``."""

RANDOMNESS_TOLERANCE = 1e-3
"""Difference in probability between equal queries that no batch size explains."""


@dataclass(frozen=True, slots=True)
class LossGrad:
    """Result of a gradient query; unpacks as ``loss, grad, logits``.

    Attributes:
        loss: ``[b]``.
        grad: same shape as the queried videos, gradient of the sum of losses.
        logits: ``[b, K]`` aggregated log-probabilities.
    """

    loss: Tensor
    grad: Tensor
    logits: Tensor

    def __iter__(self) -> Any:
        """Iterate over loss, grad and logits."""
        return iter((self.loss, self.grad, self.logits))


class Victim:
    """All that an attack sees of the model.

    Queries are answered on the point as it would be stored: rounded to 8 bits where the threat
    says so, with the gradient passed straight through the rounding. A success that is seen here is
    therefore one of the clip that would be returned.

    A video without budget is answered with its last known values and a zero gradient, without a
    pass of the model; the answer for it is its best point. A call in which no video has budget
    left raises :class:`~vcr_core.errors.BudgetExhausted`.

    Args:
        view: the function under attack.
        clean: ``[B, T, C, H, W]`` clean videos.
        goals: what counts as success.
        threat: the threat model.
        ids: video ids.
        seed: run seed.
        rules: access, budgets and stop rule.
        role: seed role of the defense's draws.
        storage: how these videos are stored under this threat, if it is at hand.
        clean_logits: what the view answered on ``clean``, to notice undeclared randomness for free.
    """

    def __init__(
        self,
        view: View,
        clean: Tensor,
        goals: Goals,
        threat: ThreatModel,
        *,
        ids: Sequence[str],
        seed: int,
        rules: Rules | None = None,
        role: str = "defense",
        clean_logits: Tensor | None = None,
        storage: Storage | None = None,
    ) -> None:
        self.goals = goals
        self.device = clean.device
        self.meters = [Meter() for _ in ids]
        self.rules = rules or Rules()
        self.undeclared_randomness = False
        self._view = view
        self._clean = clean
        self._best = clean.clone()
        self._ids = tuple(ids)
        self._seed = seed
        self._role = role
        self._quantize = threat.quantize
        self._stored = storage or Storage(threat, clean)
        self._last: Tensor | None = None
        self._spare: Tensor | None = None
        self._every = torch.arange(len(self._ids), device=self.device)
        self._clean_logits = clean_logits

    def __len__(self) -> int:
        """Return the number of videos."""
        return len(self._ids)

    @property
    def stochastic(self) -> bool:
        """Whether two equal queries may be answered differently."""
        return self._view.stochastic

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self._view.model.labels)

    # -- queries -------------------------------------------------------------------------------

    def loss_and_grad(
        self, video: Tensor, rows: Tensor | None = None, loss: LossFn = "ce"
    ) -> LossGrad:
        """Return loss, gradient and logits at ``video``; access ``white-box``.

        Costs ``eot`` forwards and backwards a video. With ``eot`` above 1 the loss and gradient
        are means over draws of the defense, the logits those of the mean probability.

        Args:
            video: ``[b, T, C, H, W]``.
            rows: which videos of the batch; all when absent.
            loss: what to minimise.

        Raises:
            BudgetExhausted: if none of the rows has budget left.
            NotDifferentiable: if the gradient does not reach the pixels.
        """
        self._need("loss_and_grad", "white-box")
        rows = self._rows(rows)
        draws = self.rules.eot
        allowed = self._affordable(rows, forwards=draws, backwards=draws)
        everyone = bool(allowed.all())
        live = rows if everyone else rows[allowed]
        point = self._store(video.detach() if everyone else video.detach()[allowed], live)
        total = grad = None
        outputs = []
        for _ in range(draws):
            leaf = point.detach().requires_grad_()
            with torch.enable_grad(), self._permit():
                logits = self._view(leaf, self._random(live))
                value = self._loss(logits, live, loss)
                step = self._gradient(value, leaf)
            self._count(live, forwards=1, backwards=1)
            outputs.append(logits.detach())
            total = value.detach() if total is None else total + value.detach()
            grad = step if grad is None else grad.add_(step)
        if total is None or grad is None:  # pragma: no cover - eot is at least 1
            raise ContractViolation("eot must be at least 1")
        logits = outputs[0]
        if draws > 1:
            total, grad = total / draws, grad.div_(draws)
            logits = torch.stack(outputs).logsumexp(dim=0) - math.log(draws)
        self._check_gradient(live, grad)
        self._observe(point, live, logits)
        for row in live.tolist():
            self.meters[row].iterations += 1
        if everyone:
            return LossGrad(total, grad, logits)
        full_grad = video.new_zeros(video.shape)
        full_grad[allowed] = grad
        full_loss = total.new_zeros(len(rows))
        full_loss[allowed] = total
        return LossGrad(full_loss, full_grad, self._filled(rows, allowed, logits))

    def logits(self, video: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ``[b, K]`` with a graph to ``video``; access ``white-box``; 1 forward a video.

        A backward pass through the result counts as 1 backward a video.
        """
        self._need("logits", "white-box")
        rows = self._rows(rows)
        allowed = self._affordable(rows, forwards=1)
        if not bool(allowed.all()):
            raise BudgetExhausted("a video of this query has no forward pass left")
        point = _straight_through(video, self._stored(video.detach(), rows))
        with torch.enable_grad(), self._permit():
            logits = self._view(point, self._random(rows))
        self._count(rows, forwards=1)
        self._observe(point.detach(), rows, logits.detach())
        if logits.requires_grad:
            logits.register_hook(  # type: ignore[no-untyped-call]
                lambda _grad: self._count(rows, backwards=1)
            )
        return logits

    def scores(
        self, video: Tensor, rows: Tensor | None = None, *, candidate: bool = True
    ) -> Tensor:
        """Return ``[b, K]`` aggregated log-probabilities without gradient; 1 forward a video.

        ``rows`` may name a video several times: each candidate counts. Access ``score`` or
        ``white-box``.

        With ``candidate = False`` the points are no possible answers, for instance those of a walk
        that begins at another video: they count like all others, are rounded but not moved into
        the ball, and can neither succeed nor become the best point.
        """
        self._need("scores", "white-box", "score")
        return self._query(video, rows, candidate=candidate)

    def labels(self, video: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ``[b]`` predicted classes; 1 forward a video."""
        self._need("labels", "white-box", "score", "decision")
        return self._query(video, rows).argmax(dim=1)

    def features(self, video: Tensor, rows: Tensor | None, layer: str) -> Tensor:
        """Return the activations of a named layer with a graph to ``video``; 1 forward a video.

        The point is the one that would be stored, behind the defenses of an adaptive contest. It is
        not judged: ask for scores to learn whether it succeeds. A backward pass through the result
        counts as 1 backward a video.

        Raises:
            NotAvailable: if the model offers no such layer, or a defense hides it.
        """
        self._need("features", "white-box")
        if not hasattr(self._classifier(), "features"):
            raise NotAvailable(f"the model offers no features, so not layer {layer!r} either")
        rows = self._rows(rows)
        if not bool(self._affordable(rows, forwards=1).all()):
            raise BudgetExhausted("a video of this query has no forward pass left")
        point = _straight_through(video, self._stored(video.detach(), rows))
        asked: Any = self._view.model
        with torch.enable_grad(), self._permit():
            features = self._view.features(
                point, self._random(rows), lambda clips: asked.features(clips, layer)
            )
        self._count(rows, forwards=1)
        if features.requires_grad:
            features.register_hook(  # type: ignore[no-untyped-call]
                lambda _grad: self._count(rows, backwards=1)
            )
        return features

    @property
    def feature_layers(self) -> tuple[str, ...]:
        """Names that :meth:`features` takes, from the pixels to the head; may be empty."""
        return tuple(getattr(self._classifier(), "feature_layers", ()))

    # -- state ---------------------------------------------------------------------------------

    def active(self) -> Tensor:
        """Return the rows ``[a]`` int64 that are neither done nor out of budget."""
        rows = [i for i, m in enumerate(self.meters) if not (m.done or m.exhausted)]
        return torch.tensor(rows, dtype=torch.int64, device=self.device)

    def best(self, rows: Tensor | None = None) -> Tensor:
        """Return each video's best point so far: first success, else lowest loss; else clean."""
        return self._best.clone() if rows is None else self._best[rows]

    def remaining(self, row: int) -> int | None:
        """Return how many forward passes a video has left; ``None`` for no limit."""
        limit = self.rules.max_forwards
        return None if limit is None else limit - self.meters[row].forwards

    def give_up(self, rows: Tensor) -> None:
        """End videos whose budget holds some queries, but not what the attack would ask next.

        They count as exhausted: no longer active, and answered with their best point.
        """
        for row in rows.tolist():
            self.meters[row].exhausted = True

    # -- inside --------------------------------------------------------------------------------

    def _classifier(self) -> Any:
        model: Any = self._view.model
        return getattr(model, "model", model)

    def _query(self, video: Tensor, rows: Tensor | None, *, candidate: bool = True) -> Tensor:
        rows = self._rows(rows)
        allowed = self._affordable(rows, forwards=1)
        everyone = bool(allowed.all())
        live = rows if everyone else rows[allowed]
        asked = video.detach() if everyone else video.detach()[allowed]
        point = self._store(asked, live) if candidate else self._elsewhere(asked)
        with torch.no_grad(), self._permit():
            logits = self._view(point, self._random(live))
        self._count(live, forwards=1)
        if candidate:
            self._observe(point, live, logits)
        else:
            self._note(live, logits)
        return logits if everyone else self._filled(rows, allowed, logits)

    def _elsewhere(self, video: Tensor) -> Tensor:
        """Return any video as 8 bits hold it, where the threat says so."""
        return (video * 255).round_().clamp_(0, 255).div_(255) if self._quantize else video.clone()

    def _note(self, rows: Tensor, logits: Tensor) -> None:
        """Remember the last answer of each video."""
        if self._last is None:
            self._last = logits.new_zeros(len(self), logits.shape[1])
        self._last[rows] = logits

    def _store(self, video: Tensor, rows: Tensor) -> Tensor:
        """Return what is stored of ``video``; of a whole batch in a buffer that is used again."""
        if not self._whole(rows):
            return self._stored(video, rows)
        if self._spare is None:
            self._spare = torch.empty_like(self._clean)
        return self._stored(video, out=self._spare)

    def _whole(self, rows: Tensor) -> bool:
        """Return whether ``rows`` are all videos in order, so that nothing needs gathering."""
        return len(rows) == len(self) and bool((rows == self._every).all())

    def _rows(self, rows: Tensor | None) -> Tensor:
        return self._every if rows is None else rows.to(self.device)

    def _need(self, call: str, *access: str) -> None:
        if self.rules.access not in access:
            raise ContractViolation(
                f"victim.{call} needs access {' or '.join(access)}; "
                f"the attack declared {self.rules.access!r}"
            )

    def _permit(self) -> Any:
        model: GuardedModel | Any = self._view.model
        return model.permit() if hasattr(model, "permit") else _Nothing()

    def _random(self, rows: Tensor) -> VideoRandom:
        if not self.stochastic:
            return VideoRandom([0] * len(rows), self.device)
        seen: dict[int, int] = {}
        seeds = []
        for row in rows.tolist():
            ahead = seen.get(row, 0)
            seen[row] = ahead + 1
            repeat = self.meters[row].forwards + ahead
            seeds.append(derive_seed(self._seed, self._ids[row], self._role, repeat))
        return VideoRandom(seeds, self.device)

    def _loss(self, logits: Tensor, rows: Tensor, loss: LossFn) -> Tensor:
        if callable(loss):
            return loss(logits, rows)
        return self.goals.loss(logits, rows, loss)

    def _gradient(self, value: Tensor, leaf: Tensor) -> Tensor:
        if not value.requires_grad:
            raise NotDifferentiable(
                "the gradient does not reach the pixels: the model or a defense cuts the graph"
            )
        (grad,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
        if grad is None:
            raise NotDifferentiable(
                "the gradient does not reach the pixels: the model or a defense cuts the graph"
            )
        return grad

    def _affordable(self, rows: Tensor, *, forwards: int, backwards: int = 0) -> Tensor:
        """Return which entries the budget covers; mark videos that it does not as exhausted."""
        rules = self.rules
        if rules.max_forwards is None and rules.max_backwards is None:
            return torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        asked: dict[int, int] = {}
        allowed = []
        for row in rows.tolist():
            meter, ahead = self.meters[row], asked.get(row, 0)
            fits = _fits(meter.forwards + ahead * forwards, forwards, rules.max_forwards)
            fits &= _fits(meter.backwards + ahead * backwards, backwards, rules.max_backwards)
            if fits:
                asked[row] = ahead + 1
            else:
                meter.exhausted = True
            allowed.append(fits)
        if not any(allowed):
            raise BudgetExhausted("no video of this query has budget left")
        return torch.tensor(allowed, device=rows.device)

    def _count(self, rows: Tensor, *, forwards: int = 0, backwards: int = 0) -> None:
        for row in rows.tolist():
            self.meters[row].forwards += forwards
            self.meters[row].backwards += backwards

    def _check_gradient(self, rows: Tensor, grad: Tensor) -> None:
        """Count zero gradients and refuse those that are not finite, cheaply."""
        # Two plain maxima are several times faster than an infinity norm or isfinite.
        flat = grad.flatten(1)
        peaks = flat.amax(dim=1).maximum(-flat.amin(dim=1)).tolist()
        for row, peak in zip(rows.tolist(), peaks, strict=True):
            if not math.isfinite(peak):
                raise ContractViolation("the gradient at the pixels is not finite (NaN or inf)")
            self.meters[row].zero_gradients += peak == 0

    def _filled(self, rows: Tensor, allowed: Tensor, logits: Tensor) -> Tensor:
        if self._last is None:  # pragma: no cover - _observe has just run
            raise ContractViolation("no logits are known yet")
        full = self._last[rows].clone()
        full[allowed] = logits
        return full

    def _observe(self, points: Tensor, rows: Tensor, logits: Tensor) -> None:
        """Keep the best points and decide which videos are done."""
        if self._last is None:
            self._compare_with_clean(points, rows, logits)
        self._note(rows, logits)
        losses = self.goals.loss(logits, rows).tolist()
        achieved = self.goals.achieved(logits, rows).tolist()
        labels = self.goals.labels[rows].unsqueeze(1)
        p_label = logits.gather(1, labels).exp().squeeze(1).tolist()
        better: list[int] = []
        later = Counter(rows.tolist())
        for i, row in enumerate(rows.tolist()):
            meter = self.meters[row]
            # Candidates of one call count one after another, as a sequential attacker asks them.
            later[row] -= 1
            asked = meter.forwards - later[row]
            meter.trace.append((asked, losses[i], p_label[i]))
            if achieved[i] and meter.queries_to_first_success is None:
                meter.queries_to_first_success = asked
            if meter.done and self.rules.stop != "budget":
                continue
            if achieved[i] and self.stochastic:
                achieved[i] = self._confirmed(points[i : i + 1], row)
            if (achieved[i], -losses[i]) > (meter.achieved, -meter.loss):
                meter.achieved, meter.loss = achieved[i], losses[i]
                better.append(i)
            if achieved[i] and self.rules.stop != "budget":
                enough = self.rules.stop == "first_success" or not self.goals.targeted
                meter.done = enough or self._is_sure(logits[i], row)
        if len(better) == len(self) and points is self._spare:
            self._best, self._spare = points, self._best
        else:
            for i in better:
                self._best[rows[i]] = points[i]

    def _is_sure(self, logits: Tensor, row: int) -> bool:
        rows = torch.tensor([row], device=self.device)
        sure = self.goals.confidence(logits.unsqueeze(0), rows)
        return float(sure) >= self.rules.confidence

    def _compare_with_clean(self, points: Tensor, rows: Tensor, logits: Tensor) -> None:
        if self._clean_logits is None or self.stochastic:
            return
        if torch.equal(points, self._clean[rows]):
            gap = (logits.exp() - self._clean_logits[rows].exp()).abs().amax()
            self.undeclared_randomness = float(gap) > RANDOMNESS_TOLERANCE

    def _confirmed(self, point: Tensor, row: int) -> bool:
        """Return whether a random victim loses ``confirm`` further draws, which are counted."""
        if self.rules.stop == "budget":
            return True
        rows = torch.tensor([row], device=self.device)
        for _ in range(self.rules.confirm):
            left = self.remaining(row)
            if left is not None and left < 1:
                self.meters[row].exhausted = True
                return False
            with torch.no_grad(), self._permit():
                logits = self._view(point, self._random(rows))
            self._count(rows, forwards=1)
            if not bool(self.goals.achieved(logits, rows)):
                return False
        return True


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _fits(used: int, more: int, limit: int | None) -> bool:
    return limit is None or used + more <= limit


def _straight_through(video: Tensor, stored: Tensor) -> Tensor:
    if not video.requires_grad:
        return stored
    return video + (stored - video).detach()
