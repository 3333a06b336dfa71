"""CPU time of I-FGSM through the engine over a hand-written loop on the same clips.

Both do 20 gradient steps without early stop. ``attack`` is the engine's attack stage (gradients
and the closing forward pass); ``contest`` is all of it: clean prediction, attack, verification,
final prediction, records; without decoding and metrics, as in published loops.

Run: ``python benchmarks/engine_overhead.py [model] [rounds]``. Budget: contest / loop <= 1.10.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
import vcr_core as vcr
from torch.nn.functional import cross_entropy
from vcr_core.config.objects import resolve_objects
from vcr_core.engine.contest import Contest
from vcr_core.engine.decode import decode
from vcr_core.engine.setup import build_setup

STEPS, EPS, STEP, VIDEOS = 20, 4 / 255, 1 / 255, 8


def hand_written(model, clean: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    low, high = (clean - EPS).clamp(0, 1), (clean + EPS).clamp(0, 1)
    adv = clean.clone()
    for _ in range(STEPS):
        adv.requires_grad_()
        loss = cross_entropy(model.logits(adv).squeeze(1), labels, reduction="sum")
        (grad,) = torch.autograd.grad(loss, adv)
        adv = (adv.detach() + STEP * grad.sign()).clamp(low, high)
    return adv


def cpu(work) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    torch.set_num_threads(1)
    name = sys.argv[1] if len(sys.argv) > 1 else "tiny-r3d"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    tables = {
        "threat": {"norm": "linf", "eps": EPS},
        "protocol": {"stop": "budget"},
        "runtime": {"device": "cpu"},
    }
    resolved, parts = resolve_objects(
        tables, model=name, attack=vcr.load("attack", "ifgsm", steps=STEPS, step=STEP),
        defenses=[], dataset="motion", metrics=[], limit=VIDEOS,
    )  # fmt: skip
    setup = build_setup(resolved.experiment, parts)
    videos = [decode(setup, i) for i in list(setup.dataset.ids())[:VIDEOS]]
    clean = torch.stack([v.frames for v in videos])
    labels = torch.tensor([v.label for v in videos])
    right = setup.model.logits(clean).squeeze(1).argmax(1) == labels
    videos = [v for v, ok in zip(videos, right.tolist(), strict=True) if ok]
    clean, labels = clean[right], labels[right]

    def contest() -> Contest:
        made = Contest(setup, videos, None, lambda _stage: None)
        made.run()
        return made

    contest(), hand_written(setup.model, clean, labels)
    ratios, attack_ratios = [], []
    for _ in range(rounds):
        loop = cpu(lambda: hand_written(setup.model, clean, labels))
        started = time.process_time()
        made = contest()
        ratios.append((time.process_time() - started) / loop)
        attack_ratios.append(made.clock.seconds["attack"] / loop)
    print(f"{name}, {len(videos)} clips, {STEPS} steps, 1 thread, {rounds} rounds, CPU time")
    for what, values in (("contest / loop", ratios), ("attack / loop (wall)", attack_ratios)):
        print(f"  {what:22} median {statistics.median(values):.3f}"
              f"  min {min(values):.3f}  max {max(values):.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
