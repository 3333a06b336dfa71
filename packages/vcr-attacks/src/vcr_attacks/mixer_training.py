"""The offline step of BMTC: backgrounds, and the mixer's training on a surrogate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from safetensors.torch import load, save
from vcr_core.atomic import write_bytes, write_json
from vcr_core.losses import margin
from vcr_core.seeding import derive_seed

from vcr_attacks.backgrounds import collect, fitted, mixture
from vcr_attacks.consistency import agreement
from vcr_attacks.mixer import Mixer, features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from vcr_core.protocols import PrepareContext, TrainingBatch

    from vcr_attacks.params.prepared import BmtcParams

BACKGROUNDS_FILE = "backgrounds.safetensors"
MIXER_FILE = "mixer.safetensors"
REPORT_FILE = "training.json"
STATE_FILE = "state.safetensors"

_EXPECTED_RATE = 0.3


def train(params: BmtcParams, ctx: PrepareContext) -> None:
    """Collect backgrounds, train the mixer, write both and the reward by epoch."""
    backgrounds, classes = collect(ctx, params.backgrounds)
    training = _Training(params, ctx, backgrounds)
    training.run()
    report = {"classes": classes, "rewards": training.rewards, "surrogate": params.surrogate}
    ctx.facts.update(report)
    write_json(ctx.folder / REPORT_FILE, report)
    write_bytes(ctx.folder / BACKGROUNDS_FILE, save({"backgrounds": backgrounds}))
    policy = {"weight": training.mixer.weight, "bias": training.mixer.bias}
    write_bytes(ctx.folder / MIXER_FILE, save({k: v.contiguous() for k, v in policy.items()}))
    (ctx.folder / STATE_FILE).unlink(missing_ok=True)


class _Training:
    def __init__(self, params: BmtcParams, ctx: PrepareContext, backgrounds: Tensor) -> None:
        self.params = params
        self.ctx = ctx
        self.backgrounds = backgrounds
        self.clean: dict[str, float] = {}
        self.expected: dict[str, float] = {}
        self.rewards: list[float] = []
        self.steps = 0
        self.mixer = self._resumed()

    def run(self) -> None:
        params, ctx = self.params, self.ctx
        total = params.mixer_epochs * len(ctx.items)
        while len(self.rewards) < params.mixer_epochs:
            epoch = len(self.rewards)
            random = torch.Generator().manual_seed(derive_seed(ctx.seed, "mixer", "prepare", epoch))
            order = torch.randperm(len(ctx.items), generator=random).tolist()
            earned: list[float] = []
            for start in range(0, len(order), params.mixer_batch):
                chosen = [ctx.items[i] for i in order[start : start + params.mixer_batch]]
                for batch in ctx.load(chosen):
                    earned += self._step(batch, epoch, random).tolist()
                ctx.progress(epoch * len(order) + start + len(chosen), total)
            self.rewards.append(sum(earned) / len(earned))
            self._keep()

    def _step(self, batch: TrainingBatch, epoch: int, random: torch.Generator) -> Tensor:
        """Mix, look at what it earned, and learn from it; return the rewards ``[B]``."""
        params, videos = self.params, batch.videos
        seen = features(videos).cpu()
        chances = self.mixer.logits(seen).softmax(dim=-1)
        actions = torch.multinomial(chances.flatten(0, 1), 1, generator=random)
        actions = actions.view(chances.shape[:2])
        mixed = mixture(
            videos, fitted(self.backgrounds, videos), actions.to(videos.device), params.gamma
        )
        mixed = self.ctx.threat.project(mixed, videos)
        reward = self._reward(batch, mixed, epoch).cpu()
        self._learn(batch.ids, seen, actions, reward)
        self.steps += 1
        return reward

    def _learn(self, ids: Sequence[str], seen: Tensor, actions: Tensor, reward: Tensor) -> None:
        """Learn from videos whose usual reward is known, and remember what all have earned.

        Videos differ far more in how easily they lose their label than choices do: against one
        baseline for all of them, the noise of who was drawn would drown what a choice is worth.
        """
        params, expected = self.params, self.expected
        known = torch.tensor([video in expected for video in ids])
        if bool(known.any()):
            usual = reward.new_tensor([expected.get(video, 0.0) for video in ids])
            self.mixer.learn(
                seen[known], actions[known], (reward - usual)[known],
                rate=params.mixer_rate, momentum=params.mixer_momentum,
            )  # fmt: skip
        for video, earned in zip(ids, reward.tolist(), strict=True):
            before = expected.get(video, earned)
            expected[video] = before + _EXPECTED_RATE * (earned - before)

    def _reward(self, batch: TrainingBatch, mixed: Tensor, epoch: int) -> Tensor:
        params, ctx = self.params, self.ctx
        surrogate = ctx.surrogate(params.surrogate, batch, repeat=epoch)
        missing = [i for i in batch.ids if i not in self.clean]
        if missing:
            logits = surrogate.scores(batch.videos)
            values = logits.gather(1, batch.labels[:, None])[:, 0].tolist()
            self.clean.update(zip(batch.ids, values, strict=True))
        before = mixed.new_tensor([self.clean[i] for i in batch.ids])
        if params.reward_consistency:
            _, grad, logits = surrogate.loss_and_grad(mixed)
        else:
            grad, logits = None, surrogate.scores(mixed)
        after = logits.gather(1, batch.labels[:, None])[:, 0]
        reward = params.reward_attack * (before - after)
        if grad is not None and grad.shape[1] > 1:
            reward = reward + params.reward_consistency * agreement(grad).mean(dim=1)
        if params.auxiliaries and self.steps % params.transfer_every == 0:
            gains = [
                -margin(ctx.surrogate(name, batch, repeat=epoch).scores(mixed), batch.labels, None)
                for name in params.auxiliaries
            ]
            reward = reward + params.reward_transfer * torch.stack(gains).mean(dim=0)
        return reward

    def _keep(self) -> None:
        told = {"rewards": self.rewards, "steps": self.steps, "expected": self.expected}
        data = save(self.mixer.tensors(), {"told": json.dumps(told)})
        write_bytes(self.ctx.folder / STATE_FILE, data)

    def _resumed(self) -> Mixer:
        path = self.ctx.folder / STATE_FILE
        if not path.exists():
            inputs = features(self.ctx.load(self.ctx.items[:1])[0].videos[:1, :1]).shape[-1]
            return Mixer.uniform(len(self.backgrounds), inputs)
        with safe_open(path, framework="pt") as file:
            told = json.loads(file.metadata()["told"])
        self.rewards, self.steps = told["rewards"], told["steps"]
        self.expected = told["expected"]
        return Mixer(**load(path.read_bytes()))
