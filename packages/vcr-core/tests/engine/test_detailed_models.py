"""Models that tell more than a class, that know their frame rate, and that see every frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import vcr_core as vcr
from torch import Tensor
from vcr_core.adaptive import DefenseLink, View
from vcr_core.engine.decode import reduced
from vcr_core.metering import GuardedModel
from vcr_core.protocols import BaseVideoClassifier, ClipSpec, LabelSpace, VideoItem
from vcr_core.randomness import VideoRandom
from vcr_core.record_schema import validate_record
from vcr_core.testing.toys.arrays import ArraySource

LABELS = LabelSpace("brightness", ("dark", "bright"))


class Meter(BaseVideoClassifier):
    """Tells dark from bright, and what it was asked."""

    labels = LABELS
    clip = ClipSpec(frames=8, policy="all", reduce_to=8)

    def __init__(self, fps: float | None = None, asked: list[Any] | None = None) -> None:
        self.fps = fps
        self.asked: list[Any] = [] if asked is None else asked

    def at_rate(self, fps: float | None) -> Meter:
        return Meter(fps, self.asked)

    def logits(self, clips: Tensor) -> Tensor:
        level = clips.mean(dim=(1, 2, 3, 4))
        return torch.stack([0.5 - level, level - 0.5], dim=1).unsqueeze(1)

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        self.asked.append((self.fps, tuple(clips.shape)))
        told = [
            {"score": float(clip.mean()), "tampered": bool(clip.mean() > 0.5), "segment_s": None,
             "evidence": {"fps": self.fps}}
            for clip in clips
        ]  # fmt: skip
        return self.logits(clips), told

    def to(self, device: Any) -> Meter:
        return self


class Levels:
    """Videos of one grey level each; two are made from every recording."""

    labels = LABELS

    def __init__(self, rates: Sequence[int] = (10, 10), count: int = 3, frames: int = 8) -> None:
        self.rates, self.count, self.frames = rates, count, frames

    def ids(self) -> list[str]:
        return [f"r{i}#{k}" for i in range(self.count) for k in range(2)]

    def item(self, video_id: str) -> VideoItem:
        source, _, kind = video_id.partition("#")
        rate = Fraction(self.rates[int(kind)])
        frames = np.full((self.frames, 12, 16, 3), 40 if kind == "0" else 200, np.uint8)
        return VideoItem(
            video_id, int(kind), Timed(video_id, frames, rate), source, {"kind": int(kind)}
        )


class Timed(ArraySource):
    """An array with a frame rate."""

    __slots__ = ("rate",)

    def __init__(self, name: str, frames: Any, rate: Fraction) -> None:
        super().__init__(name, frames)
        object.__setattr__(self, "rate", rate)

    def read(self, sampler: Any) -> Any:
        return replace(super().read(sampler), fps=self.rate, facts={"read": True})


def records(model: Any, dataset: Any, **options: Any) -> list[dict[str, Any]]:
    found = list(vcr.evaluate(model=model, dataset=dataset, **options).records)
    for record in found:
        validate_record(record)
    return found


def test_what_a_model_tells_stands_in_the_record() -> None:
    for record in records(Meter(), Levels()):
        told = record["clean"]
        assert told["tampered"] == (record["label"] == 1)
        assert told["score"] == pytest.approx((40, 200)[record["label"]] / 255, abs=1e-6)
        assert told["segment_s"] is None
        assert told["evidence"] == {"fps": 10.0}


def test_facts_of_the_dataset_stand_in_the_record() -> None:
    for record in records(Meter(), Levels()):
        source, _, kind = record["video"].partition("#")
        assert record["sample"] == {"source": source, "kind": int(kind), "read": True}


def test_a_video_that_cannot_be_read_keeps_what_is_known_of_it() -> None:
    class Damaged(Levels):
        def item(self, video_id: str) -> VideoItem:
            item = super().item(video_id)
            return replace(item, source=Broken()) if video_id == "r1#0" else item

    class Broken:
        name = "broken"

        def read(self, sampler: Any) -> Any:
            raise vcr.errors.VcrError("no frame")

        def sha256(self) -> None:
            return None

    found = {r["video"]: r for r in records(Meter(), Damaged(), runtime={"max_errors": 1})}
    assert found["r1#0"]["status"] == "error"
    assert found["r1#0"]["sample"] == {"source": "r1", "kind": 0}


def test_other_models_leave_no_trace_of_this() -> None:
    class Bare(BaseVideoClassifier):
        labels, clip = LABELS, Meter.clip
        logits, to = Meter.logits, Meter.to

    for record in records(Bare(), Levels()):
        assert set(record["clean"]) == {"pred", "p_label", "p_pred", "top5", "margin"}


def test_videos_of_two_rates_are_not_asked_about_together() -> None:
    model = Meter()
    records(model, Levels(rates=(10, 25)))
    assert {(fps, shape[0]) for fps, shape in model.asked} == {(10.0, 3), (25.0, 3)}


def test_an_abstention_is_no_prediction() -> None:
    class Silent(Meter):
        def at_rate(self, fps: float | None) -> Meter:
            return self

        def examine(self, clips: Tensor) -> Any:
            return self.logits(clips), [{"abstained": True} for _ in clips]

    for record in records(Silent(), Levels()):
        assert record["clean"]["pred"] is None
        assert record["clean"]["abstained"] is True


def test_a_long_video_is_thinned_out_and_the_rate_goes_with_it() -> None:
    model = Meter()
    [first, *_] = records(model, Levels(frames=20, rates=(30, 30)))
    assert first["input"]["indices"] == [0, 3, 6, 9, 12, 15, 18]
    assert {fps for fps, _ in model.asked} == {10.0}


def test_frames_are_averaged_down_before_anything_sees_them() -> None:
    model = Meter()
    [first, *_] = records(model, Levels())
    assert first["input"]["size"] == [8, 11]
    assert model.asked[0][1][2:] == (3, 8, 11)


@pytest.mark.parametrize(("side", "shape"), [(0, (12, 16)), (12, (12, 16)), (6, (6, 8))])
def test_reduced_keeps_small_frames_and_averages_large_ones(side, shape) -> None:
    frames = np.zeros((20, 12, 16, 3), np.uint8)
    frames[:, ::2] = 201
    small = reduced(frames, side)
    assert small.shape == (20, *shape, 3)
    assert small.dtype == np.uint8
    if side == 6:
        assert (small == 100).all()  # 100.5 goes to the even level
    else:
        assert small is frames


class TestView:
    gather = torch.arange(4)[None]
    random = VideoRandom([1, 2])

    def test_the_model_is_asked_through_its_guard(self):
        guard = GuardedModel(Meter())
        view = View(guard.at_rate(5.0), self.gather, chunk=1)
        with guard.watch():
            out, told = view.detailed(torch.full((2, 4, 3, 8, 8), 0.75), self.random)
            assert guard.unmetered == 2
        assert out.shape == (2, 2)
        assert [t["score"] for t in told] == pytest.approx([0.75, 0.75])
        assert told[0]["evidence"] == {"fps": 5.0}

    def test_facts_about_several_draws_are_dropped(self):
        class Twice:
            def wrap(self, predict: Any, random: Any) -> Any:
                return lambda clips: predict(clips) + predict(clips)

        link = DefenseLink("twice", Twice(), "exact", stochastic=False)
        _, told = View(Meter(), self.gather, [link]).detailed(
            torch.rand(2, 4, 3, 8, 8), self.random
        )
        assert told == [{}, {}]

    def test_facts_behind_a_defense_are_those_of_what_the_model_saw(self):
        class Dark:
            def wrap(self, predict: Any, random: Any) -> Any:
                return lambda clips: predict(clips * 0.5)

        link = DefenseLink("dark", Dark(), "exact", stochastic=False)
        _, told = View(Meter(), self.gather, [link]).detailed(
            torch.ones(2, 4, 3, 8, 8), self.random
        )
        assert [t["score"] for t in told] == [0.5, 0.5]

    def test_facts_about_several_views_are_dropped(self):
        gather = torch.arange(4).view(2, 2)
        _, told = View(Meter(), gather).detailed(torch.rand(2, 4, 3, 8, 8), self.random)
        assert told == [{}, {}]


class TestGroups:
    def test_a_limit_takes_whole_groups(self):
        found = [r["video"] for r in records(Meter(), Levels(count=5), limit=5)]
        assert len(found) == 4
        assert {v.partition("#")[0] for v in found} == {v.partition("#")[0] for v in found[::2]}
        more = [r["video"] for r in records(Meter(), Levels(count=5), limit=8)]
        assert set(found) < set(more)

    def test_a_limit_below_a_group_is_refused(self):
        with pytest.raises(vcr.errors.ConfigError, match="allowed: 2 or more"):
            records(Meter(), Levels(count=5), limit=1)
