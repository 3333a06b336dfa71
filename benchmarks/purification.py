"""What the bundled denoiser saves: accuracy of `tiny-r3d` on attacked videos behind each purifier.

The first columns are videos that PGD made for the bare model (20 steps of eps / 8 from a random
start, rounded to 8 bits). The last one is an attack through the purifier: its gradient is taken at
the purified video (BPDA with the identity) and averaged over draws (EOT), with one step of
denoising while it looks; all purifiers are judged on the videos of that attack.

    python benchmarks/purification.py
    python benchmarks/purification.py --videos 100 --eot 8 --steps 20

One thread; about ten minutes for 40 videos on a core of its own. The table of
`docs/defenses/diffusion-models.md`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from vcr_core.datasets.motion.generator import generate_clip
from vcr_core.protocols import VideoClassifier
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.stats import wilson
from vcr_defenses.diffusion.diffpure import DiffPure
from vcr_defenses.diffusion.frame_purifier import FramePurifier
from vcr_defenses.diffusion.freqpure import FreqPure
from vcr_defenses.params.diffusion import DiffPureParams, FreqPureParams
from vcr_models.tiny.build import TinyClassifier

PURIFIERS: dict[str, Callable[[], FramePurifier]] = {
    "diffpure, 50 steps of noise, denoised in 1": lambda: DiffPure(
        DiffPureParams(noise_steps=50, denoise_steps=1)
    ),
    "diffpure, 50 in 5": lambda: DiffPure(DiffPureParams(noise_steps=50, denoise_steps=5)),
    "freqpure, 50 in 5": lambda: FreqPure(FreqPureParams()),
}
BATCH = 8


def seeds(role: str, rows: range, repeat: int = 0) -> VideoRandom:
    return VideoRandom([derive_seed(0, f"val-{row}", role, repeat) for row in rows])


def predicted(model: VideoClassifier, videos: Tensor) -> Tensor:
    return model.logits(videos).mean(1)


def pgd(
    model: VideoClassifier,
    x: Tensor,
    labels: Tensor,
    rows: range,
    eps: float,
    steps: int,
    step: float,
    purify: Callable[[Tensor, int], Tensor] | None = None,
    eot: int = 1,
) -> Tensor:
    """Return videos within eps that 8 bits can hold, the last point of signed gradient steps."""
    start = seeds("attack", rows).uniform(*x.shape[1:], low=-eps, high=eps)
    change = start if purify is None else torch.zeros_like(x)
    for number in range(steps):
        gradient = torch.zeros_like(x)
        for draw in range(eot):
            point = (x + change).clamp(0, 1)
            if purify is not None:
                point = purify(point, number * eot + draw)
            point.requires_grad_()
            loss = cross_entropy(predicted(model, point), labels, reduction="sum")
            gradient += torch.autograd.grad(loss, point)[0]
        change = (change + step * gradient.sign()).clamp(-eps, eps)
    return ((x + change).clamp(0, 1) * 255).round() / 255


def purified(defense: FramePurifier, videos: Tensor, random: VideoRandom) -> Tensor:
    return defense.apply(videos[:, None], random)[:, 0]


def share(right: int, of: int) -> str:
    low, high = wilson(right, of)
    return f"{right / of:.2f} [{low:.2f}, {high:.2f}]"


def judge(
    model: VideoClassifier,
    labels: Tensor,
    columns: dict[str, Tensor],
    purifiers: dict[str, Callable[[], FramePurifier | None]],
) -> None:
    """Print a table, cell by cell."""
    print(f"| purifier | {' | '.join(columns)} | CPU s a video |", flush=True)
    for name, build in purifiers.items():
        print(f"| {name} |", end="", flush=True)
        defense, spent = build(), 0.0
        for videos in columns.values():
            began = time.process_time()
            shown = videos
            if defense is not None:
                shown = purified(defense, videos, seeds("eval", range(len(videos))))
            spent += time.process_time() - began
            with torch.no_grad():
                right = int((predicted(model, shown).argmax(1) == labels).sum())
            print(f" {share(right, len(videos))} |", end="", flush=True)
        print(f" {spent / len(labels) / len(columns):.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=40)
    parser.add_argument("--only", choices=["unaware", "adaptive"], help="one of the two tables")
    parser.add_argument("--steps", type=int, default=10, help="of the attack through a purifier")
    parser.add_argument("--eot", type=int, default=4, help="draws behind a gradient")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = TinyClassifier.load("tiny-r3d")
    made = [generate_clip("val", index) for index in range(arguments.videos)]
    x = torch.stack([torch.from_numpy(clip.frames) for clip in made])
    x = x.permute(0, 1, 4, 2, 3).float() / 255
    labels = torch.tensor([clip.motion for clip in made])
    parts = [range(i, min(i + BATCH, len(x))) for i in range(0, len(x), BATCH)]

    if arguments.only != "adaptive":
        columns = {"clean": x}
        for level in (1, 2, 4):
            eps = level / 255
            columns[f"{level}/255"] = torch.cat(
                [pgd(model, x[list(p)], labels[list(p)], p, eps, 20, eps / 8) for p in parts]
            )
        judge(model, labels, columns, {"none": lambda: None, **PURIFIERS})

    if arguments.only != "unaware":
        looked_at = DiffPure(DiffPureParams(noise_steps=50, denoise_steps=1))
        found = []
        for part in parts:

            def through(point: Tensor, draw: int, part: range = part) -> Tensor:
                return purified(looked_at, point, seeds("defense", part, draw))

            rows, eps, steps, eot = list(part), 2 / 255, arguments.steps, arguments.eot
            found.append(pgd(model, x[rows], labels[rows], part, eps, steps, eps / 4, through, eot))
        judge(model, labels, {"2/255, adaptive": torch.cat(found)}, PURIFIERS)


if __name__ == "__main__":
    main()
