from __future__ import annotations

import io
from typing import Any

import pytest

np = pytest.importorskip("numpy")
av = pytest.importorskip("av")

from vcr_core.errors import UsageError  # noqa: E402
from vcr_core.video.preview import encode_preview  # noqa: E402


def clip(height: int = 24, width: int = 32, total: int = 5) -> Any:
    """A gray clip with a bright square that moves."""
    frames = np.full((total, height, width, 3), 60, np.uint8)
    for i in range(total):
        frames[i, 4 : 4 + height // 3, 2 * i : 2 * i + width // 3] = 220
    return frames


def decode(data: bytes) -> tuple[Any, Any]:
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        frames = np.stack([f.to_ndarray(format="rgb24") for f in container.decode(stream)])
        return stream, frames


@pytest.mark.parametrize(("format_", "codec"), [("mp4", "h264"), ("webm", "vp9"), ("gif", "gif")])
def test_frames_and_rate_come_through(format_: Any, codec: str) -> None:
    frames = clip()
    stream, found = decode(encode_preview(frames, 10, format=format_))
    assert stream.codec_context.name.removeprefix("lib").startswith(codec)
    assert float(stream.average_rate) == pytest.approx(10)
    assert found.shape == frames.shape
    assert np.abs(found.astype(int) - frames).mean() < 8


@pytest.mark.parametrize("format_", ["mp4", "webm"])
def test_odd_sides_are_padded_and_colour_is_what_browsers_play(format_: Any) -> None:
    stream, found = decode(encode_preview(clip(23, 31), 8, format=format_))
    assert found.shape[1:3] == (24, 32)
    assert stream.codec_context.format.name == "yuv420p"


def test_gif_keeps_odd_sides_and_loops() -> None:
    data = encode_preview(clip(23, 31), 10, format="gif")
    assert decode(data)[1].shape[1:3] == (23, 31)
    assert b"NETSCAPE2.0\x03\x01\x00\x00" in data


def test_scale_repeats_pixels() -> None:
    _, found = decode(encode_preview(clip(), 8, format="webm", scale=3))
    assert found.shape[1:3] == (72, 96)


@pytest.mark.parametrize("format_", ["mp4", "webm", "gif"])
def test_one_frame_is_a_clip_and_bytes_repeat(format_: Any) -> None:
    first, again = (encode_preview(clip(total=1), 8, format=format_) for _ in range(2))
    assert first == again
    assert len(decode(first)[1]) == 1


def test_refuses_what_it_cannot_encode() -> None:
    with pytest.raises(UsageError, match="uint8"):
        encode_preview(clip().astype(np.float32), 8)
    with pytest.raises(UsageError, match="rate"):
        encode_preview(clip(), 0)
    with pytest.raises(UsageError, match="scale"):
        encode_preview(clip(), 8, scale=0)
    with pytest.raises(UsageError, match="not 'avi'"):
        encode_preview(clip(), 8, format="avi")  # type: ignore[arg-type]
