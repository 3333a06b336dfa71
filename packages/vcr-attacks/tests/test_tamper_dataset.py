"""The dataset ``tamper``: ids, groups, seeds, facts; nothing leaks from one split into another."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
import vcr_core as vcr
from vcr_attacks.params.tamper_dataset import TamperDatasetParams
from vcr_attacks.specs.tampering import SPECS
from vcr_attacks.tampering.dataset import TamperDataset
from vcr_attacks.tampering.effects import EVERY, MVT5, MVT8, SUITES
from vcr_core.engine.setup import rooted
from vcr_core.engine.subset import select_videos, training_videos
from vcr_core.errors import ConfigError, UnknownComponent, VcrError
from vcr_core.protocols import LabelSpace, VideoItem
from vcr_core.record_schema import validate_record
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.video.sampling import make_plan, whole_video


class Numbered:
    """Videos of two classes whose frame ``i`` has the value ``i``; 25 frames a second."""

    labels = LabelSpace("letters", ("a", "b"))

    def __init__(self, count: int = 4, frames: int = 100, fps: int | None = 25) -> None:
        self.count, self.frames, self.fps = count, frames, fps

    def ids(self) -> list[str]:
        return [f"v{i}" for i in range(self.count)]

    def item(self, video_id: str) -> VideoItem:
        if video_id not in self.ids():
            raise KeyError(video_id)
        index = int(video_id[1:])
        frames = np.empty((self.frames, 8, 10, 3), np.uint8)
        frames[:] = np.arange(self.frames, dtype=np.uint8)[:, None, None, None]
        frames[:, 0, 0] = 200 + index
        return VideoItem(video_id, index % 2, Timed(video_id, frames, self.fps))


class Timed(ArraySource):
    """An array with a frame rate of its own."""

    __slots__ = ("fps",)

    def __init__(self, name: str, frames: Any, fps: int | None) -> None:
        super().__init__(name, frames)
        object.__setattr__(self, "fps", fps)

    def read(self, sampler: Any) -> Any:
        clip = super().read(sampler)
        return replace(clip, fps=None if self.fps is None else Fraction(self.fps))


def tamper(base: Any = None, **params: Any) -> TamperDataset:
    asked = msgspec.convert(params, TamperDatasetParams)
    return TamperDataset(asked, base=base or Numbered())


def read(dataset: TamperDataset, video: str) -> Any:
    return dataset.item(video).source.read(whole_video)


def values(clip: Any) -> list[int]:
    return [int(v) for v in clip.frames[:, 5, 5, 0]]


class TestIds:
    def test_every_source_comes_as_it_is_and_once_for_each_effect(self):
        dataset = tamper()
        assert dataset.labels == LabelSpace("tamper-mvt5", ("original", *MVT5))
        assert list(dataset.ids())[:6] == [f"v0#{n}" for n in dataset.labels.names]
        assert len(dataset.ids()) == 4 * 6
        for video in dataset.ids():
            item = dataset.item(video)
            assert item.group == video.partition("#")[0]
            assert dataset.labels.names[item.label] == video.partition("#")[2]
            assert item.facts == {"tamper": {"type": video.partition("#")[2]}}

    def test_suites_are_what_the_operators_say_of_themselves(self):
        tags = {spec.name: spec.tags for spec in SPECS}
        assert set(EVERY) == set(tags)
        assert {n for n, t in tags.items() if "mvt5" in t} == set(MVT5)
        assert {n for n, t in tags.items() if t & {"mvt5", "mvt8"}} == set(MVT8)
        assert [len(SUITES[name]) for name in ("mvt5", "mvt8", "all")] == [5, 8, 13]

    def test_a_list_of_effects(self):
        dataset = tamper(effects=["freeze", "drop"])
        assert dataset.labels.names == ("original", "freeze", "drop")
        assert dataset.labels.id == "tamper-freeze+drop"

    @pytest.mark.parametrize("video", ["v0", "v0#", "v0#blur", "v9#drop", "#drop"])
    def test_unknown_ids(self, video):
        with pytest.raises(KeyError):
            tamper().item(video)

    def test_ids_may_hold_the_mark(self):
        class Odd(Numbered):
            def ids(self):
                return ["v0", "v1"]

            def item(self, video_id):
                return replace(super().item(video_id.replace("x#", "v")), id=video_id)

        assert tamper(Odd()).item("x#0#drop").group == "x#0"


class TestVideos:
    def test_the_original_is_the_source(self):
        dataset = tamper()
        item, source = dataset.item("v1#original"), dataset.base.item("v1")
        assert item.source.sha256() == source.source.sha256()
        assert values(read(dataset, "v1#original")) == [*range(100)]

    def test_frames_are_those_of_the_operator(self):
        clip = read(tamper(), "v0#drop")
        assert values(clip) == [*range(38), *range(63, 100)]
        assert clip.n_decoded == 75
        assert clip.info.header_frames is None

    def test_the_sampler_sees_the_tampered_video(self):
        item = tamper().item("v0#drop")
        clip = item.source.read(
            lambda count: make_plan(count, frames=5, policy="vcrbench_segments")
        )
        assert clip.indices.tolist() == [0, 18, 37, 56, 74]
        assert [int(v) for v in clip.frames[:, 5, 5, 0]] == [0, 18, 37, 81, 99]
        assert clip.pts_s.tolist() == pytest.approx([0, 0.72, 1.48, 2.24, 2.96])

    def test_facts(self):
        told = read(tamper(), "v0#repeat").facts["tamper"]
        assert told["type"] == "repeat"
        assert (told["start"], told["end"], told["n_frames"], told["frames"]) == (63, 88, 25, 125)
        assert (told["start_s"], told["end_s"]) == (63 / 25, 88 / 25)
        assert (told["fps"], told["duration_effective"]) == (25.0, 1.0)
        assert told["params"] == {
            "location": "middle", "duration_s": 1.0, "duration_frames": None,
            "keep_length": False, "times": 1,
        }  # fmt: skip
        cut = read(tamper(), "v0#drop").facts["tamper"]
        assert cut["start_s"] == cut["end_s"] == 38 / 25

    def test_where_and_how_long(self):
        dataset = tamper(location="start", duration_s=0.4, operators={"mask": {"value": 1.0}})
        clip = read(dataset, "v0#mask")
        assert (clip.frames[:10] == 255).all()
        assert values(clip)[10:] == [*range(10, 100)]

    def test_an_unknown_frame_rate(self):
        with pytest.raises(VcrError, match="frame rate"):
            read(tamper(Numbered(fps=None)), "v0#drop")
        clip = read(tamper(Numbered(fps=None), duration_frames=10), "v0#drop")
        assert len(clip.frames) == 90
        told = clip.facts["tamper"]
        assert told["start_s"] is told["fps"] is told["duration_effective"] is None

    def test_donors_are_of_the_same_split_and_another_class(self):
        for source in ("v0", "v1", "v2", "v3"):
            donor = read(tamper(), f"{source}#substitute").facts["tamper"]["donor"]
            assert donor != source
            assert int(donor[1:]) % 2 != int(source[1:]) % 2


class TestSeeds:
    def test_nothing_depends_on_the_order(self):
        dataset, other = tamper(effects="all"), tamper(effects="all")
        forward = {v: read(dataset, v) for v in dataset.ids()}
        for video in reversed(other.ids()):
            clip = read(other, video)
            assert np.array_equal(clip.frames, forward[video].frames)
            assert clip.facts == forward[video].facts

    def test_effects_of_a_source_share_their_segment(self):
        dataset = tamper(location="random", effects=["mask", "rotate", "noise"])
        starts = {
            source: {read(dataset, f"{source}#{e}").facts["tamper"]["start"] for e in
                     ("mask", "rotate", "noise")}
            for source in dataset.base.ids()
        }  # fmt: skip
        assert all(len(found) == 1 for found in starts.values())
        assert len(set.union(*starts.values())) > 1

    def test_another_seed_is_another_draw(self):
        first, other = (read(tamper(seed=s), "v0#substitute").facts["tamper"] for s in (0, 1))
        assert (first["donor"], first["donor_start"]) != (other["donor"], other["donor_start"])

    def test_hashes_tell_videos_apart(self):
        dataset = tamper(effects="all")
        hashes = {dataset.item(v).source.sha256() for v in dataset.ids()}
        assert len(hashes) == len(dataset.ids())
        assert tamper(seed=1).item("v0#drop").source.sha256() not in hashes
        assert tamper(duration_s=0.5).item("v0#drop").source.sha256() not in hashes


class TestRefusals:
    @pytest.mark.parametrize(
        ("params", "told"),
        [
            ({"effects": []}, "empty"),
            ({"effects": ["drop", "drop"]}, "twice"),
            ({"effects": ["pgd"]}, "no effect on a whole video"),
            ({"operators": {"noise": {"sigma": 3.0}}}, "not among the effects"),
            ({"operators": {"mask": {"colour": 1}}}, "colour"),
        ],
    )
    def test_wrong_effects(self, params, told):
        with pytest.raises(ConfigError, match=told):
            tamper(**params)

    def test_an_effect_that_nobody_provides(self):
        with pytest.raises((ConfigError, UnknownComponent), match="'reverze'"):
            tamper(effects=["reverze"])

    @pytest.mark.parametrize("base", ["tamper", {"name": "tamper", "effects": "mvt8"}])
    def test_tampering_twice(self, base):
        with pytest.raises(ConfigError, match="not tampered"):
            TamperDataset(TamperDatasetParams(base=base))

    def test_a_wrong_parameter_of_the_base(self):
        with pytest.raises(ConfigError, match="splitt"):
            TamperDataset(TamperDatasetParams(base={"splitt": "val"}))


class TestSplits:
    def test_the_split_is_that_of_the_base(self):
        groups = {}
        for split in ("train", "val", "test"):
            dataset = TamperDataset(TamperDatasetParams(base={"split": split, "videos": 20}))
            groups[split] = {dataset.item(v).group for v in dataset.ids()}
            donors = {
                read(dataset, v).facts["tamper"]["donor"]
                for v in list(dataset.ids())[:60]
                if v.endswith("#substitute")
            }
            assert donors <= groups[split]
        assert not groups["train"] & groups["val"]
        assert not groups["train"] & groups["test"]
        assert not groups["val"] & groups["test"]

    def test_no_recording_is_both_evaluated_and_trained_on(self):
        resolved = _experiment({"dataset": {"name": "tamper", "limit": 14}})
        dataset = tamper(Numbered(count=20))
        evaluated = {dataset.item(v).group for v, _ in select_videos(resolved, dataset)}
        training, overlap = training_videos(resolved, dataset)
        assert len(evaluated) == 2
        assert len(training) == 64
        assert not evaluated & {dataset.item(v).group for v, _ in training}
        assert not overlap


def _experiment(tables: dict[str, Any]) -> Any:
    from vcr_core.config.resolve import resolve_run

    return resolve_run({"model": {"name": "tamper-baseline"}, **tables}).experiment


def test_the_root_of_the_base_is_that_of_this_machine():
    roots = {"kinetics400": "/videos", "tamper": ""}
    found = rooted("tamper", {"base": "kinetics400"}, roots)
    assert found["base"] == {"name": "kinetics400", "root": "/videos"}
    given = {"base": {"name": "kinetics400", "root": "here", "split": "val"}}
    assert rooted("tamper", given, {"kinetics400": "/videos"}) == given
    assert rooted("tamper", {"base": "motion"}, {"kinetics400": "/videos"}) == {"base": "motion"}


def test_a_run_keeps_the_facts_and_shards_agree():
    options: dict[str, Any] = {
        "model": "tamper-baseline", "dataset": tamper(Numbered(count=3)), "limit": 18,
    }  # fmt: skip
    found = {r["video"]: r for r in vcr.evaluate(**options).records}
    alone = {r["video"]: r for r in vcr.evaluate(runtime={"batch_videos": 1}, **options).records}
    assert len(found) == 18
    for video, record in found.items():
        validate_record(record)
        assert record["status"] == "ok"
        assert record["sample"]["source"] == video.partition("#")[0]
        assert record["sample"]["tamper"]["type"] == video.partition("#")[2]
        for key in ("clean", "sample", "label"):
            assert record[key] == alone[video][key]


def test_files_are_tampered_with_after_decoding(tmp_path):
    from vcr_core.datasets.motion.export import export_split

    export_split(tmp_path, "val", count=3, format="mp4", frames=32)
    dataset = TamperDataset(TamperDatasetParams(base={"name": "folder", "root": str(tmp_path)}))
    found = list(vcr.evaluate(model="tamper-baseline", dataset=dataset).records)
    assert len(found) == 18
    for record in found:
        assert record["status"] == "ok"
        told = record["sample"]["tamper"]
        if told["type"] != "original":
            assert (told["fps"], told["n_frames"]) == (16.0, 16)
            assert told["frames"] == {"drop": 16, "repeat": 48}.get(told["type"], 32)
    right = [record["clean"]["pred"] == record["label"] for record in found]
    assert sum(right) >= 15
