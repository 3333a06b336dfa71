"""Fitting ``tamper-baseline``: thresholds to clean videos, weights to tampered ones.

Nothing that is evaluated may be fitted on: a dataset with splits has to be given with its training
split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch
from torch.nn import functional
from vcr_core.components import build
from vcr_core.config.objects import choose_component
from vcr_core.engine.decode import reduced
from vcr_core.errors import UsageError
from vcr_core.video.sampling import make_plan

from vcr_models.detectors.baseline import TamperBaseline
from vcr_models.detectors.calibration import FittedOn, LogisticFile, ThresholdFile
from vcr_models.detectors.clip import CLIP
from vcr_models.detectors.decision import features_of
from vcr_models.detectors.names import ORIGINAL
from vcr_models.detectors.params import BaselineParams
from vcr_models.detectors.scores import SCORES, THRESHOLDS

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import VideoDataset, VideoItem
    from vcr_core.video.info import Clip

FEWEST: Final = 40
"""Clean videos without which a threshold would be a guess."""

FALSE_ALARMS: Final = 0.05
"""Share of clean videos that may exceed some threshold."""

_TRAIN: Final = "train"
_PLACES: Final = ("root", "manifest", "annotations", "file", "classes")


@dataclass(frozen=True, slots=True)
class Scored:
    """One video with its scores.

    Attributes:
        source: recording that it was made from.
        label: class name.
        scores: by effect.
    """

    source: str
    label: str
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Training:
    """Videos that may be fitted on.

    Attributes:
        table: name and parameters of the dataset.
        split: of the recordings.
        dataset: the dataset.
    """

    table: Mapping[str, Any]
    split: str
    dataset: VideoDataset


def training_part(table: Mapping[str, Any]) -> Training:
    """Return the dataset that a table names, if it is a training split.

    Args:
        table: ``name`` and parameters, as ``[dataset]`` of a run file; ``name = "tamper"`` for
            tampered videos, of whose ``base`` the split counts.

    Raises:
        ConfigError: if the table is wrong.
        UsageError: if the split is not the training one.
    """
    params = {key: value for key, value in table.items() if key != "name"}
    chosen = choose_component("dataset", table["name"], params)
    base = chosen.params.get("base")
    split = str(chosen.params.get("split") or _TRAIN)
    if base is not None:
        inner = {"name": base} if isinstance(base, str) else {"name": "motion", **base}
        split = training_part(inner).split
    if split != _TRAIN:
        raise UsageError(
            f"dataset {table['name']}: found split {split!r}; allowed: {_TRAIN!r} alone, because "
            "a detector that was fitted on videos of another split cannot be evaluated there"
        )
    return Training({"name": chosen.spec.name, **chosen.params}, split, build(chosen))


def read_whole(item: VideoItem) -> Clip:
    """Return what a detector samples from a video."""
    return item.source.read(lambda count: make_plan(count, frames=CLIP.frames, policy="all"))


def as_clip(frames: np.ndarray[Any, np.dtype[np.uint8]]) -> Tensor:
    """Return ``[T, 3, H, W]`` in [0, 1] of frames ``[T, H, W, 3]``, reduced as when evaluated."""
    small = torch.from_numpy(np.ascontiguousarray(reduced(frames, CLIP.reduce_to)))
    return small.permute(0, 3, 1, 2).float().div_(255)


def score_videos(training: Training, *, limit: int | None = None) -> list[Scored]:
    """Return the scores of the videos, or of those of the first ``limit`` recordings."""
    found: list[Scored] = []
    sources: dict[str, None] = {}
    for video in training.dataset.ids():
        item = training.dataset.item(video)
        sources.setdefault(item.group or item.id)
        if limit is not None and len(sources) > limit:
            break
        clip = read_whole(item)
        step = max(1, int(np.diff(clip.indices[:2]).max(initial=1)))
        fps = None if clip.fps is None else float(clip.fps) / step
        is_labelled = bool(item.facts.get("tamper"))
        name = training.dataset.labels.names[item.label] if is_labelled else ORIGINAL
        found.append(Scored(item.group or item.id, name, score(as_clip(clip.frames), fps)))
    return found


def score(clip: Tensor, fps: float | None) -> dict[str, float]:
    """Return the eight scores of a clip ``[T, 3, H, W]`` in [0, 1]."""
    detector = cast("TamperBaseline", TamperBaseline(BaselineParams()).at_rate(fps))
    return {name: found.value for name, found in detector.scores(clip).items()}


def fit_thresholds(
    rows: Iterable[Scored], training: Training, *, false_alarms: float = FALSE_ALARMS
) -> ThresholdFile:
    """Return thresholds that few clean videos exceed.

    Each one is the quantile ``1 - false_alarms / 8`` of its score over the clean videos, so that
    together at most ``false_alarms`` of them are flagged; never below the threshold that is used
    without fitting, which also keeps effects apart from each other: of that, clean videos say
    nothing.

    Args:
        rows: scored videos; those that were tampered with are passed over.
        training: where they come from.
        false_alarms: share of clean videos that may be flagged.

    Raises:
        UsageError: for fewer than 40 clean videos.
    """
    clean = [row for row in rows if row.label == ORIGINAL]
    if len(clean) < FEWEST:
        raise UsageError(
            f"{len(clean)} clean videos are too few to fit thresholds; {FEWEST} or more are needed"
        )
    level = 1 - false_alarms / len(SCORES)
    thresholds = {}
    for name in SCORES:
        values = [row.scores[name] for row in clean]
        found = float(np.quantile(values, level, method="higher"))
        thresholds[name] = max(found, THRESHOLDS[name])
    return ThresholdFile(thresholds=thresholds, fitted_on=_fitted_on(clean, training))


def fit_logistic(
    rows: Sequence[Scored], training: Training, classes: Sequence[str], *, decay: float = 1e-3
) -> LogisticFile:
    """Return multinomial logistic regression on the scores, every class weighing the same.

    Args:
        rows: scored videos of these classes.
        training: where they come from.
        classes: names, ``original`` among them.
        decay: weight of the squared norm of the weights.

    Raises:
        UsageError: if a class has no video.
    """
    kept = [row for row in rows if row.label in classes]
    missing = sorted(set(classes) - {row.label for row in kept})
    if missing:
        raise UsageError(f"no video of class {', '.join(missing)} to fit on")
    features = np.stack([features_of(row.scores) for row in kept])
    mean, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-3)
    x = torch.from_numpy((features - mean) / scale)
    y = torch.tensor([list(classes).index(row.label) for row in kept])
    share = 1 / (torch.bincount(y, minlength=len(classes)).double() * len(classes))
    weights = torch.zeros(len(classes), len(SCORES), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(len(classes), dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weights, bias], max_iter=200, tolerance_grad=1e-9, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        solver.zero_grad()
        each = functional.cross_entropy(x @ weights.T + bias, y, reduction="none")
        total = (each * share[y]).sum() + decay * (weights**2).sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    solver.step(loss)  # type: ignore[no-untyped-call]
    return LogisticFile(
        classes=list(classes),
        mean=mean.tolist(),
        scale=scale.tolist(),
        weights=weights.detach().tolist(),
        bias=bias.detach().tolist(),
        fitted_on=_fitted_on(kept, training),
    )


def _fitted_on(rows: Sequence[Scored], training: Training) -> FittedOn:
    sources = sorted({row.source for row in rows})
    digest = hashlib.sha256("\n".join(sources).encode()).hexdigest()
    return FittedOn(
        dataset={key: value for key, value in training.table.items() if key not in _PLACES},
        split=training.split,
        sources=len(sources),
        videos=len(rows),
        sha256=digest,
    )
