"""Two runs, and two sweeps, compared as their users would."""

from __future__ import annotations

from pathlib import Path

import pytest
from vcr_e2e.harness import EXPERIMENT

SWEEP = (
    EXPERIMENT
    + """
[matrix]
attack = ["moody", "toy-search"]
"""
)


@pytest.fixture
def two(vcr) -> tuple[Path, Path]:
    """The same experiment with a small radius and with a large one."""
    folders = []
    for eps in ("1/255", "64/255"):
        done = vcr("run", "experiment.toml", "--limit", "4", "--eps", eps, "--json")
        assert done.code == 0, done.err
        folders.append(Path(done.json["folder"]))
    return folders[0], folders[1]


def test_two_runs(vcr, two):
    small, large = two
    done = vcr("compare", small, large, "--json", "--gate", "robust_accuracy<=0pp")
    assert done.code == 0, done.err
    (pair,) = done.json["pairs"]
    assert pair["videos"]["common"] == 4
    assert [d["name"] for d in pair["differs"]] == ["threat.eps"]
    clean = next(q for q in pair["quantities"] if q["quantity"] == "clean_accuracy")
    # Clean predictions do not depend on the radius.
    assert (clean["difference"], clean["only_a"], clean["only_b"], clean["p"]) == (0, 0, 0, 1)
    # The other way round every difference has the other sign.
    back = vcr("compare", large, small, "--json").json["pairs"][0]
    for one, other in zip(pair["quantities"], back["quantities"], strict=True):
        if one["difference"] is not None:
            assert one["difference"] == pytest.approx(-other["difference"])
            assert (one["only_a"], one["p"]) == (other["only_b"], other["p"])


def test_two_sweeps(vcr, here):
    (here / "sweep.toml").write_text(SWEEP)
    for name, eps in (("old", "1/255"), ("new", "64/255")):
        done = vcr("sweep", "sweep.toml", "--limit", "3", "--eps", eps, "--results", name)
        assert done.code == 0, done.err
    done = vcr("compare", "old", "new", "--json", "--gate", "overall:robust_accuracy<=0pp")
    assert done.code == 0, done.err
    assert done.json["varied"] == ["threat"]
    assert [pair["label"] for pair in done.json["pairs"]] == ["moody", "toy-search"]
    assert done.json["overall"]["videos"]["common"] == 3
    # The same sweep against itself is nothing to compare.
    assert vcr("compare", "old", "old").code == 2
