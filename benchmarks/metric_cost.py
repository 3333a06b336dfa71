"""CPU time of the metrics on a clip of 16 frames of 224x224 pixels.

One thread; every metric is measured several times, interleaved with the others so that a busy
machine slows all of them alike, and its fastest run counts. The yardstick is one forward and
backward pass, to the pixels, of a temporal shift network on ResNet-50 with those 16 frames as its
segments, random weights: one gradient step of an attack on a usual model.

    python benchmarks/metric_cost.py
    python benchmarks/metric_cost.py --runs 5 --only ssim vmaf

Budget: the metrics of formulas together cost no more than that pass. Learned, temporal and external
metrics are listed apart; LPIPS runs with a random backbone of the right shape, whose values mean
nothing and are not shown. Time that a child process takes is counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from vcr_core.api import load
from vcr_core.errors import NotAvailable
from vcr_core.protocols import ClipInfo

FRAMES, SIZE = 16, 224
FORMULAS = ("mse", "psnr", "ssim", "ssim-uniform7", "ms-ssim")
APART = (
    "flicker", "lpips", "lpips.vgg", "st-lpips", "st-lpips.vgg", "vmaf", "tlp", "warping-error",
    "warping-error.dis",
)  # fmt: skip


class Shift(nn.Module):
    """Moves an eighth of the channels one frame back and an eighth one frame on."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        part = x.shape[1] // 8
        moved = torch.zeros_like(x)
        moved[:-1, :part] = x[1:, :part]
        moved[1:, part : 2 * part] = x[:-1, part : 2 * part]
        moved[:, 2 * part :] = x[:, 2 * part :]
        return self.inner(moved)


def tsm_r50() -> nn.Module:
    """Return ResNet-50 with a shift before every residual block's first convolution."""
    from torchvision.models import resnet50

    network = resnet50(num_classes=400)
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        for block in stage:
            block.conv1 = Shift(block.conv1)
    return network.eval().requires_grad_(requires_grad=False)


def pair() -> tuple[Tensor, Tensor]:
    """Return a moving pattern and the same with noise of at most 8 levels, on the 8-bit grid."""
    t, y, x = torch.meshgrid(
        torch.arange(FRAMES), torch.arange(SIZE), torch.arange(SIZE), indexing="ij"
    )
    planes = [
        0.5 + 0.3 * torch.sin((x + 2 * t) / (9 + c)) * torch.cos((y - t) / (7 + c))
        for c in range(3)
    ]
    clean = (torch.stack(planes, dim=1) * 255).round()
    noise = torch.randint(-8, 9, clean.shape, generator=torch.Generator().manual_seed(0))
    return clean / 255, (clean + noise).clamp(0, 255) / 255


def random_backbones(folder: Path) -> None:
    """Let metrics load AlexNet and VGG16 of random numbers from ``folder``."""
    from torchvision.models import alexnet, vgg16
    from vcr_core.specs import WeightSpec
    from vcr_metrics.weights import BACKBONES

    for net, maker in (("alex", alexnet), ("vgg", vgg16)):
        torch.save(maker().state_dict(), folder / f"{net}.pth")
        BACKBONES[net] = WeightSpec(url=f"https://nowhere/{net}.pth")


def metric(name: str, folder: Path) -> Any:
    base, _, variant = name.partition(".")
    if base != "lpips":
        return load("metric", name)
    net = variant or "alex"
    return load("metric", "lpips", net=net, backbone=str(folder / f"{net}.pth"))


def seconds() -> float:
    """Return the processor time of this process and of the children it has waited for."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


def jobs(names: list[str], folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name; the yardstick has the name ``""``."""
    clean, test = pair()
    network = tsm_r50()

    def step() -> Tensor:
        leaf = test.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(network(leaf).mean(0)[0], leaf)
        return gradient

    made: dict[str, Callable[[], object]] = {"": step}
    for name in names:
        try:
            found = metric(name, folder)
        except NotAvailable as reason:
            print(f"{name}: {reason}")
            continue
        made[name] = lambda found=found: found.measure(clean, test, ClipInfo())
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    every = [*FORMULAS, *APART]
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        random_backbones(folder)
        work = jobs(options.only, folder)
        times: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(options.runs + 1):  # the first round warms up
            for name, run in work.items():
                start = seconds()
                run()
                times[name].append(seconds() - start)
    best = {name: min(rounds[1:]) for name, rounds in times.items()}
    step = best.pop("")
    print(f"{FRAMES} frames of {SIZE}x{SIZE}, one thread, fastest of {options.runs}")
    print(f"forward and backward pass of TSM on ResNet-50: {step:.2f} s")
    print(f"{'metric':<20} {'s a clip':>9} {'of a pass':>10}")
    for name, took in best.items():
        print(f"{name:<20} {took:>9.3f} {took / step:>10.1%}")
    formulas = sum(took for name, took in best.items() if name in FORMULAS)
    print(f"{'all of formulas':<20} {formulas:>9.3f} {formulas / step:>10.1%}  budget 100%")
    return int(formulas > step)


if __name__ == "__main__":
    raise SystemExit(main())
