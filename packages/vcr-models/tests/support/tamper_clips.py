"""Videos to detect tampering in: smooth textures that pan, tampered with by hand, encoded."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import av
import numpy as np
import torch
from torch import Tensor

FPS = 25
START, END = 38, 63
"""One second in the middle of 100 frames."""


def panning(seed: int, frames: int = 100, size: tuple[int, int] = (64, 96)) -> Any:
    """Return ``[T, H, W, 3]`` uint8: waves of 16 to 100 pixels that move by 1 to 2 a frame."""
    rng = np.random.default_rng([11, seed])
    speed, course = rng.uniform(1, 2), rng.uniform(0, 2 * np.pi)
    waves = [
        (rng.uniform(0.01, 0.06), *rng.uniform(0, 2 * np.pi, 2), rng.uniform(-1, 1, 3))
        for _ in range(8)
    ]
    t = np.arange(frames)[:, None, None]
    rows, columns = np.mgrid[: size[0], : size[1]]
    x = (columns + speed * np.cos(course) * t).astype(np.float32)
    y = (rows + speed * np.sin(course) * t).astype(np.float32)
    image = np.zeros((frames, *size, 3), np.float32)
    for frequency, angle, phase, colour in waves:
        across, down = 2 * np.pi * frequency * np.array([np.cos(angle), np.sin(angle)])
        wave = np.sin(np.float32(across) * x + np.float32(down) * y + np.float32(phase))
        image += wave[..., None] * colour.astype(np.float32)
    return np.clip(128 + 27 * image, 0, 255).astype(np.uint8)


def tampered(name: str, frames: Any, donor: Any) -> Any:
    """Return the frames after an effect in frames 38 to 62."""
    inside = frames[START:END]
    head, tail = frames[:START], frames[END:]
    middle = {
        "original": inside,
        "drop": inside[:0],
        "mask": np.zeros_like(inside),
        "rotate": inside[:, ::-1, ::-1],
        "substitute": donor[START:END],
        "repeat": np.concatenate([inside, inside]),
    }[name]
    return np.concatenate([head, middle, tail])


def encoded(frames: Any, crf: int = 23) -> Any:
    """Return the frames after H.264; asserts that none was lost or added."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(FPS), options={"crf": str(crf)})
        stream.width, stream.height = frames.shape[2], frames.shape[1]
        stream.pix_fmt, stream.thread_count = "yuv420p", 1
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    buffer.seek(0)
    with av.open(buffer) as container:
        found = np.stack([f.to_ndarray(format="rgb24") for f in container.decode(video=0)])
    assert len(found) == len(frames)
    return found


def as_clip(frames: Any) -> Tensor:
    """Return ``[T, 3, H, W]`` in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2).float() / 255
