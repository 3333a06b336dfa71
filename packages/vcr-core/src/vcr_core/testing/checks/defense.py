"""Checks of defenses, through the same view that the engine uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from vcr_core.adaptive import DefenseLink, View
from vcr_core.errors import NotDifferentiable
from vcr_core.prediction import aggregate
from vcr_core.protocols import Defense, DetailedFn
from vcr_core.randomness import VideoRandom
from vcr_core.specs import DefenseSpec
from vcr_core.testing.checks.ambient import under_state
from vcr_core.testing.checks.inputs import video
from vcr_core.testing.checks.prepared import prepare_defense
from vcr_core.testing.contract import Subject, require
from vcr_core.testing.toys.defenses import Quantise
from vcr_core.testing.toys.linear import LinearClassifier

_VIEWS = 2


def same_shape_range(subject: Subject) -> None:
    """Clips come back with their shape, as finite float32 in [0, 1]; predictions are finite."""
    for clips in (_clips(), _clips(height=33, width=50), _clips().round()):
        defense = _build(subject, clips)
        seen, predictions = _defended(defense, clips, seed=1)
        require(seen, "the defended function never called the prediction function")
        for part in seen:
            require(part.dtype == torch.float32, f"the model was shown {part.dtype}, not float32")
            require(
                part.dim() == 6 and part.shape[3] == 3,
                f"the model was shown a tensor of shape {list(part.shape)}; "
                "the contract is [B, V, T', C, H, W]",
            )
            require(bool(torch.isfinite(part).all()), "the model was shown values not finite")
            lowest, highest = float(part.min()), float(part.max())
            require(
                lowest >= -1e-6 and highest <= 1 + 1e-6,
                f"the model was shown values from {lowest:.4g} to {highest:.4g}",
            )
        if hasattr(defense, "apply"):
            require(
                seen[0].shape == clips.shape,
                f"clips of shape {list(clips.shape)} became {list(seen[0].shape)}",
            )
        require(
            predictions.shape == (len(clips), 4),
            f"predictions have shape {list(predictions.shape)}, not [B, K]",
        )
        require(bool(torch.isfinite(predictions).all()), "predictions are not finite")


def deterministic_if_claimed(subject: Subject) -> None:
    """Seeds and ambient random state change nothing."""
    defense = _build(subject)
    clips = _clips()
    first = under_state(1, lambda: _defended(defense, clips, seed=1), "the defense")
    second = under_state(2, lambda: _defended(defense, clips, seed=2), "the defense")
    require(
        _equal(first, second),
        "another seed gives another result: set stochastic=True in the spec",
    )


def seeded_if_stochastic(subject: Subject) -> None:
    """Same seed, same bits, whatever the ambient random state; another seed differs."""
    defense = _build(subject)
    clips = _clips()
    first = under_state(1, lambda: _defended(defense, clips, seed=1), "the defense")
    second = under_state(2, lambda: _defended(defense, clips, seed=1), "the defense")
    require(_equal(first, second), "two calls with the same seed differ")
    others = [_defended(defense, clips, seed=s) for s in range(2, 10)]
    require(
        any(not _equal(first, other) for other in others),
        "nine seeds give the same bits: the spec says stochastic=True",
    )
    alone = _defended(defense, clips[1:], seed=2)
    together = _defended(defense, clips, seed=1)
    gap = float((alone[1][0] - together[1][1]).abs().max())
    require(gap <= 1e-4, "a video's draw depends on its neighbours in the batch")


def gradient_as_claimed(subject: Subject) -> None:
    """An adaptive attacker gets a finite, non-zero gradient, or :class:`NotDifferentiable`."""
    spec = _spec(subject)
    view = _view([_link(subject)])
    clean = video(2, 2)
    leaf = clean.clone().requires_grad_()
    random = VideoRandom([1, 2])
    if spec.gradient == "none":
        try:
            view(leaf, random)
        except NotDifferentiable:
            return
        raise AssertionError("the spec says gradient='none', but no NotDifferentiable was raised")
    if spec.gradient == "surrogate":
        require(
            hasattr(_build(subject), "surrogate"),
            "the spec says gradient='surrogate', but there is no method 'surrogate'",
        )
    score = view(leaf, random).amin(dim=1).sum()
    require(score.requires_grad, "no gradient reaches the clips: the defense cuts the graph")
    (gradient,) = torch.autograd.grad(score, leaf, allow_unused=True)
    require(gradient is not None, "no gradient reaches the clips: the defense cuts the graph")
    require(bool(torch.isfinite(gradient).all()), "the gradient is not finite")
    silent = (gradient.flatten(1) == 0).all(dim=1)
    require(
        not bool(silent.any()),
        f"the gradient is zero everywhere; the spec says gradient={spec.gradient!r}",
    )


def composes(subject: Subject) -> None:
    """It chains with another defense on either side."""
    link = _link(subject)
    other = DefenseLink("toy-quantise", Quantise(), "surrogate", stochastic=False)
    clean = video(2, 2)
    for links in ([link, other], [other, link], [link, link]):
        with torch.no_grad():
            predictions = _view(links)(clean, VideoRandom([1, 2]))
        names = " then ".join(part.name for part in links)
        require(predictions.shape == (2, 4), f"{names}: shape {list(predictions.shape)}")
        require(bool(torch.isfinite(predictions).all()), f"{names}: predictions are not finite")


def input_untouched(subject: Subject) -> None:
    """The input tensor is not changed in place."""
    defense = _build(subject)
    clips = _clips()
    before = clips.clone()
    _defended(defense, clips, seed=1)
    require(torch.equal(clips, before), "the defense changed its input in place")


def accepts_short_clips(subject: Subject) -> None:
    """Clips of 1 and 2 frames are accepted."""
    for frames in (1, 2):
        clips = _clips(frames=frames)
        defense = _build(subject, clips)
        seen, predictions = _defended(defense, clips, seed=1)
        require(bool(torch.isfinite(predictions).all()), f"clips of {frames} frames: not finite")
        if hasattr(defense, "apply"):
            require(
                seen[0].shape[2] == frames,
                f"clips of {frames} frames came back with {seen[0].shape[2]}",
            )


def _build(subject: Subject, clips: Tensor | None = None) -> Defense:
    """Return the defense, prepared for clips like these if it has an offline step."""
    defense = cast(Defense, subject.build())
    if _spec(subject).prepares:
        prepare_defense(defense, _clips() if clips is None else clips)
    return defense


def _spec(subject: Subject) -> DefenseSpec:
    return cast(DefenseSpec, subject.spec)


def _link(subject: Subject) -> DefenseLink:
    spec = _spec(subject)
    return DefenseLink(spec.name, _build(subject), spec.gradient, spec.stochastic)


def _view(links: Sequence[DefenseLink]) -> View:
    return View(LinearClassifier(), torch.arange(4)[None], links)


def _clips(frames: int = 4, height: int = 32, width: int = 32) -> Tensor:
    """Return ``[2, 2, frames, 3, height, width]``; the two views differ."""
    return torch.stack([video(s, 2, frames, height, width) for s in (1, 2)], dim=1)


def _defended(defense: Defense, clips: Tensor, seed: int) -> tuple[list[Tensor], Tensor]:
    """Return what the model was shown, and the defended predictions ``[B, K]``.

    What a detector shows it for its score comes last.
    """
    model = LinearClassifier()
    seen: list[Tensor] = []

    def predict(shown: Tensor) -> Tensor:
        seen.append(shown.detach().clone())
        batch = len(shown)
        logits = model.logits(shown.flatten(0, 1))
        return aggregate(logits.reshape(batch, -1, logits.shape[-1]))

    rows = len(clips)
    random = VideoRandom([seed + row for row in range(rows)])
    with torch.no_grad():
        run: Callable[[Tensor], Tensor] = defense.wrap(predict, random)
        predictions = run(clips)
        if isinstance(run, DetailedFn):
            run.details()
    return seen, predictions


def _equal(first: Any, second: Any) -> bool:
    (shown, predictions), (other_shown, other_predictions) = first, second
    same = len(shown) == len(other_shown) and torch.equal(predictions, other_predictions)
    return same and all(torch.equal(a, b) for a, b in zip(shown, other_shown, strict=True))
