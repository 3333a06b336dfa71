"""What purifiers of frames cost: measured with the bundled model, counted for published ones.

The bundled model runs on one thread over 16 frames of 64x64 pixels, each setting in a process of
its own; the peak is the resident set above what the process had before. Published models are built
without memory for their weights; parameters and operations of one pass over one frame are counted,
not run. A multiplication and an addition count as two.

    python benchmarks/diffusion_cost.py

No budget; it informs `docs/defenses/diffusion-models.md`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

FRAMES = 16
RATE = 50e12
"""Operations a second that a current GPU may reach in half precision on such layers."""

SETTINGS = {
    "diffpure": {"denoise_steps": 1},
    "diffpure ": {"denoise_steps": 5},
    "diffpure  ": {"denoise_steps": 5, "chunk": 1},
    "freqpure": {},
    "freqpure ": {"ref": "input"},
}
PASSES = {
    "diffpure.paper, 150 steps": ("guided-diffusion-256", 150),
    "freqpure.paper, one vote of 10": ("guided-diffusion-256", 80),
    "freqpure.vcr-bench-repo": ("guided-diffusion-256", 20),
    "diffpure, 100 steps": ("google/ddpm-cifar10-32", 100),
}


def measured(name: str, params: dict[str, object]) -> None:
    """Print the cost of one setting; runs in a process of its own."""
    import torch
    from vcr_core.api import load
    from vcr_core.randomness import VideoRandom

    torch.set_num_threads(1)
    defense = load("defense", name, **params)
    random = VideoRandom([0])
    clips = random.uniform(1, FRAMES, 3, 64, 64)
    defense.apply(clips[:, :, :1, :, :8, :8], random)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    defense.apply(clips, random)
    spent = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"cpu_s": spent, "peak_mb": (after - before) / 1024}))


def published() -> dict[str, tuple[Callable[[], object], int]]:
    """Return builders of the networks and the side of their images."""
    from diffusers import UNet2DModel
    from vcr_defenses.diffusion.guided_unet import GuidedUNet

    def cifar() -> object:
        return UNet2DModel(
            sample_size=32,
            block_out_channels=(128, 256, 256, 256),
            layers_per_block=2,
            downsample_padding=0,
            norm_eps=1e-6,
            down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=None,
        )

    return {"google/ddpm-cifar10-32": (cifar, 32), "guided-diffusion-256": (GuidedUNet, 256)}


def counted() -> None:
    """Print parameters and operations of the published networks, and what presets make of them."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    operations = {}
    print("\n| model | parameters | weights, half precision | operations a frame and pass |")
    print("|---|---|---|---|")
    for name, (build, side) in published().items():
        with torch.device("meta"):
            network = build()
            images = torch.empty(1, 3, side, side)
        parameters = sum(value.numel() for value in network.parameters())
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            network(images, torch.ones(1, device="meta") if side == 32 else 1)
        operations[name] = counter.get_total_flops()
        print(
            f"| `{name}` | {parameters / 1e6:.1f} M | {2 * parameters / 1e9:.2f} GB | "
            f"{operations[name] / 1e9:.0f} GFLOP |"
        )
    print(f"\n| setting | passes a frame | {FRAMES} frames | at {RATE / 1e12:.0f} TFLOP/s |")
    print("|---|---|---|---|")
    for name, (model, passes) in PASSES.items():
        total = operations[model] * passes * FRAMES
        print(f"| {name} | {passes} | {total / 1e12:.0f} TFLOP | {total / RATE:.1f} s |")


def main() -> None:
    if len(sys.argv) == 3:
        measured(sys.argv[1], json.loads(sys.argv[2]))
        return
    print(f"| bundled model, {FRAMES} frames | CPU s a video | peak MB |")
    print("|---|---|---|")
    for key, params in SETTINGS.items():
        name = key.strip()
        done = subprocess.run(
            [sys.executable, __file__, name, json.dumps(params)],
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        told = ", ".join(f"{k} {v}" for k, v in params.items()) or "default"
        print(f"| {name}, {told} | {found['cpu_s']:.2f} | {found['peak_mb']:.0f} |", flush=True)
    counted()


if __name__ == "__main__":
    main()
