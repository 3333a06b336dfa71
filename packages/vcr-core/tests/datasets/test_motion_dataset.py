from __future__ import annotations

import functools
import hashlib

import msgspec
import numpy as np
import pytest
from vcr_core.datasets.motion.dataset import MotionDataset
from vcr_core.datasets.motion.generator import generate_clip
from vcr_core.datasets.params import MotionParams
from vcr_core.protocols import VideoDataset
from vcr_core.video.info import VideoReadError
from vcr_core.video.sampling import make_plan, whole_video

SMALL = {"frames": 8, "size": 24}


def test_ids_and_labels():
    dataset = MotionDataset(MotionParams())
    assert isinstance(dataset, VideoDataset)
    assert len(dataset.ids()) == 960
    assert dataset.ids()[123] == "motion-v1-test-000123"
    assert dataset.labels.id == "motion-16"
    assert [dataset.item(i).label for i in dataset.ids()[:17]] == [*range(16), 0]
    assert MotionDataset(MotionParams(split="val", videos=3)).ids() == [
        f"motion-v1-val-00000{i}" for i in range(3)
    ]


@pytest.mark.parametrize(("labels", "count"), [("motion", 16), ("appearance", 8), ("joint", 128)])
def test_label_spaces(labels, count):
    dataset = MotionDataset(MotionParams(labels=labels, videos=40, **SMALL))
    assert len(dataset.labels) == count
    for video in dataset.ids():
        clip = generate_clip("test", int(video[-6:]), **SMALL)
        expected = {
            "motion": clip.motion,
            "appearance": clip.shape,
            "joint": clip.motion * 8 + clip.shape,
        }
        assert dataset.item(video).label == expected[labels]


def test_frames_are_the_generators():
    dataset = MotionDataset(MotionParams(base_seed=5, hardness=0.5, videos=4, **SMALL))
    source = dataset.item("motion-v1-test-000003").source
    expected = generate_clip("test", 3, base_seed=5, hardness=0.5, **SMALL).frames
    clip = source.read(whole_video)
    np.testing.assert_array_equal(clip.frames, expected)
    assert clip.frames.flags.writeable
    assert clip.n_decoded == 8
    assert source.sha256() == hashlib.sha256(expected.tobytes()).hexdigest()
    some = source.read(functools.partial(make_plan, frames=4, policy="segment_middle"))
    np.testing.assert_array_equal(some.frames, expected[[1, 3, 5, 7]])
    some.frames[:] = 0
    np.testing.assert_array_equal(source.read(whole_video).frames, expected)


def test_name_says_what_was_drawn():
    name = (
        MotionDataset(MotionParams(base_seed=5, **SMALL)).item("motion-v1-test-000003").source.name
    )
    assert name == "motion-v1-test-000003 (seed 5, 8x24x24, hardness 1)"


@pytest.mark.parametrize(
    "video", ["motion-v1-test-000002", "motion-v1-val-000000", "motion-v1-test-0", "x", ""]
)
def test_unknown_ids(video):
    with pytest.raises(KeyError):
        MotionDataset(MotionParams(videos=2)).item(video)


def test_sampler_faults_are_typed():
    source = MotionDataset(MotionParams(**SMALL)).item("motion-v1-test-000000").source
    with pytest.raises(VideoReadError) as caught:
        source.read(lambda _: whole_video(9))
    assert caught.value.stage == "sampling"


@pytest.mark.parametrize(
    "bad",
    [{"frames": 1}, {"size": 8}, {"videos": 0}, {"base_seed": -1}, {"hardness": -0.1}, {"n": 1}],
)
def test_params_are_checked(bad):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, MotionParams)
