"""Every shipped sweep can run: none of its combinations is impossible by its specs."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from vcr_core.config.sweep import expand
from vcr_core.paper import published

ROOT = Path(str(files("vcr_attacks") / "presets" / "sweep"))
NAMES = sorted(p.relative_to(ROOT).with_suffix("").as_posix() for p in ROOT.rglob("*.toml"))


def test_the_shipped_sweeps_are_these() -> None:
    assert NAMES == [
        "corruptions", "equal-queries", "kinetics400-p", "mini-kinetics-c", "mini-ssv2-c",
        "mvtamper", "natural", "paper/table2", "standard", "tamper-detection",
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_combination_can_run(name: str) -> None:
    combinations = expand(name, require_available=False)
    assert combinations
    assert [c.problem for c in combinations if c.problem] == []


def test_table_2_makes_what_its_report_wants() -> None:
    """Everything but dataset and model, which the command line names, is as the paper has it."""
    known = published.names()
    for combination in expand("paper/table2", require_available=False):
        assert combination.resolved is not None
        experiment = combination.resolved.experiment
        assert experiment.attack is not None
        assert known.attack(experiment.attack.spec.name) is not None
        threat = experiment.threat
        assert (threat.targeted, threat.target) == (True, "least-likely")
        assert threat.norm == "none" or (threat.norm, threat.eps) == ("linf", published.EPS)
        metrics = {metric.spec.name for metric in experiment.metrics}
        assert {known.metrics[column][0] for column in ("mse", "psnr_db", "ssim")} <= metrics
