"""Defenses that an attack sees otherwise than the judge, and defenses that replace the model."""

from __future__ import annotations

from typing import Any

import pytest
from vcr_core.records import read_records
from vcr_e2e.harness import only_run

COMMON = ("--attack", "ifgsm", "--limit", "6", "--eps", "3/255", "--set", "metrics.names=[]")


@pytest.fixture
def records(vcr, here):
    """Run ``vcr run`` on a bundled model and return the records by video."""

    def run(folder: str, *arguments: str) -> dict[str, dict[str, Any]]:
        done = vcr("run", *COMMON, "--results", here / folder, *arguments)
        assert done.code == 0, done.err
        found = read_records(only_run(here / folder))
        return {record["video"]: record for record in found}

    return run


def test_the_attack_sees_its_own_parameters_and_the_judge_the_others(records):
    blurred = ("--model", "tiny-r3d", "--defense", "gaussian-blur", "--set", "defense.sigma=1.5")
    blind = records("blind", *blurred, "--set", "protocol.attacker_knows_defense=false")
    as_if_bare = records("as-if-bare", *blurred, "--set", "defense.attack_params.sigma=0")
    seen = records("seen", *blurred)
    both = [v for v in blind if blind[v]["status"] == as_if_bare[v]["status"] == "ok"]
    assert both
    for video in both:
        # A blur of 0 pixels is no blur: the attack does what it does without the defense …
        assert as_if_bare[video]["attacked"] == blind[video]["attacked"]
        assert as_if_bare[video]["perturbation"] == blind[video]["perturbation"]
        # … and is judged behind the real one.
        assert as_if_bare[video]["attacked_defended"] == blind[video]["attacked_defended"]
    assert any(
        seen[v]["perturbation"]["l2"] != blind[v]["perturbation"]["l2"]
        for v in both
        if seen[v]["status"] == "ok"
    )


def test_hardened_weights_are_attacked_as_a_model_of_their_own(records):
    swapped = records("swapped", "--model", "tiny-r3d", "--defense", "adv-trained")
    alone = records("alone", "--model", "tiny-r3d.adv")
    for video, record in swapped.items():
        assert record["clean_defended"] == alone[video]["clean"]
        assert record["attacked_defended"] == [alone[video]["attacked"]]
        assert record["status"] == alone[video]["status"]
        assert record.get("perturbation") == alone[video].get("perturbation")
    assert any(swapped[v]["clean"] != alone[v]["clean"] for v in swapped)


def test_a_model_without_such_weights_says_so(vcr):
    done = vcr("run", *COMMON, "--model", "tiny-vit", "--defense", "adv-trained")
    assert done.code == 2
    assert "tiny-vit.adv" in done.err
    assert "adv-trained" in done.err
