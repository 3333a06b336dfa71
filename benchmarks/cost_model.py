"""What a sweep will cost, predicted from a few measured prices and compared with the sweep itself.

Prices (one pass, one gradient, bare and behind each defense; one decoding; one set of metrics; one
empty run) are measured in this process, then the sweep is run and its passes are counted at the
model. Passes and records have to agree exactly, seconds within ``BUDGET``. The sweep stops at
nothing (``protocol.stop = "budget"``); the same one with ``first_success`` shows what that saves.

    python benchmarks/cost_model.py             # 2 models x 3 attacks x 2 defenses, 12 videos
    python benchmarks/cost_model.py --kinetics  # the example of docs/guides/big-runs.md
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from cost_model_formulas import (
    Attack,
    Cost,
    Defense,
    Plan,
    Step,
    clip_bytes,
    of_kind,
    seconds,
    together,
)
from cost_model_kinetics import show
from device import DEVICE, KIND, clock
from vcr_core.adaptive import View
from vcr_core.config.sweep import expand
from vcr_core.engine.contest import Contest
from vcr_core.engine.decode import decode
from vcr_core.engine.measure import readings
from vcr_core.engine.setup import build_setup
from vcr_core.metering import GuardedModel
from vcr_core.randomness import VideoRandom
from vcr_core.sweeping import run_sweep

MODELS = ("tiny-r3d", "tiny-vit")
STEPS, QUERIES, VIDEOS, BATCH = 10, 50, 12, 4
ATTACKS = (
    Attack("ifgsm", STEPS, 1),
    Attack("pgd", STEPS, 1),
    Attack("square", 0, QUERIES + 1),
)
PARAMS = {"ifgsm": {"steps": STEPS}, "pgd": {"steps": STEPS}, "square": {"iterations": QUERIES}}
DEFENSES = (Defense("gaussian-blur"), Defense("jpeg"))
BUDGET = 1.5
ROUNDS = 5


def document(videos: int, **axes: list[Any]) -> dict[str, Any]:
    """Return the sweep file; ``axes`` replace those of the matrix."""
    attacks = [{"name": attack.name, **PARAMS[attack.name]} for attack in ATTACKS]
    names = ["none", *(defense.name for defense in DEFENSES)]
    matrix = {"model": list(MODELS), "attack": attacks, "defense": names}
    return {
        "schema": 1,
        "dataset": {"name": "motion", "limit": videos},
        "threat": {"eps": "2/255"},
        "protocol": {"stop": "budget"},
        "runtime": {"device": DEVICE, "threads": 1, "batch_videos": BATCH},
        "output": {"keep_clips": 0},
        "matrix": {**matrix, "protocol.attacker_knows_defense": [False, True], **axes},
    }


# -- prices ------------------------------------------------------------------------------------


def price(work: Callable[[], Any], per: int) -> float:
    """Return seconds of the fastest of several rounds, per piece."""
    work()
    times = []
    for _ in range(ROUNDS):
        began = clock()
        work()
        times.append(clock() - began)
    return min(times) / per


@dataclass
class Prices:
    """Prices of steps, and what a plan has to know besides.

    Attributes:
        of: seconds by step.
        eligible: by model and defense, videos that are right.
        clip: bytes of a kept video, by model.
    """

    of: dict[Step, float] = field(default_factory=dict)
    eligible: dict[tuple[str, str], int] = field(default_factory=dict)
    clip: dict[str, int] = field(default_factory=dict)

    def take(self, experiment: Any, ids: list[str]) -> None:
        """Measure one model behind one defense, or behind none."""
        setup = build_setup(experiment)
        model = experiment.model.ref
        defense = experiment.defenses[0].ref if experiment.defenses else ""
        videos = [decode(setup, name) for name in ids]
        contest = Contest(setup, videos, None, lambda _stage: None)
        view = contest.attacked_view
        right = self._scores(view, contest.clean).argmax(dim=1) == contest.labels
        self.eligible[model, defense] = int(right.sum())
        some, group = contest.clean[:BATCH], BATCH
        self.of[Step("forward", model, defense)] = price(lambda: self._scores(view, some), group)
        self.of[Step("gradient", model, defense)] = price(lambda: gradient(view, some), group)
        if not defense:
            self.clip[model] = clip_bytes(*some.shape[1:2], *some.shape[-2:])
            moved = (some + 1 / 255).clamp(0, 1)
            self.of[Step("decode")] = price(lambda: [decode(setup, i) for i in ids], len(ids))
            self.of[Step("metrics")] = price(lambda: measured(setup, some, moved), group)

    @staticmethod
    def _scores(view: View, video: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return view(video, VideoRandom([0] * len(video), video.device))


def gradient(view: View, video: torch.Tensor) -> None:
    leaf = video.clone().requires_grad_()
    scores = view(leaf, VideoRandom([0] * len(video), video.device))
    torch.autograd.grad(scores.sum(), leaf)


def measured(setup: Any, clean: torch.Tensor, moved: torch.Tensor) -> None:
    for one, other in zip(clean, moved, strict=True):
        readings(setup.metrics, one, other, video="", fps=25, seed=0)


def prices(folder: Path) -> Prices:
    """Measure everything that the sweep is made of."""
    found = Prices()
    ids: list[str] = []
    matrix: dict[str, list[Any]] = {"attack": ["ifgsm"], "protocol.attacker_knows_defense": [True]}
    for combination in expand(document(VIDEOS, **matrix)):
        if combination.resolved is None:
            raise SystemExit(combination.problem)
        experiment = combination.resolved.experiment
        ids = ids or chosen_videos(folder)
        found.take(experiment, ids)
    found.of[Step("run")] = empty_run(folder, found)
    return found


def chosen_videos(folder: Path) -> list[str]:
    """Return the ids of the subset, from the manifest of a clean run."""
    sweep(folder / "clean", document(VIDEOS, model=[MODELS[0]], attack=["none"], defense=["none"]))
    [manifest] = (folder / "clean").glob("*/run.json")
    batches = json.loads(manifest.read_text(encoding="utf-8"))["batches"]
    return [video for batch in batches for video in batch]


def empty_run(folder: Path, found: Prices) -> float:
    """Return seconds that a run takes besides its videos: opening it, setting up, its summary."""
    alone = {"model": [MODELS[0]], "attack": ["none"], "defense": ["none"]}
    times = [sweep(folder / f"empty-{k}", document(1, **alone)) for k in range(ROUNDS)]
    two_passes = 2 * found.of[Step("forward", MODELS[0])]
    return min(times) - two_passes - found.of[Step("decode")]


# -- the sweep itself ----------------------------------------------------------------------------


@dataclass
class Counted:
    """Passes seen at the model itself: videos by whether a gradient was asked."""

    forwards: int = 0
    gradients: int = 0


@contextmanager
def counted() -> Iterator[Counted]:
    """Count what goes through any classifier during the block; a video here has one view."""
    seen, originals = Counted(), (GuardedModel.logits, GuardedModel.examine)

    def counting(original: Callable[..., Any]) -> Callable[..., Any]:
        def asked(self: GuardedModel, clips: torch.Tensor) -> Any:
            if clips.requires_grad:
                seen.gradients += len(clips)
            else:
                seen.forwards += len(clips)
            return original(self, clips)

        return asked

    # An attack asks for logits, the core for what the model tells besides as well.
    GuardedModel.logits, GuardedModel.examine = map(counting, originals)  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        GuardedModel.logits, GuardedModel.examine = originals  # type: ignore[method-assign]


def sweep(folder: Path, tables: dict[str, Any]) -> float:
    """Run a sweep into ``folder``, with a cache of its own, and return its seconds."""
    os.environ["VCR_CACHE_DIR"] = str(folder / "cache")
    began = clock()
    outcome = run_sweep(expand(tables), results=folder)
    if outcome.exit_code:
        raise SystemExit("\n".join(outcome.messages))
    return clock() - began


def record_bytes(folder: Path) -> tuple[int, int]:
    """Return how many records there are in all runs of a folder, and their bytes."""
    texts = [path.read_bytes() for path in folder.glob("*/records/*.jsonl")]
    return sum(text.count(b"\n") for text in texts), sum(map(len, texts))


def kept_bytes(folder: Path) -> int:
    shelves = (folder / "cache" / "reuse").glob("attack-*/*.entry")
    return sum(path.stat().st_size for path in shelves)


def plans(found: Prices, videos: int) -> list[Plan]:
    names = ["", *(defense.name for defense in DEFENSES)]
    return [
        Plan(model, videos, {n: found.eligible[model, n] for n in names}, ATTACKS, DEFENSES)
        for model in MODELS
    ]


def compare(folder: Path) -> int:
    """Print predicted over measured; return 1 where they do not agree."""
    sweep(folder / "sample", document(2))
    sample, size = record_bytes(folder / "sample")
    found = prices(folder)
    ours = plans(found, VIDEOS)
    total: Cost = together(plan.total() for plan in ours)
    with counted() as seen:
        spent = sweep(folder / "whole", document(VIDEOS))
    records, written = record_bytes(folder / "whole")
    kept = sum(p.eligible[""] * len(p.attacks) * found.clip[p.model] for p in ours)
    runs = of_kind(total, "run")
    expected = seconds(total, found.of)
    rows = [
        ("forward passes without gradient", of_kind(total, "forward"), seen.forwards),
        ("gradients", of_kind(total, "gradient"), seen.gradients),
        ("records", runs * VIDEOS, records),
        ("bytes of records", round(runs * VIDEOS * size / sample), written),
        ("bytes of kept videos", kept, kept_bytes(folder / "whole")),
        (f"seconds ({KIND})", expected, spent),
    ]
    print(f"{len(ours)} models x {len(ATTACKS)} attacks x {len(DEFENSES)} defenses, bare, unaware "
          f"and adaptive: {runs} runs of {VIDEOS} videos")  # fmt: skip
    for name, guess, truth in rows:
        print(f"  {name:<32} {guess:>12,.5g} {truth:>12,.5g}   ratio {guess / truth:.3f}")
    shares: dict[str, float] = {}
    for step, count in total.items():
        share = count * found.of[step] / expected
        shares[step.kind] = shares.get(step.kind, 0.0) + share
    print("  predicted seconds:", ", ".join(f"{k} {v:.0%}" for k, v in sorted(shares.items())))
    for step, each in found.of.items():
        print(f"    {' '.join(filter(None, step)):<36} {1000 * each:8.2f} ms")
    with counted() as early:
        stopped = sweep(folder / "early", {**document(VIDEOS), "protocol": {}})
    saved = (early.forwards / seen.forwards, early.gradients / seen.gradients, stopped / spent)
    print("  with first_success: forwards {:.2f}, gradients {:.2f}, seconds {:.2f}".format(*saved))
    exact = all(guess == truth for _, guess, truth in rows[:3])
    return int(not exact or not 1 / BUDGET <= spent / expected <= BUDGET)


ROWS: dict[str, tuple[Defense, dict[str, Any], dict[str, Any]]] = {
    "without reuse": (Defense("jpeg"), {"reuse": False}, {"runtime": {"reuse": False}}),
    "random, eot = 3": (Defense("crop-resize", 5), {"eot": 3}, {"protocol": {"eot": 3}}),
    "a vote of 12": (Defense("randomized-smoothing", 5, votes=12, gradient_votes=3), {}, {}),
}
VOTE = {"randomized-smoothing": {"n": 12, "gradient_n": 3, "sigma": 0.001}}


def other_rows(folder: Path) -> int:
    """Print predicted and counted passes of further plans on two videos, both of them eligible.

    Without ``square``, which asks a random victim once more about each candidate that looks better.
    """
    wrong, attacks = 0, ATTACKS[:2]
    asked = [{"name": attack.name, **PARAMS[attack.name]} for attack in attacks]
    for name, (defense, planned, keys) in ROWS.items():
        chosen = {"name": defense.name, **VOTE.get(defense.name, {})}
        tables = document(2, model=[MODELS[0]], attack=asked, defense=["none", chosen])
        tables |= {key: {**tables[key], **more} for key, more in keys.items()}
        plan = Plan(MODELS[0], 2, {"": 2, defense.name: 2}, attacks, (defense,), **planned)
        with counted() as seen:
            sweep(folder / defense.name, tables)
        guess = (of_kind(plan.total(), "forward"), of_kind(plan.total(), "gradient"))
        print(f"  {name:<32} {guess} predicted, {(seen.forwards, seen.gradients)} counted")
        wrong |= guess != (seen.forwards, seen.gradients)
    return wrong


def main(arguments: list[str]) -> int:
    if arguments == ["--kinetics"]:
        show()
        return 0
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        return compare(Path(name)) | other_rows(Path(name) / "rows")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
