"""Attacks with access ``none`` that act before the sampling, or on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vcr_core as vcr
from vcr_core.errors import VideoSkipped
from vcr_core.protocols import (
    ClipSpec,
    TransformContext,
    Transformed,
    WholeVideo,
)
from vcr_core.record_schema import validate_record
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset
from vcr_core.threat import Unbounded
from vcr_core.video.sampling import SamplingPlan


class Whole(ToyCnn):
    """Takes four frames, one in two, from the middle."""

    clip = ClipSpec(frames=4, stride=2, size=32, policy="center")


class OfSource:
    """Base of transforms from Python."""

    access, stage, norms = "none", "source", frozenset({"none"})
    targeted = False


class Drop(OfSource):
    """Leaves the first ``n`` frames out."""

    def __init__(self, n: int = 2) -> None:
        self.n = n

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        kept = range(self.n, len(video.frames))
        return Transformed(
            video.frames[self.n :], tuple(kept), {"type": "drop"}, aligned=self.n == 0
        )


class Darken(OfSource):
    """Black from the middle on."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        count = len(video.frames)
        frames = video.frames.copy()
        frames[count // 2 :] = 0
        facts = {"start": count // 2, "end": count}
        return Transformed(frames, tuple(range(count)), facts)


class Donated(OfSource):
    """All frames from another video."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        donor = ctx.donor()
        assert donor.id != video.id
        assert donor.label != video.label
        noise = int(ctx.random.integers(0, 1000))
        facts = {"donor": donor.id, "noise": noise}
        return Transformed(donor.frames, (-1,) * len(donor.frames), facts)


class Shift:
    """Samples ``by`` frames later, where there are so many."""

    access, stage, norms, targeted = "none", "plan", frozenset({"none"}), False

    def __init__(self, by: int) -> None:
        self.by = by

    def plans(self, sampler: Any, count: int, fps: Any) -> tuple[SamplingPlan, SamplingPlan]:
        plan = sampler(count)
        moved = tuple(tuple(i + self.by for i in row) for row in plan.table)
        if max(map(max, moved)) >= count:
            raise VideoSkipped(f"{count} frames are too few to look {self.by} later")
        return plan, SamplingPlan(moved, plan.policy, count)


def run(attack: Any, **options: Any) -> list[dict[str, Any]]:
    chosen = {
        "model": Whole(),
        "dataset": ShapesDataset(),
        "limit": 6,
        "metrics": ["mse"],
        **options,
    }
    records = list(vcr.evaluate(attack=attack, threat=Unbounded(), **chosen).records)
    for record in records:
        validate_record(record)
    return records


def test_the_identity_changes_nothing() -> None:
    for record in run(Drop(0)):
        assert record["attacked"] == record["clean"]
        assert record["perturbation"]["linf"] == 0
        assert record["metrics"]["mse"]["value"] == 0
        assert record["transform"]["sources"] == record["input"]["indices"]


def test_the_same_sampling_sees_the_shorter_video() -> None:
    for record in run(Drop(2)):
        assert record["status"] == "ok"
        before, after = record["input"]["frames_decoded"], record["transform"]["frames"]
        assert after == before - 2
        sources = record["transform"]["sources"]
        assert sources == [i + 2 for i in record["transform"]["indices"]]
        assert "perturbation" not in record
        assert record["metrics"]["mse"]["value"] is None
        assert "belong together" in record["metrics"]["mse"]["reason"]


def test_the_overlap_is_the_share_of_looks_into_the_segment() -> None:
    for record in run(Darken()):
        start = record["transform"]["start"]
        looks = record["input"]["indices"]
        assert record["transform"]["overlap"] == sum(i >= start for i in looks) / len(looks)
        assert record["perturbation"]["frames_touched"] == sum(i >= start for i in looks)


def test_donors_are_other_videos_and_the_same_in_any_batch() -> None:
    together = {r["video"]: r["transform"] for r in run(Donated())}
    alone = {r["video"]: r["transform"] for r in run(Donated(), runtime={"batch_videos": 1})}
    assert together == alone
    assert len({t["donor"] for t in together.values()}) > 1


def test_every_video_takes_part_also_one_that_is_wrong() -> None:
    class Stubborn(Whole):
        def logits(self, clips: Any) -> Any:
            return super().logits(clips) * -1

    records = run(Darken(), model=Stubborn(), limit=12)
    wrong = [r for r in records if r["clean"]["pred"] != r["label"]]
    assert wrong
    assert all(r["status"] == "ok" and "transform" in r for r in records)


def test_another_plan_of_the_same_video() -> None:
    for record in run(Shift(1)):
        assert record["transform"]["indices"] == [i + 1 for i in record["input"]["indices"]]
        assert "attacked" in record
    for record in run(Shift(0)):
        assert record["attacked"] == record["clean"]


def test_a_video_that_cannot_be_sampled_so_is_skipped_with_its_reason() -> None:
    for record in run(Shift(1000)):
        assert record["status"] == "skipped"
        assert record["notes"] == [record["notes"][0]]
        assert "too few" in record["notes"][0]


def test_behind_a_defense() -> None:
    class Half:
        def wrap(self, predict: Any, random: Any) -> Any:
            return lambda clips: predict(clips * 0.5)

    for record in run(Darken(), defense=Half()):
        assert {"attacked", "attacked_defended", "clean_defended"} <= {*record}


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda v: v.frames, "not a Transformed"),
        (lambda v: Transformed(v.frames[:, :8], tuple(range(len(v.frames)))), "frames uint8"),
        (lambda v: Transformed(v.frames / 255, tuple(range(len(v.frames)))), "frames float64"),
        (lambda v: Transformed(v.frames[:0], ()), "left no frame"),
        (lambda v: Transformed(v.frames, (0,)), "index map of 1"),
        (lambda v: np.copyto(v.frames, 0), "in place"),
    ],
)
def test_a_transform_that_breaks_its_contract_is_named(made: Any, told: str) -> None:
    class Broken(OfSource):
        def transform(self, video: WholeVideo, ctx: TransformContext) -> Any:
            found = made(video)
            return (
                Transformed(video.frames, tuple(range(len(video.frames))))
                if found is None
                else found
            )

    for record in run(Broken(), limit=2):
        assert record["status"] == "error"
        assert told in record["error"]["message"]
        assert "broken" in record["error"]["message"]
