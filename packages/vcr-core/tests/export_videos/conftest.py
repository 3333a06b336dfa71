from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vcr_core as vcr
from vcr_core.testing.toys.installed import installed
from vcr_core.threat import Unbounded
from vcr_core.video.reader import read
from vcr_core.video.sampling import whole_video

TRANSFORMS = ("toy-drop-one", "toy-one-later")


@pytest.fixture(scope="module", autouse=True)
def toys() -> Iterator[None]:
    with installed():
        yield


@pytest.fixture
def evaluate(tmp_path: Path) -> Callable[..., Any]:
    """Run an experiment on the toy videos, two of them unless told otherwise."""

    def run(attack: str = "toy-descent", **options: Any) -> Any:
        threat = Unbounded() if attack in TRANSFORMS else vcr.Linf("8/255")
        chosen = {
            "model": "toy-cnn",
            "dataset": "toy-shapes",
            "limit": 2,
            "metrics": ["mse"],
            "threat": threat,
            "results": tmp_path / "results",
        }
        return vcr.evaluate(attack=attack, **{**chosen, **options})

    return run


@pytest.fixture
def frames_of() -> Callable[[Path], np.ndarray]:
    """Read a file as any other video is read."""
    return lambda path: read(path, whole_video).frames
