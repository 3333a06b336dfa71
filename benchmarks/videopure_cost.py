"""What VideoPure costs: measured with the bundled model, counted for the published one.

The bundled model runs on one thread over one clip of the generated data set, each setting in a
process of its own; the peak is its resident set above what it had before. The published model
(text-to-video 1.7B with Stable Diffusion's autoencoder) is built without memory for its weights
from its public configuration, and its operations and the tensors that are alive at a time are
counted, not run: attention counts with its whole matrix, so fused kernels need less.

Run: ``python benchmarks/videopure_cost.py``. No budget; it informs `docs/defenses/videopure.md`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import weakref

STEPS = 6
RATE = 50e12
"""Operations a second that a current GPU may reach in half precision on such layers."""


def bundled(mode: str, frames: int, side: int) -> None:
    import torch
    from vcr_core.randomness import VideoRandom
    from vcr_defenses.diffusion.videopure import VideoPure
    from vcr_defenses.params.diffusion import VideopureParams

    torch.set_num_threads(1)
    defense = VideoPure(VideopureParams(mode=mode))
    random = VideoRandom([0])
    clips = random.uniform(1, frames, 3, side, side)
    defense.apply(clips[:, :, :2, :, :8, :8], random)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    defense.apply(clips, random)
    spent = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"cpu_s": spent, "peak_mb": (after - before) / 1024}))


def peak_of(function) -> int:
    """Most bytes of tensors, made inside, that are alive at a time."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    live: dict[int, int] = {}
    peak = 0

    class Alive(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal peak
            out = func(*args, **(kwargs or {}))
            for leaf in tree_leaves(out):
                if hasattr(leaf, "untyped_storage"):
                    storage = leaf.untyped_storage()
                    if storage._cdata not in live:
                        live[storage._cdata] = storage.nbytes()
                        weakref.finalize(storage, live.pop, storage._cdata, None)
            peak = max(peak, sum(live.values()))
            return out

    with Alive():
        function()
    return peak


def published(frames: int, side: int) -> None:
    import torch
    from diffusers import AutoencoderKL, UNet3DConditionModel
    from torch.utils.flop_counter import FlopCounterMode

    half = {"device": "meta", "dtype": torch.float16}
    with torch.device("meta"), torch.no_grad():
        unet = UNet3DConditionModel().half()
        vae = AutoencoderKL(
            block_out_channels=(128, 256, 512, 512),
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            layers_per_block=2,
        ).half()
        grid = side // 8
        z = torch.empty(1, 4, frames, grid, grid, **half)
        text = torch.empty(1, 77, 1024, **half)
        step = torch.zeros(1, dtype=torch.int64)
        one = torch.empty(1, 3, side, side, **half)
        passes = {
            "unet": lambda: unet(z, step, encoder_hidden_states=text),
            "encode": lambda: vae.encode(one),
            "decode": lambda: vae.decode(z[:, :, 0]),
        }
        operations, peaks = {}, {}
        for name, call in passes.items():
            with FlopCounterMode(display=False) as counter:
                call()
            operations[name] = counter.get_total_flops()
            peaks[name] = peak_of(call)
    weights = sum(2 * p.numel() for m in (unet, vae) for p in m.parameters())
    total = (
        2 * STEPS * operations["unet"]
        + frames * operations["encode"]
        + (STEPS + 1) * frames * operations["decode"]
    )
    print(f"published model, {frames} x {side} x {side}, fp16, {STEPS} steps, 1 frame of the")
    print(f"autoencoder at a time: weights {weights / 2**30:.1f} GiB")
    for name, value in operations.items():
        print(f"  {name:7} {value / 1e12:7.2f} T operations, peak {peaks[name] / 2**30:.2f} GiB")
    print(
        f"  a clip  {total / 1e12:7.0f} T operations, about {total / RATE:.0f} s at "
        f"{RATE / 1e12:.0f} T/s; peak about {(weights + max(peaks.values())) / 2**30:.1f} GiB"
    )


def main() -> None:
    print("bundled motion-video, one thread")
    for mode, frames, side in (
        ("videopure", 16, 64), ("ddim-inversion", 16, 64), ("videopure", 16, 128),
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, __file__, mode, str(frames), str(side)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        said = json.loads(done.stdout)
        print(
            f"  {mode:14} {frames} x {side} x {side}: {said['cpu_s']:5.1f} CPU s a clip, "
            f"peak {said['peak_mb']:5.0f} MB"
        )
    published(16, 224)
    published(32, 224)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        bundled(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
