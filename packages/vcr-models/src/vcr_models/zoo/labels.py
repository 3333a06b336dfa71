"""Class names of published heads, in the order of the heads."""

from __future__ import annotations

from importlib.resources import files

from vcr_core.datasets.labels import kinetics400_names
from vcr_core.protocols import LabelSpace


def label_space(name: str) -> LabelSpace:
    """Return the classes of ``kinetics400``, ``ssv2`` or ``ucf101``.

    Raises:
        ValueError: for another name.
    """
    if name == "kinetics400":
        return LabelSpace(name, kinetics400_names())
    if name not in ("ssv2", "ucf101"):
        raise ValueError(f"no label map of {name!r} is shipped")
    return LabelSpace(name, tuple(_lines(f"{name}.txt")))


def videomaev2_rows() -> list[int]:
    """Return the rows of VideoMAE V2's 710 classes that are the 400 of Kinetics-400, in order."""
    return [int(line) for line in _lines("videomaev2-k710-rows.txt")]


def _lines(file: str) -> list[str]:
    return (files("vcr_models") / "labels" / file).read_text(encoding="utf-8").splitlines()
