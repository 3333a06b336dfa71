"""What the zoo's wrapper costs over the bare network, and our video ViT over plain operations.

Each figure is a ratio of CPU times in one run, fastest of several passes taken in turns. Networks
have weights of no meaning and, where they take other sizes, small frames, which is where a wrapper
weighs most.

    python benchmarks/model_overhead.py [--passes N]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from vcr_models.nets.video_vit import Attention, VideoViT, VideoViTShape
from vcr_models.zoo.build import classifier, library
from vcr_models.zoo.catalog import catalog

MODELS = {
    "tsm.r50-8seg-k400": 64,
    "tanet.r50-8seg-k400": 64,
    "slowonly.r50-8x8-k400": 64,
    "slowfast.r50-4x16-k400": 64,
    "x3d.m-k400": 64,
    "uniformer.s-16x4-k400": 64,
    "video-swin.t-tv-k400": 64,
    "r3d.18-tv-k400": 64,
    "r2plus1d.18-tv-k400": 64,
    "x3d.xs-ptv-k400": None,
}
"""Ten models, and the side at which they are looked at."""


def cpu_times(runs: list[Callable[[], object]], passes: int) -> list[float]:
    """Return the fastest CPU time of each function; they take turns."""
    best = [math.inf] * len(runs)
    for run in runs:
        run()
    for _ in range(passes):
        for number, run in enumerate(runs):
            began = time.process_time()
            run()
            best[number] = min(best[number], time.process_time() - began)
    return best


def gradient(run: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    def both() -> None:
        leaf = x.clone().requires_grad_()
        run(leaf).sum().backward()  # type: ignore[no-untyped-call]

    return both


def wrapper(ref: str, size: int | None, passes: int) -> tuple[float, float]:
    """Return the wrapper's forward and forward-and-backward time over the bare network's."""
    variant = catalog()[ref]
    torch.manual_seed(0)
    network = library(variant.library).network(variant, size)
    if size is not None:
        variant = replace(variant, size=size, resize=size)
    model = classifier(variant, network, crops=1)
    side = variant.size
    clips = torch.rand(2, variant.frames, 3, side, side)
    ready = model.front.views(clips)[:, 0]
    ready = ready.transpose(1, 2).contiguous() if model.layout == "NCTHW" else ready
    with torch.no_grad():
        bare, wrapped = cpu_times([lambda: network(ready), lambda: model.logits(clips)], passes)
    both = cpu_times([gradient(network, ready), gradient(model.logits, clips)], passes)
    return wrapped / bare, both[1] / both[0]


class PlainAttention(nn.Module):
    """Attention written out: scores, softmax, sum; with the weights of one that is fused."""

    def __init__(self, fused: Attention) -> None:
        super().__init__()
        self.fused = fused

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.fused.split(tokens)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        found = scores.softmax(dim=-1) @ v
        out: Tensor = self.fused.proj(found.transpose(1, 2).flatten(2))
        return out


def video_vit(passes: int, depth: int) -> tuple[float, float]:
    """Return our ViT-B's forward-and-backward time over plain operations, and the difference."""
    shape = VideoViTShape(width=768, depth=depth, heads=12, mlp=3072)
    torch.manual_seed(0)
    ours = VideoViT(shape).eval().requires_grad_(False)
    plain = VideoViT(shape).eval().requires_grad_(False)
    plain.load_state_dict(ours.state_dict())
    for block in plain.blocks:
        block.attn = PlainAttention(block.attn)
    clips = torch.rand(1, 3, 16, 224, 224)
    with torch.no_grad():
        gap = float((ours(clips) - plain(clips)).abs().max())
    fused, written = cpu_times([gradient(ours, clips), gradient(plain, clips)], passes)
    return fused / written, gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--depth", type=int, default=12, help="blocks of the ViT-B")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("wrapper over the bare network    forward (<= 1.03)    with backward (<= 1.05)")
    for ref, size in MODELS.items():
        forward, both = wrapper(ref, size, options.passes)
        print(f"{ref:32} {forward:8.3f} {both:20.3f}", flush=True)
    ratio, gap = video_vit(max(1, options.passes // 2), options.depth)
    print(f"own ViT-B over plain operations, forward and backward (<= 1.0): {ratio:.3f}")
    print(f"largest difference of their logits: {gap:.2g}")


if __name__ == "__main__":
    main()
