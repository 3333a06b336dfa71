"""Tampering operators on videos whose pixels say which frame they are."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from vcr_attacks.specs.tampering import SPECS
from vcr_attacks.tampering.pixels import resized
from vcr_core.components import load_attr, params_type
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import TransformContext, WholeVideo
from vcr_core.randomness import VideoRandom

BY_NAME = {spec.name: spec for spec in SPECS}
REORDERING = ("drop", "repeat", "freeze", "reverse", "shuffle", "speed")
every_operator = pytest.mark.parametrize("name", sorted(BY_NAME))


def operator(name: str, **params: Any) -> Any:
    spec = BY_NAME[name]
    return load_attr(spec.target, spec)(msgspec.convert(params, params_type(spec)))


def numbered(
    count: int = 100, height: int = 20, width: int = 30, *, fps: int | None = 25, id: str = "v"
) -> WholeVideo:
    """Return a video whose frame ``i`` has the value ``i``, with a mark in one corner."""
    frames = np.empty((count, height, width, 3), np.uint8)
    frames[:] = np.arange(count, dtype=np.uint8)[:, None, None, None]
    frames[:, 0, 0] = 200
    return WholeVideo(id, 0, frames, None if fps is None else Fraction(fps))


def context(seed: int = 1, donor: Callable[[], WholeVideo] | None = None) -> TransformContext:
    made = donor or (lambda: numbered(60, 12, 18, id="donor"))
    return TransformContext(VideoRandom([seed]), lambda other_label: made())


def tampered(name: str, video: WholeVideo | None = None, seed: int = 1, **params: Any) -> Any:
    return operator(name, **params).transform(video or numbered(), context(seed))


def values(result: Any) -> list[int]:
    return [int(v) for v in result.frames[:, 5, 5, 0]]


class TestFiveEffects:
    """25 frames a second, 100 frames, one second in the middle: frames 38 to 62."""

    def test_drop(self):
        result = tampered("drop")
        assert values(result) == [*range(38), *range(63, 100)]
        assert list(result.index_map) == values(result)
        assert (result.facts["start"], result.facts["end"]) == (38, 38)
        assert not result.aligned

    def test_repeat(self):
        result = tampered("repeat")
        assert values(result) == [*range(63), *range(38, 63), *range(63, 100)]
        assert (result.facts["start"], result.facts["end"]) == (63, 88)
        assert len(tampered("repeat", times=3).frames) == 175

    def test_mask(self):
        result = tampered("mask")
        black = (result.frames == 0).all(axis=(1, 2, 3))
        assert black.nonzero()[0].tolist() == [*range(38, 63)]
        assert result.index_map[38:63] == (-1,) * 25
        assert (tampered("mask", value=1.0).frames[50] == 255).all()

    def test_rotate_twice_is_nothing(self):
        video = numbered()
        once = tampered("rotate", video)
        changed = (once.frames != video.frames).any(axis=(1, 2, 3))
        assert changed.nonzero()[0].tolist() == [*range(38, 63)]
        assert (once.frames[50, -1, -1] == 200).all()
        twice = tampered("rotate", WholeVideo("v", 0, once.frames, video.fps))
        assert np.array_equal(twice.frames, video.frames)

    def test_substitute_takes_consecutive_frames_of_the_donor(self):
        result = tampered("substitute")
        start = result.facts["donor_start"]
        assert values(result) == [*range(38), *range(start, start + 25), *range(63, 100)]
        assert result.facts["donor"] == "donor"
        assert 0 <= start <= 60 - 25

    def test_a_short_donor_runs_in_a_loop(self):
        short = context(donor=lambda: numbered(10, 20, 30, id="short"))
        result = operator("substitute").transform(numbered(), short)
        assert values(result)[38:63] == [i % 10 for i in range(25)]


class TestOthers:
    def test_shuffle_keeps_the_frames_and_is_never_the_identity(self):
        for seed in range(20):
            inside = values(tampered("shuffle", duration_frames=2, seed=seed))[49:51]
            assert inside == [50, 49]
        inside = values(tampered("shuffle"))[38:63]
        assert sorted(inside) == [*range(38, 63)]
        assert inside != sorted(inside)

    def test_freeze_shows_one_frame(self):
        assert values(tampered("freeze"))[38:63] == [38] * 25

    def test_reverse_is_an_involution(self):
        video = numbered()
        once = tampered("reverse", video)
        assert values(once)[38:63] == [*range(62, 37, -1)]
        again = tampered("reverse", WholeVideo("v", 0, once.frames, video.fps))
        assert np.array_equal(again.frames, video.frames)

    def test_speed(self):
        fast, slow = tampered("speed"), tampered("speed", factor="0.5")
        assert values(fast)[38:51] == [*range(38, 63, 2)]
        assert len(fast.frames) == 100 - 12
        assert values(slow)[38:88] == [i for i in range(38, 63) for _ in range(2)]

    def test_noise_has_the_asked_deviation_inside_and_none_outside(self):
        grey = WholeVideo("v", 0, np.full((100, 40, 40, 3), 128, np.uint8), Fraction(25))
        difference = tampered("noise", grey).frames.astype(float) - 128
        assert difference[38:63].std() == pytest.approx(25, rel=0.05)
        assert not difference[:38].any()
        assert not difference[63:].any()
        # Every frame draws for itself.
        assert (difference[38] != difference[39]).any()

    @pytest.mark.parametrize("position", ["random", "center"])
    def test_local_mask_covers_the_area_and_stays(self, position):
        white = WholeVideo("v", 0, np.full((100, 200, 300, 3), 255, np.uint8), Fraction(25))
        frames = tampered("local-mask", white, position=position).frames
        covered = frames[38:63, :, :, 0] == 0
        assert covered[0].mean() == pytest.approx(0.16, abs=0.01)
        assert (covered == covered[0]).all()
        assert (frames[:38] == 255).all()
        rows, columns = covered[0].any(axis=1).sum(), covered[0].any(axis=0).sum()
        assert covered[0].sum() == rows * columns

    def test_blur_and_jpeg_damage_the_segment_alone(self):
        rng = np.random.default_rng(0)
        video = WholeVideo("v", 0, rng.integers(0, 256, (20, 24, 30, 3), np.uint8), Fraction(10))
        for name in ("blur", "jpeg"):
            found = tampered(name, video)
            changed = (found.frames != video.frames).any(axis=(1, 2, 3)).nonzero()[0].tolist()
            assert changed == [*range(found.facts["start"], found.facts["end"])]
        flat = WholeVideo("v", 0, np.full((20, 24, 30, 3), 77, np.uint8), Fraction(10))
        assert (tampered("blur", flat).frames == 77).all()


class TestSegment:
    @pytest.mark.parametrize(
        ("location", "start"),
        [("start", 0), ("middle", 38), ("end", 75), (0.5, 38), (0.0, 0), (1.0, 75), (0.25, 12)],
    )
    def test_location(self, location, start):
        facts = tampered("mask", location=location).facts
        assert (facts["start"], facts["end"]) == (start, start + 25)

    def test_random_location_is_drawn_inside(self):
        starts = {tampered("mask", location="random", seed=s).facts["start"] for s in range(40)}
        assert len(starts) > 10
        assert min(starts) >= 0
        assert max(starts) <= 75

    @pytest.mark.parametrize("count", [1, 2, 3, 7, 24, 49, 50, 51, 99])
    @every_operator
    def test_short_and_odd_videos(self, name, count):
        facts = tampered(name, numbered(count)).facts
        expected = 25 if count >= 50 else count // 3
        assert facts["n_frames"] == expected
        assert facts["duration_effective"] == expected / 25
        assert 0 <= facts["start"] <= facts["end"]

    def test_frames_instead_of_seconds(self):
        assert tampered("mask", duration_frames=7).facts["n_frames"] == 7
        unknown = numbered(fps=None)
        assert tampered("mask", unknown, duration_frames=7).facts["n_frames"] == 7
        with pytest.raises(IncompatibleComponents, match="duration_frames"):
            tampered("mask", unknown)


@every_operator
class TestEveryOperator:
    def test_no_duration_is_the_identity(self, name):
        video = numbered()
        result = tampered(name, video, duration_s=0)
        assert np.array_equal(result.frames, video.frames)
        assert list(result.index_map) == [*range(100)]

    def test_only_the_segment_differs(self, name):
        video = numbered()
        result = tampered(name, video)
        if not result.aligned:
            pytest.skip("the length changes")
        changed = (result.frames != video.frames).any(axis=(1, 2, 3)).nonzero()[0]
        assert changed.min() >= result.facts["start"]
        assert changed.max() < result.facts["end"]

    def test_the_index_map_says_where_frames_come_from(self, name):
        video = numbered()
        result = tampered(name, video)
        assert len(result.index_map) == len(result.frames)
        if name in REORDERING:
            assert np.array_equal(result.frames, video.frames[list(result.index_map)])

    def test_seeds_decide_everything(self, name):
        first, again = tampered(name), tampered(name)
        assert np.array_equal(first.frames, again.frames)
        assert first.facts == again.facts
        others = [tampered(name, seed=s, location="random") for s in range(2, 6)]
        assert any(not np.array_equal(first.frames, other.frames) for other in others)

    def test_the_original_is_left_alone(self, name):
        video = numbered()
        kept = video.frames.copy()
        result = tampered(name, video)
        result.frames[:] = 0
        assert np.array_equal(video.frames, kept) or result.frames is video.frames


@pytest.mark.parametrize("name", ["drop", "repeat", "speed"])
def test_the_old_length_can_be_kept(name):
    result = tampered(name, keep_length=True)
    assert len(result.frames) == 100
    assert result.aligned
    if name == "drop":
        assert values(result)[-26:] == [99] * 26


def test_quarter_turns_are_fitted_to_the_frame():
    result = tampered("rotate", angle="90")
    assert result.frames.shape == (100, 20, 30, 3)


def test_resizing_keeps_a_flat_colour():
    flat = np.full((2, 9, 16, 3), 131, np.uint8)
    assert (resized(flat, 20, 31) == 131).all()
    assert resized(flat, 9, 16).shape == flat.shape


def test_from_python_no_threat_has_to_be_named():
    import vcr_core as vcr

    attack = vcr.load("attack", "drop")
    result = vcr.evaluate(model="tiny-r3d", attack=attack, dataset="motion", limit=1)
    assert [record["status"] for record in result.records] == ["ok"]
