"""Every form of video that ``read`` takes, its options, and that no cache changes a result."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tracemalloc
from dataclasses import fields
from fractions import Fraction

import av
import numpy as np
import pytest
from av.stream import Disposition
from files import X264, claim_frames, cut, encode, h264, numbers_of, picture
from vcr_core.video import decoding, reader
from vcr_core.video.counts import FrameCounts
from vcr_core.video.frames_dir import natural_key
from vcr_core.video.info import VideoReadError
from vcr_core.video.opening import backend_name
from vcr_core.video.reader import probe, read
from vcr_core.video.sampling import SamplingPlan, make_plan, whole_video

SEGMENTS = functools.partial(make_plan, frames=8, policy="segment_middle")
CENTER = functools.partial(make_plan, frames=4, stride=2, policy="center")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def video(folder):
    return h264(folder / "video.mp4", 50, b_frames=2)


@pytest.fixture
def passes(monkeypatch):
    """How many frames each pass over a file decoded."""
    seen: list[int] = []
    original = decoding.decode_pass

    def spy(*args, **kwargs):
        found = original(*args, **kwargs)
        seen.append(found.count)
        return found

    monkeypatch.setattr(reader, "decode_pass", spy)
    return seen


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "options"),
    [
        ("video.webm", "libvpx-vp9", "yuv420p", {"deadline": "realtime", "cpu-used": "8"}),
        ("video.avi", "mpeg4", "yuv420p", {"bf": "2"}),
        ("video.mkv", "ffv1", "bgr0", {"level": "3"}),
        ("video.gif", "gif", "rgb8", {}),
        ("video.ts", "libx264", "yuv420p", X264),
        ("video.mov", "mjpeg", "yuvj420p", {}),
        ("video.png", "apng", "rgb24", {}),
    ],
)
def test_formats(tmp_path, name, codec, pix_fmt, options):
    container = "apng" if codec == "apng" else None
    path = encode(
        tmp_path / name, 20, codec=codec, pix_fmt=pix_fmt, options=options, container=container
    )
    assert numbers_of(read(path, SEGMENTS).frames) == list(SEGMENTS(20).table[0])


def test_everything_that_a_clip_says(video):
    clip = read(video, CENTER)
    assert clip.frames.dtype == np.uint8
    assert clip.frames.flags.c_contiguous
    assert clip.frames.shape == (4, 64, 80, 3)
    assert clip.plan == CENTER(50)
    assert clip.indices.tolist() == [21, 23, 25, 27]
    assert numbers_of(clip.frames) == [21, 23, 25, 27]
    np.testing.assert_allclose(clip.pts_s, clip.indices / 25)
    assert clip.fps == Fraction(25)
    assert clip.n_decoded == 50
    assert clip.pts_monotonic
    assert clip.backend == backend_name()
    assert not clip.truncated
    assert clip.notes == ()
    assert clip.info.rotation == 0


def test_probe(video):
    info = probe(video, hash_content=True)
    assert (info.width, info.height, info.codec, info.pix_fmt) == (80, 64, "h264", "yuv420p")
    assert info.path == str(video)
    assert info.nominal_fps == 25
    assert info.header_frames == 50
    assert info.duration_s == pytest.approx(2.0)
    assert not info.has_audio
    assert info.rotation is None
    assert len(info.sha256) == 64
    assert probe(video).sha256 is None


def test_probe_of_content_folders_and_arrays(tmp_path, video):
    assert probe(video.read_bytes()).header_frames == 50
    np.save(tmp_path / "clip.npy", np.zeros((3, 5, 7, 3), np.uint8))
    info = probe(tmp_path / "clip.npy", hash_content=True)
    assert (info.header_frames, info.height, info.width) == (3, 5, 7)
    assert len(info.sha256) == 64
    make_folder(tmp_path / "frames", 4)
    info = probe(tmp_path / "frames", hash_content=True)
    assert (info.header_frames, info.height, info.width) == (4, 64, 80)
    assert len(info.sha256) == 64


def test_content_of_a_file(video):
    np.testing.assert_array_equal(
        read(video.read_bytes(), CENTER).frames, read(video, CENTER).frames
    )
    with pytest.raises(VideoReadError, match="0 bytes"):
        read(b"", CENTER)
    with pytest.raises(VideoReadError, match="open"):
        read(b"no video at all" * 50, CENTER)


def make_folder(folder, count, suffix=".png", start=8):
    folder.mkdir()
    for number in range(count):
        encode(
            folder / f"f{start + number}{suffix}",
            images=[picture(number)],
            codec="png" if suffix == ".png" else "mjpeg",
            pix_fmt="rgb24" if suffix == ".png" else "yuvj444p",
            container="image2pipe",
        )
    return folder


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_folder_of_frames_in_natural_order(tmp_path, suffix):
    folder = make_folder(tmp_path / "clip_%d", 5, suffix)  # f8 f9 f10 f11 f12
    (folder / ".hidden.png").write_bytes(b"x")
    (folder / "readme.txt").write_text("not a frame")
    clip = read(folder, whole_video)
    assert numbers_of(clip.frames) == [0, 1, 2, 3, 4]
    assert clip.n_decoded == 5
    assert np.isnan(clip.pts_s).all()
    assert not clip.pts_monotonic
    assert read(folder, whole_video, max_frames=2).n_decoded == 2


def test_folder_faults(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(VideoReadError) as caught:
        read(tmp_path / "empty", whole_video)
    assert caught.value.stage == "empty"
    folder = make_folder(tmp_path / "bad", 4)
    (folder / "f10.png").write_bytes(b"broken")
    with pytest.raises(VideoReadError, match=r"f10\.png"):
        read(folder, whole_video)
    clip = read(folder, whole_video, on_error="truncate")
    assert numbers_of(clip.frames) == [0, 1]
    assert clip.truncated
    assert clip.n_decoded == 2
    with pytest.raises(VideoReadError, match="manifest states 9"):
        read(folder, whole_video, expected_frames=9)
    encode(folder / "f10.png", images=[picture(2, (32, 32))], codec="png", pix_fmt="rgb24",
           container="image2pipe")  # fmt: skip
    with pytest.raises(VideoReadError, match=r"size changes.*f10\.png"):
        read(folder, whole_video)


def test_natural_key():
    names = ["a10", "a2", "A1", "b", "a02", "a2b", "10", "9"]
    assert sorted(names, key=natural_key) == ["9", "10", "A1", "a02", "a2", "a2b", "a10", "b"]


def test_arrays(tmp_path):
    frames = np.stack([picture(i) for i in range(9)])
    np.save(tmp_path / "clip.npy", frames)
    np.savez_compressed(tmp_path / "clip.npz", frames=frames, other=np.arange(3))
    np.save(tmp_path / "gray.npy", frames[..., 0])
    for name in ("clip.npy", "clip.npz", "gray.npy"):
        clip = read(tmp_path / name, CENTER)
        np.testing.assert_array_equal(clip.frames, frames[[1, 3, 5, 7]])
        assert type(clip.frames) is np.ndarray
        assert clip.frames.flags.writeable
        assert clip.n_decoded == 9


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.zeros((2, 4, 4, 3), np.float32), "float32"),
        (np.zeros((2, 4, 4, 4), np.uint8), "4, 4, 4"),
        (np.zeros((4, 4), np.uint8), "uint8"),
        (np.zeros((0, 4, 4, 3), np.uint8), "empty"),
        (np.array([{"a": 1}]), "open: ValueError"),
    ],
)
def test_arrays_that_are_no_video(tmp_path, array, word):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(VideoReadError, match=word):
        read(tmp_path / "bad.npy", whole_video)


def test_array_file_faults(tmp_path):
    np.savez(tmp_path / "keys.npz", video=np.zeros(3))
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "text.npy").write_text("no array")
    for name, word in (("keys.npz", "frames"), ("text.npz", "open"), ("text.npy", "open")):
        with pytest.raises(VideoReadError, match=word):
            read(tmp_path / name, whole_video)


def test_animated_webp(tmp_path):
    image = pytest.importorskip("PIL.Image")
    images = [image.fromarray(picture(i)) for i in range(6)]
    path = tmp_path / "clip.webp"
    images[0].save(path, save_all=True, append_images=images[1:], lossless=True, exact=True)
    clip = read(path, CENTER)
    np.testing.assert_array_equal(clip.frames, [picture(i) for i in CENTER(6).distinct])
    assert "pillow" in clip.backend
    info = probe(path)
    assert (info.header_frames, info.width, info.height) == (6, 80, 64)
    np.testing.assert_array_equal(read(path.read_bytes(), CENTER).frames, clip.frames)
    (tmp_path / "cut.webp").write_bytes(path.read_bytes()[:60])
    with pytest.raises(VideoReadError):
        read(tmp_path / "cut.webp", whole_video)


@pytest.mark.parametrize("size", [(63, 81), (17, 33), (2, 2)])
def test_odd_and_tiny_sizes(tmp_path, size):
    images = [np.full((*size, 3), level, np.uint8) for level in (20, 120, 220)]
    path = encode(tmp_path / "odd.mkv", images=images, codec="ffv1", pix_fmt="bgr0")
    np.testing.assert_array_equal(read(path, whole_video).frames, images)


def test_size_change_inside_the_video(tmp_path):
    first = h264(tmp_path / "a.h264", 8, container="h264").read_bytes()
    second = h264(tmp_path / "b.h264", 8, container="h264", size=(96, 64)).read_bytes()
    path = tmp_path / "both.h264"
    path.write_bytes(first + second)
    with pytest.raises(VideoReadError, match=r"size changes.*frame 8 is 64x96") as caught:
        read(path, whole_video)
    assert caught.value.stage == "decode"
    # What lies behind the last used frame has no influence, with or without a known count.
    early = functools.partial(_take, (0, 3, 7))
    counts = FrameCounts(tmp_path / "counts")
    for _ in range(2):
        assert numbers_of(read(path, early, counts=counts).frames) == [0, 3, 7]


def _take(indices, count):
    return SamplingPlan(table=(indices,), policy="own", n_frames=count)


def test_cover_picture_is_no_video(tmp_path):
    path = tmp_path / "cover.mp4"
    with av.open(str(path), "w") as output:
        cover = output.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 32, 32, "yuvj420p"
        cover.disposition = Disposition.attached_pic
        main = output.add_stream("libx264", rate=25, options=X264)
        main.width, main.height, main.pix_fmt = 80, 64, "yuv420p"
        gray = np.full((32, 32, 3), 99, np.uint8)
        output.mux(cover.encode(av.VideoFrame.from_ndarray(gray, format="rgb24")))
        for i in range(6):
            output.mux(main.encode(av.VideoFrame.from_ndarray(picture(i), format="rgb24")))
        for stream in (cover, main):
            output.mux(stream.encode(None))
    with av.open(str(path)) as given:
        kinds = [bool(s.disposition & Disposition.attached_pic) for s in given.streams.video]
        assert sorted(kinds) == [False, True]
    assert numbers_of(read(path, whole_video).frames) == list(range(6))


def test_high_dynamic_range_is_noted(tmp_path):
    path = tmp_path / "hdr.mkv"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=25, options=X264)
        stream.width, stream.height, stream.pix_fmt = 80, 64, "yuv420p"
        stream.codec_context.color_trc, stream.codec_context.color_primaries = 16, 9
        frame = av.VideoFrame.from_ndarray(picture(1), format="rgb24").reformat(format="yuv420p")
        frame.color_trc, frame.color_primaries = 16, 9
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    assert any("tone mapping" in note for note in read(path, whole_video).notes)


def test_missing_file_and_other_things_that_are_no_file(tmp_path):
    with pytest.raises(VideoReadError) as caught:
        read(tmp_path / "gone" / "video.mp4", whole_video)
    assert caught.value.stage == "open"
    assert str(tmp_path / "gone" / "video.mp4") in str(caught.value)
    with pytest.raises(VideoReadError, match="open"):
        read("nul\0name.mp4", whole_video)
    with pytest.raises(VideoReadError, match="open"):
        probe(tmp_path / "gone.mp4")


def test_max_frames_ends_the_video_early(video, passes):
    clip = read(video, SEGMENTS, max_frames=10)
    assert clip.n_decoded == 10
    assert numbers_of(clip.frames) == list(SEGMENTS(10).table[0])
    assert passes == [10]
    assert read(video, SEGMENTS, max_frames=1000).n_decoded == 50


@pytest.mark.parametrize("option", ["max_frames", "expected_frames"])
def test_options_below_one(video, option):
    with pytest.raises(ValueError, match=option):
        read(video, SEGMENTS, **{option: 0})


def test_sampler_faults(video):
    def refuses(count):
        raise ValueError(f"{count} frames are too few")

    with pytest.raises(VideoReadError, match="50 frames are too few") as caught:
        read(video, refuses)
    assert caught.value.stage == "sampling"
    with pytest.raises(VideoReadError, match="plan is for 7 frames"):
        read(video, lambda _: whole_video(7))
    with pytest.raises(VideoReadError, match="asks for frames 50"):
        read(video, lambda count: _take((count,), count))


def test_a_sampler_that_refuses_only_the_wrong_guess(tmp_path):
    path = claim_frames(
        tmp_path / "more.avi",
        encode(tmp_path / "plain.avi", 24, codec="mpeg4", options={"bf": "0"}),
        431,
    )

    def only_24(count):
        if count != 24:
            raise ValueError("only 24")
        return whole_video(count)

    assert read(path, only_24).n_decoded == 24


def test_usual_file_needs_one_pass_and_a_known_count_stops_early(video, tmp_path, passes):
    counts = FrameCounts(tmp_path / "counts")
    off = read(video, CENTER)
    assert passes == [50]
    cold = read(video, CENTER, counts=counts)
    assert passes == [50, 50]
    warm = read(video, CENTER, counts=counts)
    assert passes == [50, 50, 28]
    listed = read(video, CENTER, expected_frames=50)
    assert passes == [50, 50, 28, 28]
    for other in (cold, warm, listed):
        for field in fields(other):
            ours, theirs = getattr(off, field.name), getattr(other, field.name)
            if isinstance(ours, np.ndarray):
                np.testing.assert_array_equal(ours, theirs)
            else:
                assert ours == theirs, field.name


def test_manifest_count_that_is_wrong(video, passes):
    for wrong in (49, 51, 60, 500):
        with pytest.raises(VideoReadError, match=f"{wrong} that the manifest") as caught:
            read(video, SEGMENTS, expected_frames=wrong)
        assert str(video) in str(caught.value)


def test_stale_count_is_corrected(video, tmp_path):
    counts = FrameCounts(tmp_path)
    for wrong in (49, 51, 400):
        counts.put(video, backend_name(), wrong)
        assert read(video, SEGMENTS, counts=counts).n_decoded == 50
        assert counts.get(video, backend_name()) == 50


def test_damaged_file_is_never_remembered(tmp_path):
    source = h264(tmp_path / "source.mp4", 60, container_options={"movflags": "faststart"})
    path = cut(tmp_path / "cut.mp4", source, 0.8)
    counts = FrameCounts(tmp_path / "counts")
    sampler = functools.partial(_take, (0,))
    for _ in range(2):
        with pytest.raises(VideoReadError):
            read(path, sampler, counts=counts)
        clip = read(path, sampler, on_error="truncate", counts=counts)
        assert clip.truncated
    # A manifest may list such a file with what it yields.
    again = read(path, whole_video, on_error="truncate", expected_frames=clip.n_decoded)
    assert numbers_of(again.frames) == list(range(clip.n_decoded))
    with pytest.raises(VideoReadError, match="manifest"):
        read(path, whole_video, on_error="truncate", expected_frames=60)


def test_counts_are_safe(video, tmp_path):
    counts = FrameCounts(tmp_path / "counts")
    assert counts.get(video, "a") is None
    counts.put(video, "a", 7)
    assert counts.get(video, "a") == 7
    assert counts.get(video, "b") is None
    assert counts.get(tmp_path / "gone.mp4", "a") is None
    entry = next((tmp_path / "counts").rglob("*.json"))
    for text in ("", "{", "[]", json.dumps({"frames": 9}), entry.read_text().replace("7}", "-7}")):
        entry.write_text(text)
        assert counts.get(video, "a") is None
    counts.put(video, "a", 7)
    copy = tmp_path / "copy.mp4"
    copy.write_bytes(video.read_bytes())
    counts.put(copy, "a", 8)
    copy.write_bytes(video.read_bytes() + b"\0")
    assert counts.get(copy, "a") is None
    counts.forget(video, "a")
    counts.forget(video, "a")
    assert counts.get(video, "a") is None
    (tmp_path / "file").write_text("")
    FrameCounts(tmp_path / "file").put(video, "a", 1)  # cannot be written: no error


def test_memory_holds_wanted_frames_only(tmp_path):
    images = [np.full((240, 320, 3), i, np.uint8) for i in range(120)]
    path = encode(tmp_path / "long.mp4", images=images, options=X264)
    read(path, SEGMENTS)
    tracemalloc.start()
    read(path, SEGMENTS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 240 * 320 * 3  # 8 frames, one being converted, and room for the rest


def test_sampling_and_info_import_nothing_heavy():
    code = (
        "import sys, vcr_core.video.info, vcr_core.video.sampling, vcr_core.datasets.params;"
        "sys.exit(','.join({'torch', 'av', 'PIL'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
