"""Every shipped sweep can run: none of its combinations is impossible by its specs."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from vcr_core.config.sweep import expand

ROOT = Path(str(files("vcr_attacks") / "presets" / "sweep"))
NAMES = sorted(p.relative_to(ROOT).with_suffix("").as_posix() for p in ROOT.rglob("*.toml"))


def test_the_shipped_sweeps_are_these() -> None:
    assert NAMES == [
        "corruptions", "equal-queries", "mvtamper", "natural", "paper/table2", "standard",
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_combination_can_run(name: str) -> None:
    combinations = expand(name, require_available=False)
    assert combinations
    assert [c.problem for c in combinations if c.problem] == []
