"""Real files of the toy shapes, and bad ones; encoded by the helper of the video tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from vcr_core.testing.toys.labels import DIRECTIONS, SHAPES
from vcr_core.testing.toys.shapes import draw


def _encoder() -> ModuleType:
    root = Path(__file__).parents[4]
    path = root / "packages" / "vcr-core" / "tests" / "video" / "files.py"
    spec = importlib.util.spec_from_file_location("vcr_e2e_files", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


files = _encoder()
LOSSLESS = {"codec": "ffv1", "pix_fmt": "bgr0"}


def shape(path: Path, direction: str, kind: str = "disc", size: int = 32, **more: object) -> Path:
    """Write one moving shape without loss."""
    path.parent.mkdir(parents=True, exist_ok=True)
    images = list(draw(DIRECTIONS.index(direction), SHAPES.index(kind), size=size))
    return Path(files.encode(path, images=images, **{**LOSSLESS, **more}))


def shapes_folder(
    root: Path, *, directions: Sequence[str] = ("east", "north", "west"), size: int = 32
) -> Path:
    """Write ``root/<direction>/<shape>.mkv``."""
    for direction in directions:
        for kind in SHAPES:
            shape(root / direction / f"{kind}.mkv", direction, kind, size)
    return root
