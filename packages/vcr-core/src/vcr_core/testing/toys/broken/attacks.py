"""Attacks that cheat or fail in ways that were seen elsewhere."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.testing.toys.attacks import SignDescent, Universal

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext, PrepareContext
    from vcr_core.victim import Victim


class _Broken:
    """Does what :class:`SignDescent` does, and then something that is not allowed."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return something that breaks a rule."""
        return self.spoil(SignDescent().attack(victim, video, goals, ctx), victim, video, ctx)

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Break the rule."""
        raise AssertionError("every broken attack defines this")


class HiddenQuery(_Broken):
    """Asks the model behind the victim's back."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Query the wrapped model without metering."""
        view: Any = victim._view
        view.model.logits(view.clips(result).flatten(0, 1))
        return result


class OutOfBall(_Broken):
    """Goes half a radius too far."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Stretch the perturbation."""
        return (video + 1.5 * (result - video)).clamp(0, 1)


class OutOfRange(_Broken):
    """Leaves [0, 1]."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Add without clamping."""
        return torch.where(result == result.amax(), result + 1.0, result)


class InPlace(_Broken):
    """Writes its result into the clean video."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Overwrite the input."""
        return video.copy_(result + 1e-3)


class NotANumber(_Broken):
    """Returns NaN, as a division by a zero gradient does."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Divide zero by zero."""
        return result + torch.zeros(()) / torch.zeros(())


class WrongShape(_Broken):
    """Returns frames without the batch axis."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Drop the axis."""
        return result.flatten(0, 1)


class WrongDtype(_Broken):
    """Returns doubles."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Convert."""
        return result.double()


class Attached(_Broken):
    """Returns a tensor with a graph."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Ask for a gradient."""
        return result.clone().requires_grad_()


class EditsModel(_Broken):
    """Leaves the model's parameters asking for gradients."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Change the flags of every parameter."""
        view: Any = victim._view
        network = getattr(view.model.model, "network", None)
        if network is not None:
            network.requires_grad_(requires_grad=True)
        return result


class GlobalRandom(_Broken):
    """Draws from Python's global generator."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Shift by an ambient draw."""
        shift = random.random() * 0.01  # noqa: S311
        return ctx.threat.project(result + shift, video)


class BatchNormalised(_Broken):
    """Mixes the videos of a batch."""

    def spoil(self, result: Tensor, victim: Victim, video: Tensor, ctx: AttackContext) -> Tensor:
        """Give each video the perturbation of the one before it."""
        weights = torch.linspace(0.5, 1.0, len(video)).view(-1, 1, 1, 1, 1)
        return video + weights * (result - video)


class FalseSuccess:
    """Claims success and returns the clean video."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the input, with a success in the log."""
        ctx.log(torch.arange(len(video)), loss=torch.zeros(len(video)), achieved=True)
        return video.clone()


class WrongSign:
    """Raises the loss, also of the target."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return videos that the model is surer about."""
        _, grad, _ = victim.loss_and_grad(video)
        return ctx.threat.project(video + ctx.threat.radius(video) * grad.sign(), video)


class IgnoresZero:
    """Adds one level even when nothing may change."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return a slightly brighter video."""
        return (video + 1 / 255).clamp(0, 1)


class ScoresWithGradient:
    """Says ``score`` in its spec and asks for a gradient."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Ask for a gradient."""
        return video - victim.loss_and_grad(video).grad


class PreparesAnew(Universal):
    """Trains again although the artifact is there."""

    def prepare(self, ctx: PrepareContext) -> None:
        """Write another file each time."""
        super().prepare(ctx)
        (ctx.folder / "log.txt").write_text(str(time.perf_counter_ns()), encoding="utf-8")


class PreparesElsewhere(Universal):
    """Leaves a file beside its folder."""

    def prepare(self, ctx: PrepareContext) -> None:
        """Write and remove a file in the parent folder."""
        super().prepare(ctx)
        stray = ctx.folder.parent / f"{ctx.folder.name}-stray.txt"
        stray.write_text("", encoding="utf-8")
        stray.unlink()


class IgnoresPrepared(Universal):
    """Keeps its artifact in a class attribute, which another process would not have."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return a fixed shift."""
        point = ctx.threat.project(video + ctx.threat.radius(video), video)
        victim.scores(point)
        return point
