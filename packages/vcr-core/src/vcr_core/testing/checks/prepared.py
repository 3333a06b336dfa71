"""Offline steps: artifacts for the checks of attacks and defenses, and what a step may write."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import unittest
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from vcr_core.protocols import (
    Preparable,
    PrepareContext,
    PreparedDefense,
    VideoClassifier,
    VideoItem,
)
from vcr_core.specs import AttackSpec
from vcr_core.testing.checks.contest import Contest, digest, norms_of, spec_of, threat_for
from vcr_core.testing.checks.inputs import video
from vcr_core.testing.contract import Subject, require
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.threat import ThreatModel

_ITEMS = 4
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@contextlib.contextmanager
def artifacts(subject: Subject, contest: Contest) -> Iterator[Path | None]:
    """Yield a folder with what the offline step wrote, or ``None`` if there is no such step."""
    if not cast(AttackSpec, subject.spec).prepares:
        yield None
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        targets = None if contest.targets is None else tuple(sorted({*contest.targets}))
        _prepare(
            subject,
            folder,
            contest.threat,
            contest.model,
            _items_like(contest),
            targets=targets,
        )
        yield folder


def prepare_defense(defense: object, clips: Tensor) -> None:
    """Run a defense's offline step on videos like these clips, and give it the result.

    Args:
        defense: says in its spec that it prepares.
        clips: ``[B, V, T', C, H, W]``.
    """
    require(
        isinstance(defense, PreparedDefense),
        "the spec says prepares=True, but there are no methods 'prepare' and 'restore'",
    )
    videos = clips[[i % len(clips) for i in range(_ITEMS)], 0]
    with tempfile.TemporaryDirectory() as name:
        cast(PreparedDefense, defense).prepare(
            PrepareContext(
                folder=Path(name),
                items=_items(videos, range(_ITEMS)),
                seed=1,
                model=LinearClassifier(frames=clips.shape[2]),
                threat=threat_for("linf"),
            )
        )
        cast(PreparedDefense, defense).restore(Path(name))


def idempotent(subject: Subject) -> None:
    """Preparing twice leaves the same files."""
    threat = _threat(subject)
    with tempfile.TemporaryDirectory() as name:
        _prepare(subject, Path(name), threat)
        first = digest(Path(name))
        _prepare(subject, Path(name), threat)
        second = digest(Path(name))
    require(first, "the offline step wrote nothing")
    changed = sorted(k for k in first | second if first.get(k) != second.get(k))
    require(not changed, f"the second prepare changed {', '.join(changed[:3])}")


def writes_only_its_folder(subject: Subject) -> None:
    """The offline step writes no file outside of its folder."""
    threat = _threat(subject)
    with tempfile.TemporaryDirectory() as name, _recorded_writes() as written:
        _prepare(subject, Path(name), threat)
        home = Path(name).resolve()
        outside = sorted({p for p in written if home not in (p, *p.parents)})
    require(not outside, f"it wrote to {', '.join(map(str, outside[:3]))}")


def _threat(subject: Subject) -> ThreatModel:
    return threat_for(norms_of(spec_of(subject))[0])


def _prepare(
    subject: Subject,
    folder: Path,
    threat: ThreatModel,
    model: VideoClassifier | None = None,
    items: Sequence[VideoItem] | None = None,
    targets: tuple[int, ...] | None = None,
) -> None:
    component = subject.build()
    if not isinstance(component, Preparable):
        raise AssertionError("the spec says prepares=True, but there is no method 'prepare'")
    spec = cast(AttackSpec, subject.spec)
    chosen: VideoClassifier = model or ToyCnn()
    if targets is None and not spec.untargeted:
        targets = (1,)
    component.prepare(
        PrepareContext(
            folder=folder,
            items=items or _items(video(100, _ITEMS, 4, 32, 32), range(_ITEMS)),
            seed=1,
            model=chosen,
            threat=threat,
            targets=targets,
            # As in the contest, the model stands in for any surrogate.
            surrogates=(lambda _name: chosen) if spec.access == "transfer" else None,
        )
    )


def _items_like(contest: Contest) -> list[VideoItem]:
    """Return training videos of the shape and the classes that are attacked later.

    They differ from the attacked ones by one level of noise, as videos of one data set are alike.
    """
    rows = [i % len(contest.clean) for i in range(_ITEMS)]
    clean = contest.clean[rows]
    noise = torch.randint(-1, 2, clean.shape, generator=torch.Generator().manual_seed(0)) / 255
    return _items((clean + noise).clamp(0, 1), [contest.labels[row] for row in rows])


def _items(videos: Tensor, labels: Sequence[int]) -> list[VideoItem]:
    pixels = (videos * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    return [
        VideoItem(f"train/{i}", label, ArraySource(f"train/{i}", clip))
        for i, (label, clip) in enumerate(zip(labels, pixels, strict=True))
    ]


class _Recorder:
    """Notes files that Python opens for writing while it is on; audit hooks cannot be removed."""

    def __init__(self) -> None:
        self.on = False
        self.installed = False
        self.paths: list[Path] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or event != "open":
            return
        path, _, flags = arguments
        if not isinstance(path, str | bytes) or not isinstance(flags, int):
            return
        text = os.fsdecode(path)
        if flags & _WRITING and "__pycache__" not in text and not text.startswith("/dev/"):
            self.paths.append(Path(text).resolve())


_recorder = _Recorder()


@contextlib.contextmanager
def _recorded_writes() -> Iterator[list[Path]]:
    if not hasattr(sys, "addaudithook"):  # pragma: no cover - CPython has it
        raise unittest.SkipTest("this Python cannot observe which files are opened")
    if not _recorder.installed:
        sys.addaudithook(_recorder)
        _recorder.installed = True
    _recorder.paths = []
    _recorder.on = True
    try:
        yield _recorder.paths
    finally:
        _recorder.on = False
