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

from vcr_core.protocols import Preparable, PrepareContext, VideoClassifier, VideoItem
from vcr_core.specs import AttackSpec
from vcr_core.testing.checks.contest import Contest, digest, norms_of, spec_of, threat_for
from vcr_core.testing.checks.inputs import video
from vcr_core.testing.contract import Subject, require
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.testing.toys.cnn import ToyCnn
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
        _prepare(subject, folder, contest.threat, contest.model, contest.clean.shape[1:])
        yield folder


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
    shape: Sequence[int] = (4, 3, 32, 32),
) -> None:
    component = subject.build()
    if not isinstance(component, Preparable):
        raise AssertionError("the spec says prepares=True, but there is no method 'prepare'")
    component.prepare(
        PrepareContext(
            folder=folder,
            items=_items(shape[0], shape[2], shape[3]),
            seed=1,
            model=model or ToyCnn(),
            threat=threat,
        )
    )


def _items(frames: int, height: int, width: int) -> list[VideoItem]:
    """Training videos of the shape that is attacked later: other artifacts would be refused."""
    videos = video(100, _ITEMS, frames, height, width)
    pixels = (videos * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    return [
        VideoItem(f"train/{i}", i, ArraySource(f"train/{i}", clip)) for i, clip in enumerate(pixels)
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
