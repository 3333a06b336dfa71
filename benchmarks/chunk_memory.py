"""Peak memory of one gradient over clips and chunk sizes, and whether the gradient is the same.

Each chunk size runs in a process of its own; the peak is that process's resident set above what
it had before the gradient. The gradients are compared in float64.

Run: ``python benchmarks/chunk_memory.py``. Budget: memory falls with the chunk size and does not
grow with the clips for a fixed one, relative difference below 1e-10.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

VIEWS, FRAMES, SIZE = (3, 6, 12, 24), 8, 40
CHUNKS = (0, 3, 1)


def one(views: int, chunk: int, out: str) -> None:
    import torch
    import vcr_core as vcr
    from torch import nn
    from vcr_core.adaptive import View
    from vcr_core.randomness import VideoRandom

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv3d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv3d(32, 32, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 10),
    ).double()  # fmt: skip
    clip = vcr.ClipSpec(frames=FRAMES, size=SIZE)
    model = vcr.as_classifier(net, labels=[str(i) for i in range(10)], clip=clip)
    gather = torch.arange(views * FRAMES).view(views, FRAMES)
    view = View(model, gather, chunk=chunk or None)
    video = torch.rand(1, views * FRAMES, 3, SIZE, SIZE, dtype=torch.float64, requires_grad=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    z = view(video, VideoRandom([0]))
    (grad,) = torch.autograd.grad(z[:, 3].sum(), video)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    torch.save(grad, out)
    print(json.dumps({"chunk": chunk, "peak_mb": (after - before) / 1024}))


def main() -> None:
    import torch

    print(f"clips of {FRAMES}x{SIZE}x{SIZE}, float64; peak MB of a gradient")
    print(
        "  clips " + "".join(f"{'all at once' if c == 0 else f'{c} at a time':>14}" for c in CHUNKS)
    )
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        for views in VIEWS:
            peaks, grads = [], []
            for chunk in CHUNKS:
                out = Path(name) / f"{views}-{chunk}.pt"
                done = subprocess.run(
                    [sys.executable, __file__, str(views), str(chunk), str(out)],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
                peaks.append(json.loads(done.stdout)["peak_mb"])
                grads.append(torch.load(out, weights_only=True))
            whole = grads[0]
            worst = max(worst, *(float((g - whole).norm() / whole.norm()) for g in grads))
            print(f"  {views:5} " + "".join(f"{peak:14.0f}" for peak in peaks), flush=True)
    print(f"  largest relative difference of a gradient {worst:.1e}")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        one(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        main()
