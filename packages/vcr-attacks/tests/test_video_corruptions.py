"""Corruptions of whole videos: what each keeps, how it grows, and that it never differs."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from vcr_attacks.corruptions import coding
from vcr_attacks.corruptions.coding import H264, H265, Packet, decoded, encoded
from vcr_attacks.corruptions.temporal import BOX_JUMBLE, FRAME_RATE, JUMBLE, SAMPLING
from vcr_attacks.corruptions.transmission import BitError, PacketLoss, first_picture
from vcr_attacks.corruptions.weather import plasma
from vcr_attacks.params.corruptions import CorruptionParams
from vcr_attacks.specs.video_corruptions import SPECS
from vcr_core.components import load_attr, params_type
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents
from vcr_core.protocols import TransformContext, WholeVideo
from vcr_core.randomness import VideoRandom

BY_NAME = {spec.name: spec for spec in SPECS}
every_type = pytest.mark.parametrize("name", sorted(BY_NAME))
REORDERING = (
    "frame-rate", "frame-sampling", "reverse-sampling", "jumble", "box-jumble", "frame-freeze",
)  # fmt: skip
CODED = ("h264-crf", "h265-crf", "h264-abr", "h265-abr", "mpeg1", "mpeg2")


def corrupted(name: str, video: WholeVideo, severity: int, seed: int = 1, **params: Any) -> Any:
    spec = BY_NAME[name]
    made = msgspec.convert({"severity": severity, **params}, params_type(spec))
    return load_attr(spec.target, spec)(made).transform(
        video, TransformContext(VideoRandom([seed]))
    )


def whole(frames: np.ndarray[Any, Any], fps: Fraction | int | None = 30) -> WholeVideo:
    return WholeVideo("v", 0, frames, None if fps is None else Fraction(fps))


def numbered(count: int, fps: Fraction | int | None = 30) -> WholeVideo:
    frames = np.empty((count, 6, 8, 3), np.uint8)
    frames[:] = np.arange(count, dtype=np.uint8)[:, None, None, None]
    return whole(frames, fps)


@pytest.fixture(scope="module")
def moving() -> WholeVideo:
    """Forty frames of 72 x 90: coloured clouds that drift, which every type can damage."""
    generator = torch.Generator().manual_seed(0)
    clouds = torch.stack([plasma(128, 1.6, generator) for _ in range(3)], dim=-1)
    frames = [clouds.roll((2 * t, -3 * t), dims=(0, 1))[:72, :90] for t in range(40)]
    return whole((torch.stack(frames) * 255).round().byte().numpy())


@every_type
class TestEveryType:
    def test_severity_0_is_the_identity(self, name, moving):
        result = corrupted(name, moving, 0)
        assert np.array_equal(result.frames, moving.frames)
        assert list(result.index_map) == [*range(40)]

    def test_the_same_bits_and_the_original_left_alone(self, name, moving):
        kept = moving.frames.copy()
        first, again = corrupted(name, moving, 5), corrupted(name, moving, 5)
        assert np.array_equal(moving.frames, kept)
        assert np.array_equal(first.frames, again.frames)
        assert first.index_map == again.index_map
        assert first.facts == again.facts
        assert first.facts["type"] == name
        assert first.facts["severity"] == 5

    def test_seeds_matter_where_the_spec_says_so(self, name, moving):
        results = [corrupted(name, moving, 3, seed=s) for s in range(6)]
        differs = any(not np.array_equal(results[0].frames, r.frames) for r in results[1:])
        assert differs == BY_NAME[name].stochastic

    def test_the_length_changes_where_the_spec_says_so(self, name, moving):
        changes = BY_NAME[name].corruption.changes_length
        for severity in (1, 5):
            result = corrupted(name, moving, severity)
            assert (len(result.frames) != 40) == changes
            assert result.aligned != changes
            assert result.frames.shape[1:] == moving.frames.shape[1:]

    @pytest.mark.parametrize("count", [1, 2, 3, 7])
    def test_short_videos_of_odd_sizes(self, name, count, moving):
        short = whole(moving.frames[:count, :25, :33])
        result = corrupted(name, short, 5)
        assert len(result.frames) == len(result.index_map) >= 1
        assert result.frames.shape[1:] == (25, 33, 3)
        assert all(-1 <= i < count for i in result.index_map)


@pytest.mark.parametrize("name", ["h264-crf", "h265-crf", "mpeg1", "mpeg2", "motion-blur-temporal"])
def test_damage_grows_with_severity(name, moving):
    damage = []
    for severity in range(6):
        change = corrupted(name, moving, severity).frames.astype(float) - moving.frames
        damage.append(float(np.sqrt((change**2).mean())))
    assert damage[0] == 0
    assert all(a < b for a, b in itertools.pairwise(damage)), damage


@pytest.mark.parametrize("name", REORDERING)
def test_order_commutes_with_what_is_done_to_pixels(name, moving):
    mapped = whole(255 - moving.frames // 2)
    after = corrupted(name, mapped, 4).frames
    assert np.array_equal(after, 255 - corrupted(name, moving, 4).frames // 2)


@pytest.mark.parametrize("name", REORDERING)
def test_the_index_map_says_where_frames_come_from(name, moving):
    for severity in range(1, 6):
        result = corrupted(name, moving, severity)
        assert np.array_equal(result.frames, moving.frames[list(result.index_map)])


class TestMotionBlur:
    def test_a_static_video_stays(self):
        still = whole(np.full((9, 5, 7, 3), 131, np.uint8))
        for severity in range(1, 6):
            result = corrupted("motion-blur-temporal", still, severity)
            assert np.array_equal(result.frames, still.frames)

    def test_a_moving_dot_keeps_its_intensity(self):
        frames = np.zeros((40, 8, 40, 3), np.uint8)
        frames[np.arange(40), 4, np.arange(40)] = 240
        for table, reach in (("mini-kinetics-c", 3), ("mini-ssv2-c", 1)):
            result = corrupted("motion-blur-temporal", whole(frames), 1, table=table)
            inside = result.frames[reach:-reach].astype(int).sum(axis=(1, 2))
            # 240 is divided by 6 and by 2 without a rest.
            assert (inside == 240).all()

    def test_the_window_is_that_of_the_formula(self):
        video = numbered(50)
        shown = corrupted("motion-blur-temporal", video, 2).frames[:, 0, 0, 0]
        for i in (0, 3, 20, 47, 49):
            window = np.clip(np.arange(i - 5, i + 5), 0, 49)
            assert shown[i] == math.floor(window.mean() + 0.5)


class TestFrameRate:
    @pytest.mark.parametrize("fps", [Fraction(30), Fraction(25), Fraction(30000, 1001)])
    @pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
    def test_no_more_frames_than_the_rate_has(self, fps, severity):
        for table, rates in FRAME_RATE.items():
            result = corrupted("frame-rate", numbered(200, fps), severity, table=table)
            assert len(result.frames) == 200
            distinct = len(set(result.index_map))
            assert distinct <= math.ceil(200 / fps * rates[severity - 1])
            assert distinct >= 200 / fps * rates[severity - 1] - 1
            assert list(result.index_map) == sorted(result.index_map)

    def test_half_the_rate_holds_every_second_frame(self):
        index = corrupted("frame-rate", numbered(20, 24), 3).index_map
        assert index == tuple(i - i % 2 for i in range(20))

    def test_slow_videos_stay_and_unknown_rates_are_refused(self):
        assert corrupted("frame-rate", numbered(20, 6), 5).index_map == tuple(range(20))
        with pytest.raises(IncompatibleComponents, match="frame rate of v is not known"):
            corrupted("frame-rate", numbered(20, None), 5)


class TestOrder:
    @pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
    def test_sampling_and_its_reverse(self, severity):
        step = SAMPLING[severity - 1]
        forward = corrupted("frame-sampling", numbered(100), severity).index_map
        backward = corrupted("reverse-sampling", numbered(100), severity).index_map
        assert forward == tuple(range(0, 100, step))
        assert backward == forward[::-1]

    @pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
    def test_jumble_keeps_the_frames_of_each_segment(self, severity):
        length = JUMBLE[severity - 1]
        index = corrupted("jumble", numbered(101), severity).index_map
        assert index != tuple(range(101))
        for start in range(0, 101, length):
            inside = sorted(index[start : start + length])
            assert inside == [*range(start, min(start + length, 101))]

    @pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
    def test_box_jumble_keeps_segments_whole(self, severity):
        length = BOX_JUMBLE[severity - 1]
        index = corrupted("box-jumble", numbered(110), severity).index_map
        assert sorted(index) == [*range(110)]
        breaks = [(a, b) for a, b in itertools.pairwise(index) if b != a + 1]
        assert breaks
        assert all(b % length == 0 for _, b in breaks)

    def test_freeze_holds_frames_until_the_next(self):
        expected = {1: 40, 2: 20, 3: 10, 4: 5, 5: 1}
        for severity, kept in expected.items():
            index = corrupted("frame-freeze", numbered(100), severity).index_map
            assert len(set(index)) == kept
            assert list(index) == sorted(index)
            own = [i for i, source in enumerate(index) if i == source]
            assert set(own) == set(index)
        assert len(set(corrupted("frame-freeze", numbered(20), 4).index_map)) == 2


VERSION_1 = {
    "box-jumble": "29377dd75d67a0e5",
    "frame-freeze": "6ca42e621741b1d5",
    "frame-rate": "941983010a0d6ad7",
    "frame-sampling": "161d7e1ac7448201",
    "jumble": "0ea519388ae50b47",
    "motion-blur-temporal": "a73b037357eb1df9",
    "reverse-sampling": "f1e8ed33d1dc595d",
}


def test_version_1_is_these_frames():
    """Other values need another version of the suites: whole numbers are the same everywhere."""
    frames = (np.arange(90 * 4 * 6 * 3) ** 2 // 7 % 256).astype(np.uint8).reshape(90, 4, 6, 3)
    found = {}
    for name in VERSION_1:
        made = [corrupted(name, whole(frames), s, seed=9).frames for s in range(1, 6)]
        found[name] = hashlib.sha256(b"".join(m.tobytes() for m in made)).hexdigest()[:16]
    assert found == VERSION_1


class TestCoding:
    def test_all_frames_come_back_where_they_were(self, moving):
        for codec in (H264, H265, coding.MPEG1, coding.MPEG2):
            result = decoded(encoded(moving.frames, moving.fps, codec))
            assert result.sources == tuple(range(40))
            assert result.refused == 0
            errors = np.abs(
                result.frames[:, None, ::4, ::4].astype(int) - moving.frames[None, :, ::4, ::4]
            ).mean(axis=(2, 3, 4))
            assert (errors.argmin(axis=1) == np.arange(40)).all()

    def test_a_lower_rate_takes_fewer_bytes(self, moving):
        sizes = [corrupted("h264-abr", moving, s).facts["bytes"] for s in (1, 3, 5)]
        assert sizes == sorted(sizes, reverse=True)

    def test_what_is_lost_repeats_the_last_good_frame(self, moving):
        stream = encoded(moving.frames, moving.fps, H264.given(bf="0"))
        kept = [p for p in stream.packets if p.pts not in (7, 8)]
        result = decoded(stream, kept)
        assert result.sources[:10] == (0, 1, 2, 3, 4, 5, 6, 6, 6, 9)
        assert np.array_equal(result.frames[8], result.frames[6])
        assert result.missing == 2

    def test_nothing_at_all_is_black(self, moving):
        stream = encoded(moving.frames[:4], moving.fps, H264)
        result = decoded(stream, [Packet(b"\x00\x00\x01garbage", 0, 0)])
        assert not result.frames.any()
        assert result.sources == (-1,) * 4

    @pytest.mark.parametrize("name", [*CODED, "bit-error", "packet-loss"])
    def test_a_missing_codec_is_named(self, name, monkeypatch):
        import av

        def none(name: str, mode: str) -> None:
            raise av.codec.codec.UnknownCodecError(name)

        monkeypatch.setattr(av, "Codec", none)
        with pytest.raises(
            ComponentUnavailable, match=rf"'{name}' is not available.* no encoder '"
        ):
            load_attr(BY_NAME[name].target, BY_NAME[name])()


@pytest.fixture(scope="module")
def stream() -> coding.Stream:
    """Return some 100 kB, so that rates are rates."""
    noise = np.random.default_rng(0).integers(0, 256, (60, 72, 88, 3), np.uint8)
    return encoded(noise, Fraction(30), H264.given(preset="veryfast"))


class TestTransmission:
    def test_bytes_flip_at_the_rate_and_never_in_the_first_header(self, stream):
        assert stream.size > 100_000
        spared = first_picture(stream.packets[0].data) + 16
        flipped = []
        for seed in range(4):
            for level, per in ((4, 10_000), (2, 30_000)):
                packets, hit = BitError().received(stream, level, VideoRandom([seed]))
                places = [
                    i
                    for p, q in zip(stream.packets, packets, strict=True)
                    for i, (a, b) in enumerate(zip(p.data, q.data, strict=True))
                    if a != b
                ]
                assert len(places) == hit
                assert abs(hit - stream.size / per) <= 1
                assert packets[0].data[:spared] == stream.packets[0].data[:spared]
                flipped.append(places)
        assert flipped[0] != flipped[2]

    def test_flips_of_a_mild_severity_are_flips_of_a_worse_one(self, stream):
        mild, _ = BitError().received(stream, 2, VideoRandom([5]))
        worse, _ = BitError().received(stream, 4, VideoRandom([5]))
        for original, m, w in zip(stream.packets, mild, worse, strict=True):
            same = np.frombuffer(m.data, np.uint8) == np.frombuffer(original.data, np.uint8)
            flipped = np.flatnonzero(~same)
            assert (np.frombuffer(m.data, np.uint8) == np.frombuffer(w.data, np.uint8))[
                flipped
            ].all()

    def test_packets_are_lost_at_the_rate_and_never_the_first(self, stream):
        for level, part in enumerate((0.01, 0.02, 0.03, 0.04, 0.06)):
            for seed in range(3):
                packets, hit = PacketLoss().received(stream, level, VideoRandom([seed]))
                assert len(packets) == 60 - hit
                assert packets[0] == stream.packets[0]
                assert abs(hit - 59 * part) <= 1

    def test_something_is_hit_even_in_a_short_video(self, moving):
        short = whole(moving.frames[:6])
        for name in ("bit-error", "packet-loss"):
            assert corrupted(name, short, 1).facts["hit"] == 1

    def test_the_first_part_of_a_picture_is_found(self):
        units = b"\x00\x00\x01\x06settings" + b"\x00\x00\x00\x01\x67sps" + b"\x00\x00\x01\x65slice"
        assert units[first_picture(units) :] == b"\x65slice"
        assert first_picture(b"\x00\x00\x01\x06settings") == 12
        assert first_picture(b"nothing") == 7

    def test_the_type_is_a_corruption_of_the_decoded_stream(self, moving):
        clean = decoded(encoded(moving.frames, moving.fps, H264))
        damaged = BitError(CorruptionParams(severity=5)).transform(
            moving, TransformContext(VideoRandom([3]))
        )
        assert not np.array_equal(damaged.frames, clean.frames)


SCRIPT = """
import hashlib, json
from dataclasses import replace
from fractions import Fraction
import numpy as np
from vcr_attacks.corruptions.coding import H264, H265, MPEG1, MPEG2, decoded, encoded

codecs = {
    "h264": (H264, None), "h264 51": (H264.given(crf="51"), None), "h264 abr": (H264, 8000),
    "h265": (H265, None), "h265 51": (H265.given(crf="51"), None), "h265 abr": (H265, 8000),
    "mpeg1": (MPEG1.given(qmin="8", qmax="8"), None),
    "mpeg2": (MPEG2.given(qmin="31", qmax="31"), None),
}
found = {}
for height, width in ((64, 64), (24, 32)):
    # Soft squares that drift, with a little noise: there is motion to be found.
    rng = np.random.default_rng(0)
    big = 40 + 170 * rng.uniform(0, 1, (5, 5, 3)).repeat(19, 0).repeat(19, 1)
    for axis in (0, 1):
        big = np.stack([np.roll(big, k, axis) for k in range(-9, 10)]).mean(0)
    drift = np.stack([big[k : k + height, k : k + width] for k in range(30)])
    frames = (drift + rng.uniform(-12, 12, drift.shape)).astype(np.uint8)
    for name, (codec, bits) in codecs.items():
        stream = encoded(frames, Fraction(16), codec, bit_rate=bits)
        arrived = {"": None}
        if name == "h264":  # the only one that is damaged
            arrived["lost"] = [p for i, p in enumerate(stream.packets) if i != 5]
            arrived["flipped"] = [
                replace(p, data=p.data[:-9] + bytes([p.data[-9] ^ 85]) + p.data[-8:])
                if i in (0, 7) and len(p.data) > 20 else p
                for i, p in enumerate(stream.packets)
            ]
        for what, packets in arrived.items():
            shown = decoded(stream, packets).frames
            key = f"{name} {height} {width} {what}"
            found[key] = hashlib.sha256(shown.tobytes()).hexdigest()
print(json.dumps(found))
"""


def test_codecs_do_not_depend_on_what_the_memory_held():
    """Garbage of glibc's making in all new memory; elsewhere this compares two processes."""
    results = []
    for garbage in ("1", "200"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"MALLOC_PERTURB_": garbage, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        results.append(json.loads(done.stdout))
    assert len(results[0]) == (8 + 2) * 2
    assert {k for k, v in results[0].items() if v != results[1][k]} == set()
