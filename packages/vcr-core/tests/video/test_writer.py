"""Exact files read back to the same bytes; previews are named as such."""

from __future__ import annotations

import json
from fractions import Fraction

import av
import numpy as np
import pytest
from vcr_core.errors import StoreError, UsageError
from vcr_core.video import writer
from vcr_core.video.preview import preview_path, write_preview
from vcr_core.video.reader import read
from vcr_core.video.sampling import whole_video
from vcr_core.video.writer import frames_sha256, read_exact, sidecar_path, write_exact


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)


@pytest.mark.parametrize("suffix", [".mkv", ".npz"])
@pytest.mark.parametrize("shape", [(7, 48, 64), (5, 33, 51), (1, 1, 1), (2, 3, 200)])
def test_round_trip_is_exact(tmp_path, suffix, shape):
    frames = noise(*shape)
    facts = {"video_id": "a/b c", "indices": [0, 4, 9], "eps": "8/255", "seed": 42}
    path = tmp_path / "deep" / f"clip 1%{suffix}"
    digest = write_exact(path, frames, fps=Fraction(30000, 1001), facts=facts)
    stored = read_exact(path)
    np.testing.assert_array_equal(stored.frames, frames)
    assert stored.sha256 == digest == frames_sha256(frames)
    assert stored.fps == Fraction(30000, 1001)
    assert stored.facts == facts
    np.testing.assert_array_equal(read(path, whole_video).frames, frames)
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, path.name + ".json"]


def test_sidecar_says_what_the_file_is(tmp_path):
    write_exact(tmp_path / "clip.mkv", noise(2, 8, 8))
    sidecar = json.loads((tmp_path / "clip.mkv.json").read_text())
    assert sidecar["shape"] == [2, 8, 8, 3]
    assert sidecar["fps"] == "25/1"
    assert sidecar["encoding"] == "ffv1 bgr0"


def test_changed_file_or_sidecar_is_noticed(tmp_path):
    path = tmp_path / "clip.mkv"
    write_exact(path, noise(2, 8, 8))
    sidecar = sidecar_path(path).read_text()
    write_exact(path, noise(2, 8, 8) // 2)
    sidecar_path(path).write_text(sidecar)
    with pytest.raises(StoreError, match="SHA-256"):
        read_exact(path)
    sidecar_path(path).write_text("{}")
    with pytest.raises(StoreError, match="sidecar"):
        read_exact(path)
    sidecar_path(path).unlink()
    with pytest.raises(StoreError, match="sidecar"):
        read_exact(path)


def test_a_codec_that_loses_bits_is_caught_before_anything_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "clip.mkv"
    write_exact(path, noise(3, 16, 16))
    before = path.read_bytes()
    original = writer.encode

    def lossy(container, frames, rate, **_):
        original(container, frames, rate, codec="ffv1", pix_fmt="yuv420p", options={})

    monkeypatch.setattr(writer, "encode", lossy)
    with pytest.raises(StoreError, match="read back"):
        write_exact(path, noise(4, 16, 16))
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clip.mkv", "clip.mkv.json"]


@pytest.mark.parametrize(
    ("path", "frames", "options", "word"),
    [
        ("clip.mp4", noise(1, 4, 4), {}, "mkv"),
        ("clip.mkv", noise(1, 4, 4).astype(np.float32), {}, "uint8"),
        ("clip.mkv", noise(4, 4), {}, "uint8"),
        ("clip.mkv", noise(0, 4, 4), {}, "uint8"),
        ("clip.mkv", noise(1, 4, 4), {"fps": Fraction(-1)}, "positive"),
        ("clip.mkv", noise(1, 4, 4), {"facts": {"sha256": "x"}}, "sha256"),
    ],
)
def test_what_is_refused(tmp_path, path, frames, options, word):
    with pytest.raises(UsageError, match=word):
        write_exact(tmp_path / path, frames, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["clip.mkv", "clip_preview.mp4", "clip.x.webm", "clip"])
def test_preview_is_even_playable_and_named(tmp_path, name):
    frames = np.full((6, 33, 51, 3), (200, 40, 40), np.uint8)
    path = write_preview(tmp_path / name, frames, fps=Fraction(8))
    assert path == preview_path(tmp_path / name)
    assert "_preview" in path.name
    assert path.suffix == ".mp4"
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height) == (52, 34)
    clip = read(path, whole_video)
    assert clip.n_decoded == 6
    assert np.abs(clip.frames[:, 10, 10].astype(int) - (200, 40, 40)).max() < 15
