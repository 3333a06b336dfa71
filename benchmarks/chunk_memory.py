"""Peak memory of one gradient over chunk sizes, and whether the gradient is the same.

Each chunk size runs in a process of its own; the peak is that process's resident set above what
it had before the gradient. The gradients are compared in float64.

Run: ``python benchmarks/chunk_memory.py``. Budget: memory falls with the chunk size, relative
difference below 1e-10.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

VIEWS, FRAMES, SIZE = 12, 8, 40
CHUNKS = (0, 6, 3, 1)


def one(chunk: int, out: str) -> None:
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
    gather = torch.arange(VIEWS * FRAMES).view(VIEWS, FRAMES)
    view = View(model, gather, chunk=chunk or None)
    video = torch.rand(1, VIEWS * FRAMES, 3, SIZE, SIZE, dtype=torch.float64, requires_grad=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    z = view(video, VideoRandom([0]))
    (grad,) = torch.autograd.grad(z[:, 3].sum(), video)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    torch.save(grad, out)
    print(json.dumps({"chunk": chunk, "peak_mb": (after - before) / 1024}))


def main() -> None:
    import torch

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{VIEWS} views of {FRAMES}x{SIZE}x{SIZE}, float64")
        for chunk in CHUNKS:
            out = folder / f"{chunk}.pt"
            done = subprocess.run(
                [sys.executable, __file__, str(chunk), str(out)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            said = json.loads(done.stdout)
            grad = torch.load(out, weights_only=True)
            whole = grad if chunk == 0 else torch.load(folder / "0.pt", weights_only=True)
            error = float((grad - whole).norm() / whole.norm())
            label = "all at once" if chunk == 0 else f"{chunk:2} at a time"
            print(f"  {label:12} peak {said['peak_mb']:8.1f} MB   relative difference {error:.1e}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        one(int(sys.argv[1]), sys.argv[2])
    else:
        main()
