"""The toy plugin, installed for the length of a block, also for processes started inside it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import importlib_metadata

from vcr_core.plugins import reset_registry

DISTRIBUTION = "vcr-toys"


@contextmanager
def installed() -> Iterator[Path]:
    """Yield the folder that holds the metadata of a distribution ``vcr-toys``.

    Inside the block ``toy-cnn``, ``toy-shapes``, ``toy-descent`` and the others can be named in a
    run file and found by ``vcr`` as a sub-process.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        info = folder / "vcr_toys-0.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 0\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        points = "[vcr]\ntoys = vcr_core.testing.toys.plugin\n"
        (info / "entry_points.txt").write_text(points, encoding="utf-8")
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([name, before] if before else [name])
        sys.path.append(name)
        _forget()
        try:
            yield folder
        finally:
            sys.path.remove(name)
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before
            _forget()


def _forget() -> None:
    importlib_metadata.MetadataPathFinder.invalidate_caches()
    reset_registry()
