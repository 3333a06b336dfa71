"""Share of the CPU time of query attacks that the model's own forward passes take.

A run of one attack on clips that never count as done; the time inside of the model is taken around
its ``logits``. The rest is ours: proposals, noise, projection, rounding to 8 bits, losses, records.
It depends on the number of pixels and not on the model, so it is printed per query as well. The
bundled models take 1 to 3 ms for a clip of 200 000 values, about as long as it takes to draw that
many normal numbers a few times; ``r3d_18`` of torchvision, with random weights and clips of 600 000
values, stands for networks of the usual size.

Run: ``python benchmarks/query_overhead.py [model ...]``. Budget: 90 % on ``r3d_18``.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import torch
import vcr_core as vcr
from torch import Tensor
from vcr_core.accounts import Rules
from vcr_core.adaptive import View
from vcr_core.engine.memory import keep_freed_memory
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel, frozen
from vcr_core.preparing import load_items
from vcr_core.protocols import AttackContext, LabelSpace
from vcr_core.randomness import VideoRandom
from vcr_core.specs import ClipSpec
from vcr_core.threat import Linf
from vcr_core.victim import Victim

LARGE = "r3d_18"
LONG = {
    "square": {"iterations": 120},
    "nes": {"iterations": 3, "samples": 40},
    "gradest": {"iterations": 40},
}
SHORT = {
    "square": {"iterations": 6},
    "nes": {"iterations": 1, "samples": 6},
    "gradest": {"iterations": 2},
}


@dataclass
class Timed:
    """A classifier that adds up the CPU time of its forward passes."""

    model: object
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.labels, self.clip = self.model.labels, self.model.clip

    def logits(self, clips: Tensor) -> Tensor:
        """Return the model's logits."""
        started = time.process_time()
        try:
            return self.model.logits(clips)
        finally:
            self.seconds += time.process_time() - started


class Large:
    """``r3d_18`` for clips of 16 frames of 112 x 112 pixels, with random weights."""

    labels = LabelSpace(LARGE, tuple(str(k) for k in range(400)))
    clip = ClipSpec(frames=16, size=112)

    def __init__(self) -> None:
        from torchvision.models.video import r3d_18

        self.network = r3d_18().eval()

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits of one crop."""
        return self.network(clips.transpose(1, 2)).unsqueeze(1)


def case(reference: str) -> tuple[Timed, Tensor, Tensor]:
    """Return the model, videos and labels: one for the large network, eight for others."""
    if reference == LARGE:
        random = torch.Generator().manual_seed(0)
        clip = torch.randint(0, 256, (1, 16, 3, 112, 112), generator=random) / 255
        return Timed(frozen(Large())), clip, torch.tensor([0])
    model = frozen(vcr.load("model", reference))
    dataset = vcr.load("dataset", "motion", split="val")
    items = [dataset.item(video) for video in list(dataset.ids())[:8]]
    (batch,) = load_items(model.clip, "cpu")(items)
    return Timed(model), batch.videos, batch.labels


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    for reference in sys.argv[1:] or ["tiny-r3d", "tiny-r2plus1d", "tiny-tsm", "tiny-vit", LARGE]:
        model, clean, labels = case(reference)
        ids = [str(i) for i in range(len(clean))]
        gather = torch.arange(clean.shape[1])[None]
        print(f"{reference}, {len(clean)} videos, 1 thread")
        for name, params in (SHORT if reference == LARGE else LONG).items():
            attack = vcr.load("attack", name, **params)
            threat, goals = Linf("8/255"), Goals(labels)
            victim = Victim(
                View(GuardedModel(model), gather), clean, goals, threat, ids=ids, seed=0,
                rules=Rules(access="score", stop="budget"),
            )  # fmt: skip
            context = AttackContext(threat, VideoRandom(range(len(clean))), ids)
            model.seconds, started = 0.0, time.process_time()
            attack.attack(victim, clean, goals, context)
            total = time.process_time() - started
            queries = sum(meter.forwards for meter in victim.meters)
            print(f"  {name:8} {queries // len(clean):4} queries a video: "
                  f"model {model.seconds / total:.1%}, {1e3 * model.seconds / queries:.2f} ms a "
                  f"query; ours {1e3 * (total - model.seconds) / queries:.2f} ms",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
