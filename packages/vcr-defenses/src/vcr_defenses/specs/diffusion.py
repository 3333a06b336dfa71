"""Defenses that purify with a diffusion model."""

from __future__ import annotations

from vcr_core import DefenseSpec

_REQUIRES = ("diffusers>=0.38",)
_EXTRA = "vcr-defenses[diffusion]"

SPECS: tuple[DefenseSpec, ...] = (
    DefenseSpec(
        name="diffpure",
        summary="Noise on every frame, then the reverse diffusion of an image model (DiffPure)",
        target="vcr_defenses.diffusion.diffpure:DiffPure",
        params="vcr_defenses.params.diffusion:DiffPureParams",
        requires=_REQUIRES,
        extra=_EXTRA,
        reference="https://arxiv.org/abs/2205.07460",
        tags=frozenset({"diffusion", "vote"}),
        example="vcr run --model tiny-r3d --attack ifgsm --defense diffpure --limit 4 "
        "--set defense.attack_params.denoise_steps=1",
        defense_kind="purify",
        stochastic=True,
        gradient="surrogate",
    ),
    DefenseSpec(
        name="freqpure",
        summary="A reverse diffusion held to the low frequencies of the input (FreqPure)",
        target="vcr_defenses.diffusion.freqpure:FreqPure",
        params="vcr_defenses.params.diffusion:FreqPureParams",
        requires=_REQUIRES,
        extra=_EXTRA,
        reference="https://arxiv.org/abs/2505.01267",
        tags=frozenset({"diffusion", "vote"}),
        example="vcr run --model tiny-r3d --attack ifgsm --defense freqpure --limit 4 "
        "--set defense.attack_params.denoise_steps=1",
        defense_kind="purify",
        stochastic=True,
        gradient="surrogate",
    ),
    DefenseSpec(
        name="videopure",
        summary="Temporal DDIM inversion, guided denoising of the clip, and a vote over its steps",
        target="vcr_defenses.diffusion.videopure:VideoPure",
        params="vcr_defenses.params.diffusion:VideopureParams",
        requires=_REQUIRES,
        extra=_EXTRA,
        reference="https://arxiv.org/abs/2501.14999",
        tags=frozenset({"diffusion", "temporal", "vote"}),
        example="vcr run --model tiny-r3d --defense videopure --limit 4",
        defense_kind="purify",
        gradient="surrogate",
        preserves_time=False,
        cost="2 video network passes a step (12), 7 decodings and 7 classifications of a clip",
    ),
)
