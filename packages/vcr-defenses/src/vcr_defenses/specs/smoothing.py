"""Defenses that classify many noisy copies."""

from __future__ import annotations

from vcr_core import DefenseSpec

SPECS: tuple[DefenseSpec, ...] = (
    DefenseSpec(
        name="denoised-smoothing",
        summary="Randomized smoothing of a diffusion denoiser and a classifier that knows no noise",
        target="vcr_defenses.denoised_smoothing:DenoisedSmoothing",
        params="vcr_defenses.params.smoothing:DenoisedSmoothingParams",
        requires=("diffusers>=0.38",),
        extra="vcr-defenses[diffusion]",
        reference="https://arxiv.org/abs/2206.10550",
        tags=frozenset({"certified", "diffusion", "noise", "vote"}),
        example="vcr run --model tiny-r3d --defense denoised-smoothing --limit 4 "
        "--set defense.certify_n=100",
        defense_kind="smooth",
        stochastic=True,
        gradient="exact",
        certifies=True,
        cost="n passes of the image network a frame, and n classifications",
    ),
    DefenseSpec(
        name="randomized-smoothing",
        summary="Vote over copies with Gaussian noise, which abstains and certifies an L2 radius",
        target="vcr_defenses.smoothing:RandomizedSmoothing",
        params="vcr_defenses.params.smoothing:RandomizedSmoothingParams",
        reference="https://arxiv.org/abs/1902.02918",
        tags=frozenset({"certified", "noise", "vote"}),
        example="vcr run --model tiny-r3d --defense randomized-smoothing --limit 8 "
        "--set defense.certify_n=1000",
        defense_kind="smooth",
        stochastic=True,
        gradient="exact",
        certifies=True,
        cost="n forward passes",
    ),
)
