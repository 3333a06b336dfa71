"""CPU time of our attacks over torchattacks and foolbox, on the same clips and the same network.

All take the same number of gradients, never stop early and look at their last point once, which in
a library is a forward pass on its result. What ours does on top, in both columns: every gradient is
checked, losses and successes are written down, the best point of each video is kept. The first
column has real-valued perturbations as the libraries have, in the second all queries are answered
on 8-bit points. The libraries know pictures only, so time is folded into their channels. Ours and
theirs take turns in one process.

Run: ``python benchmarks/attack_throughput.py [model ...]``. Budget: 1.0 for real-valued ones.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
import vcr_core as vcr
from torch import Tensor, nn
from vcr_core.accounts import Rules
from vcr_core.adaptive import View
from vcr_core.engine.memory import keep_freed_memory
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel, frozen
from vcr_core.preparing import load_items
from vcr_core.protocols import AttackContext
from vcr_core.randomness import VideoRandom
from vcr_core.threat import Linf
from vcr_core.victim import Victim

EPS, STEP, STEPS, VIDEOS, ROUNDS = 8 / 255, 1 / 255, 20, 8, 7


class Folded(nn.Module):
    """A video classifier as a picture classifier: ``[B, T C, H, W]`` to ``[B, K]``."""

    def __init__(self, model: object) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: Tensor) -> Tensor:
        """Return logits of one view."""
        return self.model.logits(pictures.unflatten(1, (-1, 3)))[:, 0]


def ours(
    model: object, attack: object, clean: Tensor, labels: Tensor, *, quantize: bool
) -> Callable[[], int]:
    """Return a run of one of our attacks that tells how many gradients a video took."""
    ids = [str(i) for i in range(len(clean))]
    gather = torch.arange(clean.shape[1])[None]

    def run() -> int:
        threat, goals = Linf(EPS, quantize=quantize), Goals(labels)
        victim = Victim(View(GuardedModel(model), gather), clean, goals, threat, ids=ids, seed=0,
                        rules=Rules(stop="budget"))  # fmt: skip
        attack.attack(victim, clean, goals,
                      AttackContext(threat, VideoRandom(range(len(clean))), ids))  # fmt: skip
        return victim.meters[0].backwards

    return run


def theirs(
    model: object, clean: Tensor, labels: Tensor
) -> dict[str, dict[str, Callable[[], object]]]:
    """Return runs of the libraries by the name of our attack; of a library that is absent, none."""
    folded, pictures = Folded(model).eval(), clean.flatten(1, 2)

    def looked_at(run: Callable[[], Tensor]) -> Callable[[], Tensor]:
        def both() -> Tensor:
            result = run()
            with torch.no_grad():
                return folded(result)

        return both

    found: dict[str, dict[str, Callable[[], object]]] = {"ifgsm": {}, "pgd": {}, "apgd": {}}
    try:
        import torchattacks
    except ImportError:
        print("torchattacks is not installed")
    else:
        made = {
            "ifgsm": torchattacks.BIM(folded, eps=EPS, alpha=STEP, steps=STEPS),
            "pgd": torchattacks.PGD(folded, eps=EPS, alpha=STEP, steps=STEPS),
            # It takes a gradient at the last point too.
            "apgd": torchattacks.APGD(folded, eps=EPS, steps=STEPS - 1),
        }
        for name, attack in made.items():
            found[name]["torchattacks"] = looked_at(lambda a=attack: a(pictures, labels))
        # A single run, which has looked at every point; whole ones end when all are fooled.
        found["apgd"]["torchattacks"] = lambda: made["apgd"].attack_single_run(pictures, labels)
    try:
        import foolbox
    except ImportError:
        print("foolbox is not installed")
    else:
        wrapped = foolbox.PyTorchModel(folded, bounds=(0, 1), device="cpu")
        wanted = foolbox.criteria.Misclassification(labels)
        kinds = {
            "ifgsm": foolbox.attacks.LinfBasicIterativeAttack,
            "pgd": foolbox.attacks.LinfPGD,
        }
        for name, kind in kinds.items():
            attack = kind(abs_stepsize=STEP, steps=STEPS)
            found[name]["foolbox"] = looked_at(
                lambda a=attack: a.run(wrapped, pictures, wanted, epsilon=EPS)
            )
    return found


def cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()  # as every run of ours does; the libraries profit as well
    for reference in sys.argv[1:] or ["tiny-r3d", "tiny-vit"]:
        model = frozen(vcr.load("model", reference))
        dataset = vcr.load("dataset", "motion", split="val")
        (batch,) = load_items(model.clip, "cpu")(
            [dataset.item(i) for i in list(dataset.ids())[:VIDEOS]]
        )
        clean, labels = batch.videos, batch.labels
        attacks = {
            "ifgsm": vcr.load("attack", "ifgsm", steps=STEPS, step=STEP),
            "pgd": vcr.load("attack", "pgd", steps=STEPS, step=STEP),
            "apgd": vcr.load("attack", "apgd", steps=STEPS),
        }
        print(f"{reference}, {VIDEOS} videos, {STEPS} gradients each, 1 thread, {ROUNDS} pairs")
        for name, libraries in theirs(model, clean, labels).items():
            runs = [ours(model, attacks[name], clean, labels, quantize=q) for q in (False, True)]
            if any(run() != STEPS for run in runs):
                raise AssertionError(f"{name} did not take {STEPS} gradients")
            for library, other in libraries.items():
                other()
                rounds = [[cpu(work) for work in (*runs, other)] for _ in range(ROUNDS)]
                real, stored = (statistics.median(r[i] / r[2] for r in rounds) for i in (0, 1))
                least = [min(r[i] for r in rounds) for i in range(3)]
                print(f"  {name:6} / {library:12} median {real:.3f}, with 8 bits {stored:.3f}; "
                      f"of the fastest {least[0] / least[2]:.3f}, {least[1] / least[2]:.3f} "
                      f"({least[2]:.3f} s)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
