"""Time of a second sweep over the same models up to the attacks: caches warm over cold.

Real H.264 files of 340x256, which have to be decoded. ``up to the attacks`` is what the records
say: decoding and the clean predictions of every video. The second sweep attacks with other steps,
in a results folder of its own; with the caches off it does everything again.

Run: ``python benchmarks/warm_caches.py [videos] [models ...]``. Budget: 5 times faster.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from device import DEVICE
from vcr_core.config.sweep import expand
from vcr_core.records import read_records
from vcr_core.sweeping import run_sweep

FRAMES, HEIGHT, WIDTH = 250, 256, 340
"""Ten seconds, as a video of Kinetics lasts."""
BUDGET = 5.0


def make_videos(folder: Path, count: int) -> None:
    """Encode panning, grainy textures."""
    random = np.random.default_rng(0)
    for index in range(count):
        path = folder / f"{index:03d}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        shape = (HEIGHT // 4 + 40, WIDTH // 4 + 40, 3)
        texture = random.integers(0, 255, shape, dtype=np.uint8).repeat(4, 0).repeat(4, 1)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libx264", rate=25, options={"preset": "veryfast"})
            stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
            for at in range(FRAMES):
                part = texture[at // 8 : at // 8 + HEIGHT, :WIDTH].astype(np.int16)
                grain = random.integers(-6, 7, (HEIGHT, WIDTH, 1), dtype=np.int16)
                picture = (part + grain).clip(0, 255).astype(np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode(None))


def up_to_the_attacks(folder: Path, models: list[str], steps: int, reuse: Any) -> float:
    """Run a sweep and return the seconds of decoding and clean predictions in it."""
    document = {
        "schema": 1,
        "dataset": {"name": "folder", "root": str(folder / "videos")},
        "threat": {"eps": "2/255"},
        "protocol": {"labels": "clean-prediction"},
        "metrics": {"names": []},
        "output": {"keep_clips": 0},
        "runtime": {"device": DEVICE, "threads": 1, "batch_videos": 8, "reuse": reuse},
        "attack": {"name": "ifgsm", "steps": steps},
        "matrix": {"model": models},
    }
    outcome = run_sweep(expand(document), results=folder / f"results-{steps}-{reuse}")
    if outcome.exit_code:
        raise SystemExit("\n".join(outcome.messages))
    costs = [record["cost"] for run in outcome.folders for record in read_records(run)]
    return sum(cost["t_decode_s"] + cost["t_clean_s"] for cost in costs)


def main(videos: str = "32", *models: str) -> int:
    torch.set_num_threads(1)
    names = list(models) or ["tiny-r3d", "tiny-tsm", "tiny-vit"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["VCR_CACHE_DIR"] = str(folder / "cache")
        make_videos(folder / "videos", int(videos))
        up_to_the_attacks(folder, names, 1, reuse=False)  # imports, page cache
        off = up_to_the_attacks(folder, names, 2, reuse=False)
        cold = up_to_the_attacks(folder, names, 3, reuse=True)
        warm = up_to_the_attacks(folder, names, 4, reuse=True)
    print(f"{videos} files of {FRAMES} frames {WIDTH}x{HEIGHT}, {len(names)} models, {DEVICE}: "
          "decoding and clean predictions")  # fmt: skip
    print(f"  off {off:.2f} s   cold {cold:.2f} s   warm {warm:.2f} s   "
          f"off / warm {off / warm:.1f}   budget {BUDGET}")  # fmt: skip
    return int(off / warm < BUDGET)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
