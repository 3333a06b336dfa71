"""The core's own datasets, executors and reporters; datasets of files get small ones."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import pytest
from vcr_core.testing import parametrize_contract
from vcr_core.testing.toys.shapes import draw
from vcr_core.video.writer import sidecar_path, write_exact

_CLASSES = ("abseiling", "air drumming", "zumba")


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    # Held by the cache, so that it lives as long as the process.
    return tempfile.TemporaryDirectory(prefix="vcr-contract-")


def _write(path: Path, direction: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".mkv")
    write_exact(made, draw(direction, 0), verify=False)
    sidecar_path(made).unlink()
    made.rename(path)


@functools.cache
def folder() -> dict[str, str]:
    root = Path(_folder().name) / "folder"
    for label, name in enumerate(_CLASSES):
        for take in range(2):
            _write(root / name / f"{take}.mkv", 2 * label + take)
    return {"root": str(root)}


@functools.cache
def csv() -> dict[str, str]:
    root = Path(folder()["root"])
    file = root.parent / "list.csv"
    rows = [f'"{name}/{take}.mkv","{name}"' for name in _CLASSES for take in range(2)]
    file.write_text("path,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return {"file": str(file), "root": str(root)}


@functools.cache
def kinetics400() -> dict[str, str]:
    root = Path(_folder().name) / "kinetics"
    for label, name in enumerate(_CLASSES):
        for take in range(2):
            stem = f"a_b-c_d-e{label}{take}_000010_000020"
            _write(root / "val" / name / f"{stem}.mp4", 2 * label + take)
    return {"root": str(root)}


@functools.cache
def ucf101() -> dict[str, str]:
    root = Path(_folder().name) / "ucf101"
    names = [f"v_{name}_g01_c0{take}" for name in ("Archery", "Bowling") for take in (1, 2)]
    for number, name in enumerate(names):
        _write(root / name.split("_")[1] / f"{name}.avi", number)
    listed = "".join(f"{name.split('_')[1]}/{name}.avi\n" for name in names)
    (root / "classInd.txt").write_text("1 Archery\n2 Bowling\n", encoding="utf-8")
    (root / "testlist01.txt").write_text(listed, encoding="utf-8")
    return {"root": str(root)}


@functools.cache
def ssv2() -> dict[str, str]:
    root = Path(_folder().name) / "ssv2"
    for number in range(4):
        _write(root / f"{100 + number}.webm", number)
    labels = {"Pushing something": "0", "Pulling something": "1"}
    videos = [
        {"id": str(100 + n), "label": "pushing a cup", "template": f"{verb} [something]"}
        for n, verb in enumerate(("Pushing", "Pulling", "Pushing", "Pulling"))
    ]
    (root / "something-something-v2-labels.json").write_text(json.dumps(labels))
    (root / "something-something-v2-validation.json").write_text(json.dumps(videos))
    return {"root": str(root)}


@pytest.mark.contract
@parametrize_contract(
    "vcr-core",
    params={
        "dataset/motion": {"videos": 32, "size": 32, "frames": 8},
        "dataset/folder": folder,
        "dataset/csv": csv,
        "dataset/kinetics400": kinetics400,
        "dataset/ucf101": ucf101,
        "dataset/ssv2": ssv2,
    },
)
def test_contract(check):
    check()
