"""One test per known fault A1 to A14 of video readers, on real encoded files."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import subprocess
import sys
import time

import av
import numpy as np
import pytest
from files import (
    PLACEHOLDER,
    SIZE,
    X264,
    audio_only,
    claim_frames,
    cut,
    damage,
    encode,
    h264,
    number_of,
    numbers_of,
    picture,
    remux,
)
from vcr_core.video.counts import FrameCounts
from vcr_core.video.info import VideoReadError
from vcr_core.video.isolation import read_isolated
from vcr_core.video.reader import probe, read
from vcr_core.video.sampling import SamplingPlan, make_plan, whole_video

SEGMENTS = functools.partial(make_plan, frames=8, policy="segment_middle")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def mpeg4(folder):
    return encode(folder / "plain.avi", 24, codec="mpeg4", options={"bf": "0", "g": "12"})


@pytest.fixture(scope="module")
def fast(folder):
    return h264(folder / "fast.mp4", 60, b_frames=2, container_options={"movflags": "faststart"})


def edited(folder):
    """A trim by stream copy: five leading packets that an edit list discards."""
    source = h264(folder / "whole.mp4", 30, b_frames=2)
    with av.open(str(source)) as container:
        unit = container.streams.video[0].time_base
    return remux(
        folder / "edited.mp4",
        source,
        shift=int(5 / 25 / unit),
        container_options={"avoid_negative_ts": "disabled"},
    )


def lying_files(folder, mpeg4):
    """Files whose headers or packets claim another number of frames than they hold."""
    return {
        "header claims more": (claim_frames(folder / "more.avi", mpeg4, 431), range(24)),
        "header claims fewer": (claim_frames(folder / "fewer.avi", mpeg4, 10), range(24)),
        "no count in the header": (h264(folder / "none.mkv", 24, b_frames=2), range(24)),
        "packets without frames": (
            remux(folder / "empty.avi", mpeg4, extra=[(5, PLACEHOLDER), (9, PLACEHOLDER)]),
            range(24),
        ),
        "edit list": (edited(folder), range(5, 30)),
        "dropped frames of AVI": (
            encode(
                folder / "gap.avi",
                codec="mpeg4",
                options={"bf": "0"},
                times=[i * 40 + (400 if i > 10 else 0) for i in range(24)],
            ),
            range(24),
        ),
        "raw stream": (h264(folder / "raw.h264", 24, b_frames=2, container="h264"), range(24)),
    }


@pytest.mark.parametrize(
    "kind",
    [
        "header claims more",
        "header claims fewer",
        "no count in the header",
        "packets without frames",
        "edit list",
        "dropped frames of AVI",
        "raw stream",
    ],
)
def test_a1_count_is_what_decoding_yields(tmp_path, mpeg4, kind):
    path, numbers = lying_files(tmp_path, mpeg4)[kind]
    started = time.monotonic()
    clip = read(path, whole_video)
    assert clip.n_decoded == len(numbers)
    assert numbers_of(clip.frames) == list(numbers)
    # A sampler that looks at the end gets what a sequential decoder counts, cold and warm.
    counts = FrameCounts(tmp_path / "counts")
    expected = [numbers[i] for i in SEGMENTS(len(numbers)).table[0]]
    for _ in range(2):
        assert numbers_of(read(path, SEGMENTS, counts=counts).frames) == expected
    assert time.monotonic() - started < 5


def test_a1_the_lying_files_do_lie(tmp_path, mpeg4):
    files = lying_files(tmp_path, mpeg4)
    claims = {kind: probe(path).header_frames for kind, (path, _) in files.items()}
    assert claims["header claims more"] == 431
    assert claims["header claims fewer"] == 10
    assert claims["no count in the header"] is None
    assert claims["packets without frames"] == 26
    assert claims["edit list"] == 30
    assert claims["dropped frames of AVI"] > 24
    assert claims["raw stream"] is None


def test_a1_difference_is_recorded(tmp_path, mpeg4):
    clip = read(claim_frames(tmp_path / "more.avi", mpeg4, 431), whole_video)
    assert clip.info.header_frames == 431
    assert clip.notes == ("the header states 431 frames, 24 were decoded",)


@pytest.mark.parametrize("b_frames", [0, 2, 3])
def test_a2_delayed_frames_are_flushed(tmp_path, b_frames):
    path = h264(tmp_path / "video.mp4", 24, b_frames=b_frames)
    assert numbers_of(read(path, whole_video).frames) == list(range(24))


def test_a2_frames_inside_the_decoder_survive_an_error_behind_them(tmp_path):
    # Pictures 0..10 in order; the error comes after them, while some are still inside.
    source = h264(tmp_path / "whole.mkv", 40, b_frames=2)
    path = cut(tmp_path / "cut.mkv", source, 0.7)
    clip = read(path, whole_video, on_error="truncate")
    assert numbers_of(clip.frames) == list(range(clip.n_decoded))


def test_a3_random_access_equals_sequential_twice(tmp_path):
    path = h264(tmp_path / "one_key_frame.mp4", 200, b_frames=3)
    rng = np.random.default_rng(0)
    for _ in range(10):
        wanted = tuple(sorted(rng.choice(200, 5, replace=False).tolist()))
        sampler = functools.partial(_exactly, wanted)
        first, second = read(path, sampler), read(path, sampler)
        assert numbers_of(first.frames) == list(wanted)
        np.testing.assert_array_equal(first.frames, second.frames)


def _exactly(wanted, count):
    return SamplingPlan(table=(wanted,), policy="own", n_frames=count)


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a4_variable_frame_rate_has_every_frame_once(tmp_path, suffix):
    times = [i * i * 10 + i for i in range(24)]
    path = encode(tmp_path / f"vfr.{suffix}", options=X264, times=times)
    clip = read(path, whole_video)
    assert numbers_of(clip.frames) == list(range(24))
    np.testing.assert_allclose(clip.pts_s, np.array(times) / 1000, atol=2e-3)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a5_rotated_video_comes_out_upright(tmp_path, rotation):
    upright = np.zeros((48, 96, 3), np.uint8)
    upright[:24, :48], upright[24:, 48:] = (200, 30, 30), (30, 30, 200)
    # As a phone does: the sensor's picture is stored turned, the matrix turns it back.
    stored = np.rot90(upright, k=-(rotation // 90))
    path = encode(
        tmp_path / "phone.mp4", images=[stored] * 3, options=X264, rotation=rotation or None
    )
    clip = read(path, whole_video)
    assert clip.frames.shape == (3, 48, 96, 3)
    assert np.abs(clip.frames[0, 12, 24].astype(int) - (200, 30, 30)).max() < 25
    assert np.abs(clip.frames[0, 36, 72].astype(int) - (30, 30, 200)).max() < 25
    assert clip.info.rotation == rotation
    assert (clip.info.height, clip.info.width) == stored.shape[:2]
    assert read(path, whole_video, autorotate=False).frames.shape[1:] == stored.shape


def test_a6_bad_files_fail_alone_and_by_name(tmp_path, fast):
    (tmp_path / "zero.mp4").touch()
    (tmp_path / "text.mp4").write_text("not a video\n" * 200)
    (tmp_path / "text.txt").write_text("rendered as ANSI art by the library\n" * 200)
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nfast.mp4\n")
    (tmp_path / "script.mp4").write_text(f"ffconcat version 1.0\nfile '{fast}'\n")
    cut(tmp_path / "cut.mp4", fast, 0.6)
    damage(tmp_path / "damaged.mp4", fast)
    cut(tmp_path / "headless.mp4", h264(tmp_path / "good.mp4"), 0.5)
    before = read(tmp_path / "good.mp4", SEGMENTS).frames
    stages = {}
    for path in sorted(tmp_path.iterdir()):
        try:
            clip = read(path, SEGMENTS)
        except VideoReadError as error:
            named = error.path == str(path) and str(path) in str(error) and bool(error.cause)
            stages[path.name] = error.stage if named else str(error)
        else:
            np.testing.assert_array_equal(clip.frames, before)
            stages[path.name] = "read"
    assert stages == {
        "zero.mp4": "open",
        "text.mp4": "open",
        "text.txt": "open",
        "list.m3u8": "open",
        "script.mp4": "open",
        "headless.mp4": "open",
        "cut.mp4": "decode",
        "damaged.mp4": "decode",
        "good.mp4": "read",
    }


@pytest.mark.parametrize("harm", [cut, damage])
def test_a6_truncate_gives_the_sound_beginning_and_says_so(tmp_path, fast, harm):
    path = harm(tmp_path / "bad.mp4", fast, **({"fraction": 0.8} if harm is cut else {"at": 0.8}))
    clips = [
        read(path, whole_video, on_error="truncate", thread_type=kind, thread_count=count)
        for kind in ("NONE", "SLICE", "FRAME", "AUTO")
        for count in (1, 2, 0)
    ]
    for clip in clips:
        assert clip.truncated
        assert any("truncated" in note for note in clip.notes)
        assert 0 < clip.n_decoded < 60
        # No repeated, invented or renumbered frame: frame i shows i.
        assert numbers_of(clip.frames) == list(range(clip.n_decoded))
        np.testing.assert_array_equal(clip.frames, clips[0].frames)


def test_a6_damage_that_the_decoder_conceals_is_an_error(tmp_path, fast):
    path = damage(tmp_path / "one_byte.mp4", fast, length=4, at=0.8)
    with pytest.raises(VideoReadError, match="damaged") as caught:
        read(path, whole_video)
    assert caught.value.stage == "decode"


def test_a6_nothing_decodable_cannot_be_truncated(tmp_path, fast):
    path = damage(tmp_path / "first.mp4", fast, length=2000, at=0.35)
    with pytest.raises(VideoReadError) as caught:
        read(path, whole_video, on_error="truncate")
    assert caught.value.stage in ("decode", "empty")


def test_a7_sound_only_is_no_video_stream(tmp_path):
    for suffix in ("wav", "mkv", "mov"):
        path = audio_only(tmp_path / f"sound.{suffix}")
        with pytest.raises(VideoReadError) as caught:
            read(path, whole_video)
        assert caught.value.stage == "no_video_stream"
        assert str(path) in str(caught.value)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, [0] * 16), (3, [0, 1, 2] * 5 + [0]), (7, [(4 * j) % 7 for j in range(16)])],
)
def test_a8_clip_longer_than_the_video(tmp_path, count, expected):
    path = encode(tmp_path / "short.mp4", count, options=X264)
    clip = read(path, functools.partial(make_plan, frames=16, stride=4))
    assert clip.n_decoded == count
    assert clip.plan.table == (tuple(expected),)
    assert numbers_of(clip.frames[clip.plan.gather[0]]) == expected


def test_a9_clips_asked_are_clips_used_and_indices_are_returned(tmp_path):
    path = h264(tmp_path / "video.mp4", 120, b_frames=2)
    clip = read(path, functools.partial(make_plan, frames=4, stride=5, clips=3))
    assert clip.plan.table == ((0, 5, 10, 15), (52, 57, 62, 67), (104, 109, 114, 119))
    np.testing.assert_array_equal(clip.indices, np.unique(clip.plan.table))
    assert numbers_of(clip.frames) == clip.indices.tolist()


LIMITED, FULL = 1, 2


@pytest.mark.parametrize(
    ("codec", "pix_fmt", "color_range", "tolerance"),
    [
        ("ffv1", "yuv420p", LIMITED, 5),
        ("ffv1", "yuv420p", FULL, 5),
        ("ffv1", "yuv444p", LIMITED, 4),
        ("ffv1", "yuv420p10le", LIMITED, 5),
        ("ffv1", "yuv444p12le", LIMITED, 4),
        ("ffv1", "yuva420p", LIMITED, 5),
        ("ffv1", "bgra", None, 0),
        ("ffv1", "rgb48le", None, 1),
        ("libx264", "yuv420p", FULL, 6),
        ("mjpeg", "yuvj420p", FULL, 12),
    ],
)
def test_a10_colours_and_bit_depths(tmp_path, codec, pix_fmt, color_range, tolerance):
    colours = [(200, 60, 40), (30, 180, 70), (20, 40, 220), (128, 128, 128), (255, 255, 255)]
    images = [np.full((32, 48, 3), colour, np.uint8) for colour in colours]
    options = X264 if codec == "libx264" else {}
    path = encode(
        tmp_path / "colours.mkv",
        images=images,
        codec=codec,
        pix_fmt=pix_fmt,
        options=options,
        color_range=color_range,
    )
    clip = read(path, whole_video)
    assert clip.frames.dtype == np.uint8
    assert clip.frames.shape == (5, 32, 48, 3)
    middle = clip.frames[:, 16, 24].astype(int)
    assert np.abs(middle - np.array(colours)).max() <= tolerance


@pytest.mark.parametrize("pix_fmt", ["gray", "gray10le"])
def test_a10_gray_gives_three_equal_channels(tmp_path, pix_fmt):
    images = [np.full((31, 49, 3), level, np.uint8) for level in (30, 128, 220)]
    clip = read(
        encode(tmp_path / "gray.mkv", images=images, codec="ffv1", pix_fmt=pix_fmt), whole_video
    )
    assert clip.frames.shape == (3, 31, 49, 3)
    assert np.abs(clip.frames[:, 15, 24].astype(int) - [[30], [128], [220]]).max() <= 3
    assert np.ptp(clip.frames[:, 15, 24], axis=-1).max() <= 1


@pytest.mark.parametrize("suffix", ["mp4", "avi", "mkv"])
def test_a11_presentation_order_with_b_frames(tmp_path, suffix):
    path = h264(tmp_path / f"video.{suffix}", 24, b_frames=3)
    clip = read(path, whole_video)
    assert numbers_of(clip.frames) == list(range(24))
    if suffix != "avi":
        assert clip.pts_monotonic


def test_a11_wrong_times_change_no_order_and_are_flagged(tmp_path):
    source = encode(tmp_path / "source.mkv", 12, codec="mpeg4", options={"bf": "0", "g": "12"})
    wrong = [0, 120, 80, 160, 40, 200, 240, 280, 320, 360, 400, 440]
    path = remux(tmp_path / "wrong.mkv", source, pts=wrong)
    clip = read(path, whole_video)
    assert numbers_of(clip.frames) == list(range(12))
    assert not clip.pts_monotonic


def test_a11_missing_times_keep_the_decoders_order(tmp_path):
    clip = read(h264(tmp_path / "raw.h264", 24, b_frames=2, container="h264"), whole_video)
    assert numbers_of(clip.frames) == list(range(24))
    assert not clip.pts_monotonic


# A12 is about list files: see tests/datasets/test_csv.py::test_a12_odd_names_in_list_files


@pytest.mark.parametrize(
    "name",
    [
        "Видео.mp4",
        "動画 クリップ.mp4",
        'it\'s "quoted", with comma.mp4',
        "hash#1 50%.mp4",
        "frame_%03d.mp4",
        "[brackets] {braces} (x).mp4",
        "c:drive.mp4",
        "http:host.mp4",
        "-dash.mp4",
        "semi;colon&amp.mp4",
        "question?.mp4",
    ],
)
def test_a13_any_file_name(tmp_path, name):
    if os.name == "nt" and set(name) & set('":?'):
        pytest.skip("not a name on this system")
    plain = encode(tmp_path / "plain.mp4", 3, options=X264)
    path = tmp_path / name
    path.write_bytes(plain.read_bytes())
    assert numbers_of(read(path, whole_video).frames) == [0, 1, 2]
    assert probe(path).path == str(path)


def test_a13_a_name_that_is_no_text(tmp_path):
    plain = encode(tmp_path / "plain.mp4", 3, options=X264)
    name = os.fsencode(tmp_path) + b"/\xff\xfe.mp4"
    try:
        with open(name, "wb") as file:  # noqa: PTH123 - a name that is bytes
            file.write(plain.read_bytes())
    except OSError:
        pytest.skip("the file system takes text names only")
    path = os.fsdecode(name)
    assert numbers_of(read(path, whole_video).frames) == [0, 1, 2]
    counts = FrameCounts(tmp_path / "counts")
    read(path, whole_video, counts=counts)
    assert list((tmp_path / "counts").rglob("*.json"))


POOL = """
import functools, multiprocessing, sys
from vcr_core.video.reader import read
from vcr_core.video.sampling import whole_video

if __name__ == "__main__":
    method, *paths = sys.argv[1:]
    read(paths[0], whole_video)  # the parent has used the library already
    work = functools.partial(read, sampler=whole_video, thread_count=1)
    with multiprocessing.get_context(method).Pool(2) as pool:
        clips = pool.map_async(work, paths, chunksize=1).get(timeout=40)
    for path, clip in zip(paths, clips):
        assert (clip.frames == read(path, whole_video).frames).all()
    print([clip.n_decoded for clip in clips])
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a14_two_workers_over_twenty_clips(tmp_path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    paths = [h264(tmp_path / f"{i}.mp4", 10 + i, b_frames=2) for i in range(20)]
    # In a process of its own: what other tests left in this one must not be forked.
    (tmp_path / "pool.py").write_text(POOL)
    command = [sys.executable, tmp_path / "pool.py", method, *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == list(range(10, 30))


def test_a14_a_hang_and_a_crash_become_errors(fast):
    clip = read_isolated(fast, SEGMENTS, limit_s=60)
    np.testing.assert_array_equal(clip.frames, read(fast, SEGMENTS).frames)
    with pytest.raises(VideoReadError, match="TimeoutError"):
        read_isolated(fast, time.sleep, limit_s=1)  # sleeps a second per frame
    with pytest.raises(VideoReadError, match="died"):
        read_isolated(fast, os._exit, limit_s=60)
    with pytest.raises(VideoReadError, match="gone") as caught:
        read_isolated(fast.with_name("gone.mp4"), SEGMENTS, limit_s=60)
    assert caught.value.stage == "open"


def test_the_picture_code_survives(tmp_path):
    assert [number_of(picture(i, SIZE)) for i in range(1024)] == list(range(1024))
