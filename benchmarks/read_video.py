"""Cost of reading 16 uniform frames of a 1-minute 720p H.264 file, against a bare PyAV loop.

The bare loop decodes as far as it must and converts the same frames; it is *told* the frame
numbers, while the reader has to find out how many frames the file has. CPU time, cases
interleaved, medians. Usage: ``python benchmarks/read_video.py [repeats]``.
"""

from __future__ import annotations

import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
from vcr_core.video.counts import FrameCounts
from vcr_core.video.reader import read
from vcr_core.video.sampling import make_plan

FRAMES = 1500
RATE = 25
SIZE = (720, 1280)


def make_file(path: Path) -> None:
    """Encode one minute of a noisy texture that pans and zooms in brightness."""
    rng = np.random.default_rng(0)
    height, width = SIZE
    coarse = rng.integers(0, 255, (height // 8 + 40, width // 8 + 200, 3), dtype=np.uint8)
    base = coarse.repeat(8, 0).repeat(8, 1).astype(np.int16)
    base += rng.integers(-25, 25, base.shape, dtype=np.int16)
    base = base.clip(0, 255).astype(np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"preset": "veryfast"})
        stream.height, stream.width = SIZE
        stream.pix_fmt = "yuv420p"
        for index in range(FRAMES):
            x, y = index % 1500, index // 5 % 300
            picture = np.ascontiguousarray(base[y : y + height, x : x + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))


def bare(path: Path, indices: set[int]) -> np.ndarray:
    """Decode up to the last index and keep the frames asked for."""
    last = max(indices)
    frames = []
    with av.open(str(path)) as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index in indices:
                frames.append(frame.to_ndarray(format="rgb24"))
            if index == last:
                break
    return np.stack(frames)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the process's CPU seconds for one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    """Measure and print."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    sampler = functools.partial(make_plan, frames=16, policy="segment_middle")
    indices = set(sampler(FRAMES).distinct.tolist())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "minute.mp4"
        make_file(path)
        counts = FrameCounts(Path(folder) / "counts")
        read(path, sampler, counts=counts)
        assert np.array_equal(read(path, sampler).frames, bare(path, indices))
        cases: dict[str, Callable[[], object]] = {
            "bare PyAV loop": lambda: bare(path, indices),
            "read, first time": lambda: read(path, sampler),
            "read, count known": lambda: read(path, sampler, counts=counts),
        }
        times: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(repeats):
            for name, work in cases.items():
                times[name].append(cpu_seconds(work))
        megabytes = path.stat().st_size / 1e6
    base = statistics.median(times["bare PyAV loop"])
    print(f"{FRAMES} frames of {SIZE[1]}x{SIZE[0]}, {megabytes:.1f} MB, last frame {max(indices)}")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:18} {median:7.3f} s CPU   ratio {median / base:.3f}   ({repeats} repeats)")


if __name__ == "__main__":
    main()
