"""Hyper-parameters of the bundled tiny models."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one weight file is trained.

    Attributes:
        clips: the first so many clips of the training stream.
        epochs: passes over them.
        batch: clips per step.
        lr: peak of the one-cycle schedule.
        weight_decay: of AdamW.
        label_smoothing: of the cross-entropy.
        shift: largest cyclic shift in pooled pixels.
        gain: largest relative change of brightness.
        offset: largest additive change of brightness.
        bfloat16: whether the forward pass of training runs under bfloat16 autocast; evaluation
            never does.
        start: weight name to start from, or "" for a random start.
        eps: radius of adversarial training in 1/255, 0 for none.
        eps_ramp: fraction of training over which the radius grows from 0.
        pgd_steps: steps of the inner attack.
        clean_share: weight of the loss on unperturbed clips in adversarial training.
        float16: whether the file holds half-precision numbers; the network computes in float32
            all the same.
    """

    clips: int = 12_800
    epochs: int = 20
    batch: int = 32
    lr: float = 4e-3
    weight_decay: float = 0.05
    label_smoothing: float = 0.05
    shift: int = 3
    gain: float = 0.12
    offset: float = 0.04
    bfloat16: bool = False
    start: str = ""
    eps: float = 0.0
    eps_ramp: float = 0.4
    pgd_steps: int = 3
    clean_share: float = 0.0
    float16: bool = False


RECIPES: dict[str, Recipe] = {
    "tiny-r3d": Recipe(),
    "tiny-r2plus1d": Recipe(epochs=5, bfloat16=True),
    "tiny-tsm": Recipe(epochs=5, bfloat16=True),
    "tiny-vit": Recipe(epochs=10, lr=1.5e-3, bfloat16=True),
    "tiny-slowfast": Recipe(epochs=4, bfloat16=True, float16=True),
    "tiny-uniformer": Recipe(epochs=5, lr=2e-3, bfloat16=True, float16=True),
    "tiny-x3d": Recipe(epochs=4, float16=True),
    "tiny-timesformer": Recipe(epochs=5, lr=2e-3, bfloat16=True, float16=True),
    "tiny-swin": Recipe(epochs=5, lr=2e-3, bfloat16=True, float16=True),
    "tiny-r3d.adv": Recipe(epochs=6, lr=2e-3, start="tiny-r3d", eps=4.0),
}
