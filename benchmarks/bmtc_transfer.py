"""What BMTC's learned choice of backgrounds is worth, and how its answers carry over.

For each surrogate a mixer is trained on validation videos 100 to 163 of ``motion`` and judged on
the first 96, which it has not seen:

- log-probability of the label that the mixture alone takes away, for the learned choice and for
  random ones, with the 95 % interval of the paired difference over videos;
- share of rightly classified videos that each model loses to ``bmtc``, to ``bmtc`` with random
  backgrounds, and to I-FGSM on the surrogate from the clean video, all at 8/255 and with 10 steps,
  with Wilson intervals.

Run: ``python benchmarks/bmtc_transfer.py [surrogate ...]``. About a CPU minute each.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
import vcr_core as vcr
from safetensors.torch import load
from torch import Tensor
from vcr_attacks.backgrounds import fitted, mixture
from vcr_attacks.bmtc import Bmtc
from vcr_attacks.mixer import Mixer, features
from vcr_attacks.params.prepared import BmtcParams
from vcr_core.accounts import Rules
from vcr_core.adaptive import View
from vcr_core.goals import Goals
from vcr_core.metering import frozen
from vcr_core.preparing import load_items
from vcr_core.protocols import AttackContext, PrepareContext
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.stats import wilson
from vcr_core.threat import Linf, Unbounded
from vcr_core.victim import Victim

MODELS = ("tiny-r3d", "tiny-r2plus1d", "tiny-tsm", "tiny-vit", "tiny-r3d.adv")
EVALUATED, FIRST, TRAINING, SEED, DRAWS = 96, 100, 64, 42, 8
THREAT = Linf("8/255")
VARIANTS = {
    "bmtc": {},
    "random": {"mixer_epochs": 0, "sample": True},
    "ifgsm": {"mixer_epochs": 0, "gamma": 1.0, "consistency": 0.0},
}


def scores(model: object, videos: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([model.logits(v)[:, 0].log_softmax(1) for v in videos.split(16)])


def attacked(attack: Bmtc, model: object, folder: Path, batch: object) -> Tensor:
    """Return what is stored of the attack's answers."""
    stored = []
    for start in range(0, len(batch.ids), 16):
        part = slice(start, start + 16)
        ids, clean, goals = list(batch.ids[part]), batch.videos[part], Goals(batch.labels[part])
        surrogate = Victim(View(model, batch.gather), clean, goals, Unbounded(quantize=False),
                           ids=ids, seed=SEED, rules=Rules(stop="budget"))  # fmt: skip
        seeds = [derive_seed(SEED, i, "attack") for i in ids]
        context = AttackContext(THREAT, VideoRandom(seeds), ids, folder=folder,
                                surrogates=lambda _name, made=surrogate: made)  # fmt: skip
        answer = attack.attack(surrogate, clean, goals, context)
        stored.append(THREAT.store(THREAT.project(answer, clean), clean))
    return torch.cat(stored)


def choice(folder: Path, surrogate: str, model: object, batch: object) -> str:
    """Return in words what the learned choice takes away, beside random ones."""
    policy = load((folder / "mixer.safetensors").read_bytes())
    backgrounds = load((folder / "backgrounds.safetensors").read_bytes())["backgrounds"]
    mixer = Mixer.uniform(*policy["weight"].shape)
    mixer.weight, mixer.bias = policy["weight"], policy["bias"]
    clean, rows = batch.videos, torch.arange(len(batch.videos))
    before = scores(model, clean)
    right = before.argmax(1) == batch.labels

    def drop(actions: Tensor) -> Tensor:
        mixed = [
            THREAT.project(mixture(v, fitted(backgrounds, v), a, 0.8), v)
            for v, a in zip(clean.split(16), actions.split(16), strict=True)
        ]
        return (before - scores(model, torch.cat(mixed)))[rows, batch.labels][right]

    random = torch.Generator().manual_seed(0)
    shape = clean.shape[:2]
    draws = torch.stack([
        drop(torch.randint(0, len(backgrounds), shape, generator=random)) for _ in range(DRAWS)
    ])  # fmt: skip
    learned = drop(mixer.choice(features(clean)))
    gain = learned - draws.mean(0)
    half = 1.96 * float(gain.std()) / len(gain) ** 0.5
    each = draws.mean(1)
    return (f"{surrogate}: learned {float(learned.mean()):.3f}, random {float(each.mean()):.3f} "
            f"(best of {DRAWS} {float(each.max()):.3f}), "
            f"gain {float(gain.mean()):+.3f} ± {half:.3f}")  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    models = {name: frozen(vcr.load("model", name)) for name in MODELS}
    dataset = vcr.load("dataset", "motion", split="val")
    ids = list(dataset.ids())
    read = load_items(models["tiny-r3d"].clip, "cpu")
    items = [dataset.item(i) for i in (*ids[:EVALUATED], *ids[FIRST : FIRST + TRAINING])]
    (everything,) = read(items)
    place = {video: i for i, video in enumerate(everything.ids)}

    def kept(chosen: list) -> list:
        rows = [place[item.id] for item in chosen]
        return [type(everything)(tuple(item.id for item in chosen), everything.videos[rows],
                                 everything.labels[rows], everything.gather)]  # fmt: skip

    (batch,) = kept(items[:EVALUATED])
    for name in sys.argv[1:] or MODELS[:4]:
        model = models[name]
        answers: dict[str, Tensor] = {}
        with tempfile.TemporaryDirectory() as parent:
            for variant, changes in VARIANTS.items():
                folder = Path(parent) / variant
                folder.mkdir()
                params = BmtcParams(surrogate=name, **changes)
                context = PrepareContext(folder, items[EVALUATED:], SEED, model, THREAT,
                                         surrogates=lambda _name, m=model: m)  # fmt: skip
                context.loader = kept
                Bmtc(params).prepare(context)
                if variant == "bmtc":
                    print(choice(folder, name, model, batch), flush=True)
                answers[variant] = attacked(Bmtc(params), model, folder, batch)
        for victim, judge in models.items():
            right = scores(judge, batch.videos).argmax(1) == batch.labels
            told = []
            for variant, answer in answers.items():
                lost = int((scores(judge, answer).argmax(1) != batch.labels)[right].sum())
                low, high = wilson(lost, int(right.sum()))
                told.append(f"{variant} {lost} of {int(right.sum())} [{low:.0%}, {high:.0%}]")
            print(f"  {name} to {victim}: {'; '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
