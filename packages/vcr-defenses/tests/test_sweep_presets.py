"""Every shipped sweep can run: none of its combinations is impossible by its specs."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from vcr_core.availability import availability
from vcr_core.config.sweep import Combination, expand
from vcr_core.paper import published
from vcr_core.sweep_order import sweep_steps

ROOT = Path(str(files("vcr_defenses") / "presets" / "sweep"))
NAMES = sorted(p.relative_to(ROOT).with_suffix("").as_posix() for p in ROOT.rglob("*.toml"))
PAPER_ATTACKS = ["ifgsm", "mifgsm", "amifgsm", "korhonen", "stadv", "zhang-dists", "zhang-lpips"]
PAPER_DEFENSES = [
    "crop-resize", "flip", "gaussian-blur", "rotate", "temporal-median", "temporal-shuffle",
]  # fmt: skip


@cache
def combinations(name: str) -> list[Combination]:
    return expand(name, require_available=False)


def test_the_shipped_sweeps_are_these() -> None:
    assert NAMES == [
        "paper-table3-motion",
        "paper/table3",
        "vcrbench/filters",
        "vcrbench/purifiers",
        "vcrbench/table3",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_combination_can_run(name: str) -> None:
    assert combinations(name)
    assert [c.problem for c in combinations(name) if c.problem] == []


@pytest.mark.parametrize("name", ["paper/table3", "vcrbench/table3"])
def test_the_table_is_that_of_the_paper_twice(name: str) -> None:
    steps = sweep_steps(combinations(name))
    cells = [
        (e.attack.spec.name, [d.spec.name for d in e.defenses], e.adaptive)
        for e in (step.resolved.experiment for step in steps)
        if e.attack is not None
    ]
    for attack in PAPER_ATTACKS:
        assert (attack, [], False) in cells
        for defense in PAPER_DEFENSES:
            assert (attack, [defense], False) in cells
            assert (attack, [defense], True) in cells
    assert len(cells) == 7 * (1 + 2 * 6)
    # Every attack that knows no defense is computed once.
    assert sum(step.attack_of is not None for step in steps) == 7 * 6


@pytest.mark.parametrize("name", ["paper/table3", "paper-table3-motion", "vcrbench/table3"])
def test_the_paper_names_everything_but_what_it_lacks(name: str) -> None:
    known = published.names()
    experiments = [c.resolved.experiment for c in combinations(name) if c.resolved is not None]
    attacks = {e.attack.spec.name for e in experiments if e.attack is not None}
    defenses = {d.spec.name for e in experiments for d in e.defenses}
    assert {name for name in attacks if known.attack(name) is None} == set()
    # In the paper's list of defenses, not in its table.
    assert {name for name in defenses if known.defense(name) is None} <= {"jpeg"}


def test_the_bundled_table_needs_nothing_from_outside() -> None:
    experiments = [
        c.resolved.experiment for c in combinations("paper-table3-motion") if c.resolved is not None
    ]
    chosen = [c for e in experiments for c in (e.model, e.attack, *e.defenses, *e.metrics) if c]
    assert {c.ref: availability(c.spec).text for c in chosen if not availability(c.spec).ok} == {}
    assert {e.dataset.ref for e in experiments} == {"motion"}
