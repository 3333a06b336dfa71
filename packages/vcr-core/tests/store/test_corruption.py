"""What a run says about an attack that asks nothing: its nature, its suites, its fingerprint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from vcr_core.corruption import content_sha256, damaged_unlike, fingerprint, nature
from vcr_core.spec_rules import spec_problems
from vcr_core.specs import AttackSpec, Corruption, Suite, SuiteMember

GALES = Suite(name="gales", version="3", types=2)
CALM = Suite(name="calm", version="1", types=4, severities=2)
SPEC = AttackSpec(
    name="wind",
    summary="Wind",
    target="some.where:Wind",
    access="none",
    norms=frozenset({"none"}),
    stage="source",
    tags=frozenset({"corruption", "air"}),
    corruption=Corruption(
        group="weather",
        changes_length=True,
        member_of=(
            SuiteMember(suite=GALES),
            SuiteMember(suite=CALM, params=(("table", "gentle"),)),
        ),
    ),
)


def test_a_corruption_names_its_suites_by_its_parameters() -> None:
    found = nature(SPEC, {"severity": 2, "table": "gentle"})
    assert found["stage"] == "source"
    assert found["tags"] == ["air", "corruption"]
    both = [
        {"name": "gales", "version": "3", "types": 2, "severities": 5},
        {"name": "calm", "version": "1", "types": 4, "severities": 2},
    ]
    assert found["corruption"] == {
        "type": "wind",
        "group": "weather",
        "severity": 2,
        "changes_length": True,
        "suites": both,
    }
    other = nature(SPEC, {"severity": 2, "table": "harsh"})
    assert other["corruption"]["suites"] == both[:1]


def test_others_have_a_stage_or_nothing() -> None:
    assert nature(replace(SPEC, corruption=None), {}) == {
        "stage": "source",
        "tags": ["air", "corruption"],
    }
    assert nature(replace(SPEC, corruption=None, access="score"), {}) == {}


def test_frames_are_told_apart_by_shape_and_values() -> None:
    frames = np.arange(48, dtype=np.uint8).reshape(2, 2, 4, 3)
    assert content_sha256(frames) == content_sha256(frames.copy())
    assert content_sha256(frames[:, :, ::-1]) == content_sha256(frames[:, :, ::-1].copy())
    assert content_sha256(frames) != content_sha256(frames.reshape(2, 4, 2, 3))
    other = frames.copy()
    other[1, 1, 3, 2] += 1
    assert content_sha256(frames) != content_sha256(other)


def test_the_fingerprint_is_that_of_the_first_planned_video() -> None:
    manifest = {"batches": [["b"], ["a"]]}
    records = [
        {"video": "a", "transform": {"sha256": "aa"}},
        {"video": "b", "transform": {"sha256": "bb"}},
    ]
    assert fingerprint(manifest, records) == {"video": "b", "sha256": "bb"}
    assert fingerprint(manifest, records[:1]) is None
    assert fingerprint(manifest, [{"video": "b", "status": "error"}]) is None
    assert fingerprint({"batches": []}, []) is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"access": "score"}, "access must be 'none'"),
        ({"corruption": Corruption(group="")}, "group must be a word"),
        ({"corruption": Corruption(group="air", severities=0)}, "positive integer"),
        ({"corruption": Corruption(group="air", member_of=(GALES,))}, "tuple of SuiteMember"),
        ({"corruption": "air"}, "must be a Corruption"),
    ],
)
def test_specs_with_mistakes_are_refused(changes: dict[str, object], problem: str) -> None:
    assert not spec_problems(SPEC)
    [found] = spec_problems(replace(SPEC, **changes))
    assert problem in found


def test_runs_that_damaged_a_video_in_different_ways_are_named() -> None:
    def run(sha: str, *, severity: int = 1, stage: str = "source", seed: int = 1) -> tuple:
        part = {"role": "attack", "ref": "us/wind", "stage": stage, "params": {"s": severity}}
        manifest = {"components": [{"role": "model"}, part], "seed": seed, "dataset": {}}
        return manifest, {"fingerprint": {"video": "b", "sha256": sha}}

    assert damaged_unlike([run("a"), run("a"), run("b", severity=2), run("c", seed=2)]) == []
    assert damaged_unlike([run("a"), run("b")]) == ["wind"]
    # What is sampled first differs from model to model.
    assert damaged_unlike([run("a", stage="frames"), run("b", stage="frames")]) == []
    assert damaged_unlike([run("a"), (run("a")[0], {})]) == []
    assert damaged_unlike([({}, {})]) == []
