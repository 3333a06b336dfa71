"""Checks of attacks. Each runs on toy models whose answer is known."""

from __future__ import annotations

import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from vcr_core.errors import ContractViolation, VcrError
from vcr_core.metering import modules_of
from vcr_core.specs import AttackSpec
from vcr_core.testing.checks import transform
from vcr_core.testing.checks.ambient import under_state
from vcr_core.testing.checks.contest import (
    Contest,
    Outcome,
    build,
    linear_contest,
    norms_of,
    spec_of,
    texture_contest,
    threat_for,
)
from vcr_core.testing.checks.inputs import video
from vcr_core.testing.checks.prepared import artifacts
from vcr_core.testing.contract import Subject, require
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.models import BatchNormClassifier, ConstantClassifier, Saturated
from vcr_core.threat import TOLERANCE

BUDGETS = (1, 2, 10, 1000)


def within_ball(subject: Subject) -> None:
    """The attack's own result is in the ball of each declared norm."""
    spec = spec_of(subject)
    for norm in norms_of(spec):
        if norm == "none":
            continue
        for small in (linear_contest(spec, norm), _textured(spec, norm)):
            # Never stopping early makes an attack use the whole ball.
            contest = replace(small, stop="budget", max_forwards=200)
            outcome = _run(subject, spec, contest)
            inside = contest.threat.within(outcome.result, contest.clean)
            worst = float(contest.threat.violation(outcome.result, contest.clean).max())
            require(
                bool(inside.all()),
                f"norm {norm}, eps {contest.threat.eps:.4g}: outside of the ball by {worst:.3g} "
                f"(tolerance {TOLERANCE}); project with ctx.threat.project",
            )


def within_range(subject: Subject) -> None:
    """The result is finite and in [0, 1], also where the clean video touches the ends."""
    spec = spec_of(subject)
    extreme = video(6, 2).round()
    for norm in norms_of(spec):
        contest = replace(texture_contest(spec, clean=extreme), threat=threat_for(norm))
        result = _run(subject, spec, contest).result
        require(bool(torch.isfinite(result).all()), f"norm {norm}: the result is not finite")
        lowest, highest = float(result.min()), float(result.max())
        require(
            lowest >= -TOLERANCE and highest <= 1 + TOLERANCE,
            f"norm {norm}: values from {lowest:.4g} to {highest:.4g}, the range is [0, 1]",
        )


def same_shape_dtype_device(subject: Subject) -> None:
    """Odd oblong frames, several views and a single frame come back as they were."""
    spec = spec_of(subject)
    for contest in (
        texture_contest(spec, views=3),
        texture_contest(spec, clean=video(5, 1, 1, 33, 50)),
    ):
        result = _run(subject, spec, contest).result
        clean = contest.clean
        require(
            result.shape == clean.shape,
            f"shape {list(clean.shape)} went in, {list(result.shape)} came out",
        )
        require(result.dtype == clean.dtype, f"{clean.dtype} went in, {result.dtype} came out")
        require(result.device == clean.device, f"the result is on {result.device}")


def eps_zero_is_identity(subject: Subject) -> None:
    """Radius 0 gives the input bit for bit."""
    spec = spec_of(subject)
    for norm in norms_of(spec):
        if norm == "none":
            continue
        contest = texture_contest(spec)
        contest = replace(contest, threat=threat_for(norm).with_eps(0.0))
        result = _run(subject, spec, contest).result
        require(torch.equal(result, contest.clean), f"norm {norm}: eps = 0 changed the video")


def input_untouched(subject: Subject) -> None:
    """The input tensor is not changed in place."""
    spec = spec_of(subject)
    for contest in (linear_contest(spec, norms_of(spec)[0]), texture_contest(spec)):
        outcome = _run(subject, spec, contest)
        require(not outcome.changed_input, "the attack changed its input in place")


def seeded(subject: Subject) -> None:
    """Same seeds, same bits; the ambient random state is neither used nor changed."""
    spec = spec_of(subject)
    attack = build(subject)
    contest = texture_contest(spec, clean=video(7, 2), stop="budget", max_forwards=200)
    with artifacts(subject, contest) as folder:
        contest = replace(contest, folder=folder)
        first = under_state(1, lambda: contest.run(attack, spec).result, "the attack")
        second = under_state(2, lambda: contest.run(attack, spec).result, "the attack")
        others = [replace(contest, seed=other).run(attack, spec).result for other in (2, 3, 4, 5)]
    require(torch.equal(first, second), "two runs with the same seeds differ")
    if spec.stochastic:
        require(
            any(not torch.equal(first, other) for other in others),
            "five seeds give the same bits: the spec says stochastic=True",
        )
    else:
        require(
            all(torch.equal(first, other) for other in others),
            "another seed gives another result: set stochastic=True in the spec",
        )


def order_independent(subject: Subject) -> None:
    """Permuting the videos of a batch permutes the results."""
    spec = spec_of(subject)
    norm = norms_of(spec)[0]
    ids = ("a", "b", "c")
    contest = linear_contest(spec, norm, ids=ids)
    order = [2, 0, 1]
    turned = replace(
        contest,
        clean=contest.clean[order],
        labels=tuple(contest.labels[i] for i in order),
        targets=None if contest.targets is None else tuple(contest.targets[i] for i in order),
        ids=tuple(ids[i] for i in order),
    )
    # Prepared once: an artifact belongs to the training videos, not to the batch.
    with artifacts(subject, contest) as folder:
        straight, permuted = (
            replace(one, folder=folder).run(build(subject), spec).result
            for one in (contest, turned)
        )
    gap = float((permuted - straight[order]).abs().max())
    require(
        gap <= TOLERANCE,
        f"a video's result differs by {gap:.3g} at another place in the batch "
        "(norms over the batch, or draws shared between videos?)",
    )


def budget_kept(subject: Subject) -> None:
    """Budgets of 1, 2, 10 and 1000 forwards are kept, and every pass is metered."""
    spec = spec_of(subject)
    for budget in BUDGETS:
        contest = linear_contest(spec, norms_of(spec)[0], stop="budget", max_forwards=budget)
        outcome = _run(subject, spec, contest)
        used = max(meter.forwards for meter in outcome.victim.meters)
        require(used <= budget, f"{used} forward passes with a budget of {budget}")
        require(
            outcome.unmetered == 0,
            f"{outcome.unmetered} forward passes went around the victim",
        )
        require(
            bool(torch.isfinite(outcome.result).all()), f"budget {budget}: result is not finite"
        )


def access_kept(subject: Subject) -> None:
    """Only calls that the declared access allows are made, none around the victim."""
    spec = spec_of(subject)
    try:
        outcome = _run(subject, spec, linear_contest(spec, norms_of(spec)[0], max_forwards=200))
    except ContractViolation as violation:
        raise AssertionError(str(violation)) from violation
    require(outcome.unmetered == 0, f"{outcome.unmetered} forward passes went around the victim")
    used = sum(meter.forwards for meter in outcome.victim.meters)
    require(
        used == 0 or spec.access in ("white-box", "score", "decision"),
        f"an attack with access {spec.access!r} queried the victim {used} times",
    )


def succeeds_on_linear(subject: Subject) -> None:
    """A linear model falls at a multiple of the least radius, and never below its optimum."""
    spec = spec_of(subject)
    times = 4.0 if spec.access == "white-box" else 16.0
    limit = None if spec.access == "white-box" else 1000
    for norm in norms_of(spec):
        if norm == "none":
            continue
        contest = linear_contest(spec, norm, times, max_forwards=limit)
        result = contest.threat.project(_run(subject, spec, contest).result, contest.clean)
        logits = contest.predict(contest.threat.store(result, contest.clean))
        missed = int((logits.argmax(dim=1) == torch.tensor(contest.labels)).sum())
        require(
            missed == 0,
            f"norm {norm}: {missed} of 3 linear videos kept their label at {times:g} times the "
            "radius that suffices",
        )


def targeted_moves_target(subject: Subject) -> None:
    """The target's probability rises for every video."""
    spec = spec_of(subject)
    for norm in norms_of(spec):
        base = linear_contest(spec, norm, 8.0, targets=(1, 2, 3), max_forwards=1000)
        if norm == "none":
            base = _shapes(targets=(1, 5))
        before = _target_probability(base, base.clean)
        after = _target_probability(base, _run(subject, spec, base).result)
        require(
            bool((after > before).all()),
            f"norm {norm}: target probabilities went from {before.tolist()} to {after.tolist()}",
        )


def degenerate_models(subject: Subject) -> None:
    """A constant and a saturated model give a finite result inside of the ball."""
    spec = spec_of(subject)
    contest = linear_contest(spec, norms_of(spec)[0], max_forwards=200)
    for model in (ConstantClassifier(), Saturated(contest.model)):
        outcome = _run(subject, spec, replace(contest, model=model))
        name = type(model).__name__
        require(bool(torch.isfinite(outcome.result).all()), f"{name}: the result is not finite")
        require(
            bool(contest.threat.within(outcome.result, contest.clean).all()),
            f"{name}: the result is outside of the ball",
        )


def model_untouched(subject: Subject) -> None:
    """Parameters, buffers, gradients, flags and modes are as before."""
    spec = spec_of(subject)
    for model in (ToyCnn(), BatchNormClassifier()):
        before = _fingerprint(model)
        contest = replace(_shapes(), model=model, max_forwards=50)
        if not spec.untargeted:
            contest = replace(contest, targets=(1, 5))
        contest = replace(contest, threat=threat_for(norms_of(spec)[0]))
        _run(subject, spec, contest)
        after = _fingerprint(model)
        changed = [name for name in before if before[name] != after[name]]
        require(not changed, f"{type(model).__name__}: {', '.join(changed[:3])} changed")


def output_detached(subject: Subject) -> None:
    """The result carries no graph."""
    spec = spec_of(subject)
    result = _run(subject, spec, linear_contest(spec, norms_of(spec)[0])).result
    require(
        not result.requires_grad and result.grad_fn is None,
        "the result carries a graph; return it detached",
    )


def prepare_idempotent(subject: Subject) -> None:
    """Preparing twice leaves the same files."""
    from vcr_core.testing.checks import prepared

    prepared.idempotent(subject)


def prepare_writes_only_its_folder(subject: Subject) -> None:
    """The offline step writes no file outside of its folder."""
    from vcr_core.testing.checks import prepared

    prepared.writes_only_its_folder(subject)


def fresh_instance_uses_prepared(subject: Subject) -> None:
    """A new instance uses the artifacts and gives the same result."""
    spec = spec_of(subject)
    contest = _shapes() if spec.untargeted else _shapes(targets=(1, 5))
    contest = replace(contest, threat=threat_for(norms_of(spec)[0]))
    with artifacts(subject, contest) as folder:
        if folder is None:
            raise unittest.SkipTest(f"attack/{spec.name} prepares nothing")
        ready = replace(contest, folder=folder)
        first = ready.run(build(subject), spec).result
        second = ready.run(build(subject), spec).result
    require(torch.equal(first, second), "two fresh instances give different results")
    with tempfile.TemporaryDirectory() as empty:
        try:
            bare = replace(contest, folder=Path(empty)).run(build(subject), spec).result
        except (VcrError, OSError):  # it refuses, as it should
            return
    require(
        not torch.equal(bare, first), "the result is the same without artifacts: they are not used"
    )


def transforms_whole_videos(subject: Subject) -> None:
    """A whole video comes back as uint8 frames of its size, each with its source."""
    transform.whole_videos(subject)


def transforms_seeded(subject: Subject) -> None:
    """Same seed, same frames; another seed differs where the spec says that it is random."""
    transform.seeded(subject)


def plans_keep_shape(subject: Subject) -> None:
    """Both plans have as many clips of as many frames as the sampler asks for, or it skips."""
    transform.plans(subject)


def _run(subject: Subject, spec: AttackSpec, contest: Contest) -> Outcome:
    with artifacts(subject, contest) as folder:
        return replace(contest, folder=folder).run(build(subject), spec)


def _textured(spec: AttackSpec, norm: str) -> Contest:
    return replace(texture_contest(spec), threat=threat_for(norm))


def _shapes(targets: tuple[int, ...] | None = None) -> Contest:
    from vcr_core.testing.toys.shapes import draw

    labels = (0, 3)
    frames = torch.stack([torch.from_numpy(draw(y, 0)[2:10:2].copy()) for y in labels])
    clean = frames.permute(0, 1, 4, 2, 3).to(torch.float32) / 255
    threat = threat_for("none")
    return Contest(clean, labels, threat, model=ToyCnn(), targets=targets, max_forwards=1000)


def _target_probability(contest: Contest, videos: Tensor) -> Tensor:
    targets = torch.tensor(contest.targets)
    return contest.predict(videos).exp().gather(1, targets[:, None])[:, 0]


def _fingerprint(model: object) -> dict[str, object]:
    state: dict[str, object] = {}
    for index, network in enumerate(modules_of(model)):
        for name, parameter in network.named_parameters():
            key = f"{index}.{name}"
            state[key] = parameter.detach().sum().item()
            state[f"{key}.requires_grad"] = parameter.requires_grad
            state[f"{key}.grad"] = parameter.grad is None
        for name, buffer in network.named_buffers():
            state[f"{index}.{name}"] = buffer.double().sum().item()
        for name, module in network.named_modules():
            state[f"{index}.{name}.training"] = module.training
            state[f"{index}.{name}.hooks"] = len(module._forward_hooks)
    return state
