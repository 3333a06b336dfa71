"""Time of I-FGSM through the engine over a hand-written loop on the same clips.

Both do 20 gradient steps without early stop. ``attack stage`` is the engine's attack: gradients and
the closing forward pass. ``whole contest`` is all of it: clean prediction, attack, verification,
final prediction, records, which are two more forward passes; without decoding and metrics.

The loop runs as its author would run it, and once more with the allocator settings that the engine
makes; all three take turns in processes of their own.

Run: ``python benchmarks/engine_overhead.py [model] [repeats]``. Budget: 1.05 for the attack stage.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import torch
import vcr_core as vcr
from device import DEVICE, KIND, clock
from torch.nn.functional import cross_entropy
from vcr_core.config.objects import resolve_objects
from vcr_core.engine import memory
from vcr_core.engine import setup as setup_module
from vcr_core.engine.contest import Contest
from vcr_core.engine.decode import decode
from vcr_core.engine.setup import build_setup

STEPS, EPS, STEP, VIDEOS = 20, 4 / 255, 1 / 255, 8
ROUNDS = 7


def hand_written(model, clean: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    low, high = (clean - EPS).clamp(0, 1), (clean + EPS).clamp(0, 1)
    adv = clean.clone()
    for _ in range(STEPS):
        adv.requires_grad_()
        loss = cross_entropy(model.logits(adv).squeeze(1), labels, reduction="sum")
        (grad,) = torch.autograd.grad(loss, adv)
        adv = (adv.detach() + STEP * grad.sign()).clamp(low, high)
    return adv


def timed(work) -> float:
    started = clock()
    work()
    return clock() - started


def prepared(name: str):
    """Return the setup, the decoded videos that the model gets right, and their tensors."""
    tables = {
        "threat": {"norm": "linf", "eps": EPS},
        "protocol": {"stop": "budget"},
        "runtime": {"device": DEVICE},
    }
    resolved, parts = resolve_objects(
        tables, model=name, attack=vcr.load("attack", "ifgsm", steps=STEPS, step=STEP),
        defenses=[], dataset="motion", metrics=[], limit=VIDEOS,
    )  # fmt: skip
    setup = build_setup(resolved.experiment, parts)
    videos = [decode(setup, i) for i in list(setup.dataset.ids())[:VIDEOS]]
    clean = torch.stack([v.frames for v in videos]).to(DEVICE)
    labels = torch.tensor([v.label for v in videos], device=DEVICE)
    right = setup.model.logits(clean).squeeze(1).argmax(1) == labels
    videos = [v for v, ok in zip(videos, right.tolist(), strict=True) if ok]
    return setup, videos, clean[right], labels[right]


def child(what: str, name: str) -> None:
    torch.set_num_threads(1)
    if what == "plain":
        # As its author would run it: without what the engine tells the allocator.
        memory.keep_freed_memory = setup_module.keep_freed_memory = lambda: False
    setup, videos, clean, labels = prepared(name)
    attack_s: list[float] = []

    def contest() -> None:
        made = Contest(setup, videos, None, lambda _stage: None)
        made.run()
        attack_s.append(made.clock.seconds["attack"])

    work = contest if what == "contest" else lambda: hand_written(setup.model, clean, labels)
    work()
    seconds = [timed(work) for _ in range(ROUNDS)]
    print(json.dumps({"cpu": statistics.median(seconds), "videos": len(videos),
                      "attack": statistics.median(attack_s) if attack_s else None}))  # fmt: skip


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "tiny-r3d"
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    found: dict[str, list[dict]] = {"plain": [], "tuned": [], "contest": []}
    for _ in range(repeats):
        for what, results in found.items():
            done = subprocess.run(
                [sys.executable, __file__, "--child", what, name],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            results.append(json.loads(done.stdout))
    print(f"{name}, {found['contest'][0]['videos']} clips, {STEPS} steps, 1 thread, {KIND}, "
          f"{repeats} times {ROUNDS} rounds in turn")  # fmt: skip
    for base, words in (("plain", "loop"), ("tuned", "loop with the engine's allocator settings")):
        for key in ("attack", "cpu"):
            label = "attack stage" if key == "attack" else "whole contest"
            ratios = [c[key] / b["cpu"] for c, b in zip(found["contest"], found[base], strict=True)]
            print(f"  {label:13} / {words}: median {statistics.median(ratios):.3f}"
                  f"  min {min(ratios):.3f}  max {max(ratios):.3f}")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        child(sys.argv[2], sys.argv[3])
    else:
        main()
