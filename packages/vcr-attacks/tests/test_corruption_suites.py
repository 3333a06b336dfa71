"""Suites: sweeps, specs and presets agree, and the engine records what compares two runs."""

from __future__ import annotations

from typing import Any

import pytest
import vcr_core as vcr
from click.testing import CliRunner
from vcr_attacks.specs import corruptions, suites, video_corruptions
from vcr_attacks.specs.suites import GU10, KINETICS400_P, MINI_KINETICS_C, MINI_SSV2_C
from vcr_core.cli import info
from vcr_core.config.resolve import resolve_run
from vcr_core.config.sweep import expand
from vcr_core.corruption import fingerprint, nature
from vcr_core.engine.run import open_run
from vcr_core.engine.shard import run_shard
from vcr_core.protocols import ShardTask
from vcr_core.records import read_records
from vcr_core.specs import Suite
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset
from vcr_core.threat import Unbounded

SPECS = {spec.name: spec for spec in (*corruptions.SPECS, *video_corruptions.SPECS)}
SWEEPS = {
    "corruptions": GU10,
    "mini-kinetics-c": MINI_KINETICS_C,
    "mini-ssv2-c": MINI_SSV2_C,
    "kinetics400-p": KINETICS400_P,
}


def members(suite: Suite) -> set[str]:
    """Return the types of a suite."""
    return {
        name
        for name, spec in SPECS.items()
        if any(member.suite == suite for member in spec.corruption.member_of)
    }


def test_every_corruption_declares_itself_and_no_name_is_taken_twice() -> None:
    assert len(SPECS) == len(corruptions.SPECS) + len(video_corruptions.SPECS)
    for spec in SPECS.values():
        assert spec.corruption is not None
        assert spec.corruption.group in spec.tags
        assert spec.corruption.severities == 5


@pytest.mark.parametrize("suite", [GU10, MINI_KINETICS_C, MINI_SSV2_C, KINETICS400_P])
def test_a_suite_has_as_many_types_as_it_says(suite) -> None:
    assert len(members(suite)) == suite.types
    assert suite in vars(suites).values()


@pytest.mark.parametrize(("sweep", "suite"), SWEEPS.items())
def test_a_sweep_is_its_suite_and_nothing_else(sweep, suite) -> None:
    combinations = expand(sweep, require_available=False)
    assert len(combinations) == suite.types * suite.severities
    seen = set()
    for combination in combinations:
        attack = combination.resolved.experiment.attack
        facts = nature(attack.spec, attack.params)["corruption"]
        named = [s for s in facts["suites"] if s["name"] == suite.name]
        assert named == [
            {"name": suite.name, "version": "1", "types": suite.types, "severities": 5}
        ]
        seen.add((facts["type"], facts["severity"]))
    assert seen == {(name, s) for name in members(suite) for s in range(1, 6)}


def test_the_quick_mode_is_one_severity() -> None:
    combinations = expand("kinetics400-p", ["attack.severity=3"], require_available=False)
    assert len(combinations) == 18
    assert {c.resolved.experiment.attack.params["severity"] for c in combinations} == {3}


def test_groups_of_the_suites_are_the_published_ones() -> None:
    groups: dict[str, int] = {}
    for name in members(KINETICS400_P):
        group = SPECS[name].corruption.group
        groups[group] = groups.get(group, 0) + 1
    assert groups == {"noise": 4, "blur": 3, "digital": 3, "temporal": 5, "camera": 3}


def run(name: str, **options: Any) -> Any:
    return vcr.evaluate(
        model=ToyCnn(), dataset=ShapesDataset(), attack=name, threat=Unbounded(), limit=4,
        metrics=["mse"], **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["bit-error", "jumble", "rain", "jitter-rotate"])
def test_a_video_is_damaged_alike_in_any_batch_and_run(name) -> None:
    together, alone = run(name), run(name, runtime={"batch_videos": 1})
    shas = [{r["video"]: r["transform"]["sha256"] for r in x.records} for x in (together, alone)]
    assert shas[0] == shas[1]
    assert len(set(shas[0].values())) == 4
    found = together.view.summary["fingerprint"]
    assert found == fingerprint(together.view.manifest, together.records)
    assert found["sha256"] == shas[0][found["video"]]
    other = run(name, seed=7)
    assert {r["video"]: r["transform"]["sha256"] for r in other.records} != shas[0]
    [part] = [c for c in together.view.manifest["components"] if c["role"] == "attack"]
    assert part["corruption"]["severity"] == 3
    assert part["corruption"]["group"] == SPECS[name].corruption.group


@pytest.mark.parametrize("name", ["packet-loss", "shot-noise.kinetics400-p"])
def test_shards_backwards_are_the_run_forwards(name, tmp_path) -> None:
    tables = {
        "dataset": {"name": "motion", "limit": 4},
        "model": {"name": "tiny-r3d"},
        "attack": {"name": name},
        "metrics": {"names": []},
        "runtime": {"batch_videos": 1, "reuse": False},
    }
    found = []
    for folder, count in (("one", 1), ("two", 2)):
        made = open_run(resolve_run(tables), results=tmp_path / folder)
        for index in reversed(range(count)):
            task = ShardTask(folder=made.folder, index=index, count=count)
            run_shard(task, made.experiment, reverse=count > 1)
        found.append(
            {r["video"]: (r["transform"], r["attacked"]) for r in read_records(made.folder)}
        )
    assert len(found[0]) == 4
    assert found[0] == found[1]


def test_info_says_what_a_corruption_is_and_where_it_belongs() -> None:
    shown = CliRunner().invoke(info.command, ["attack/frame-rate"]).output
    for line in (
        "group\ttemporal",
        "severities\t1 to 5",
        "changes length\tno",
        'mini-kinetics-c (version 1) with table = "mini-kinetics-c"',
    ):
        assert line in shown
    assert "changes length\tyes" in CliRunner().invoke(info.command, ["frame-sampling"]).output
    assert "severities" not in CliRunner().invoke(info.command, ["attack/fgsm"]).output
