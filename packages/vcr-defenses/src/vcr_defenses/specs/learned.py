"""Defenses that are learned from videos."""

from __future__ import annotations

from vcr_core import DefenseSpec

SPECS: tuple[DefenseSpec, ...] = (
    DefenseSpec(
        name="adv-trained",
        summary="Weights from adversarial training in the place of the model's own",
        target="vcr_defenses.adv_trained:AdvTrained",
        params="vcr_defenses.params.learned:AdvTrainedParams",
        cost="nothing at inference; the model was trained on attacked videos",
        reference="https://arxiv.org/abs/1706.06083",
        tags=frozenset({"learned"}),
        example="vcr run --model tiny-r3d --attack ifgsm --defense adv-trained --limit 8",
        defense_kind="checkpoint",
        gradient="exact",
    ),
    DefenseSpec(
        name="advit",
        summary="Rejects videos whose prediction changes when frames are rebuilt from earlier ones",
        target="vcr_defenses.advit:AdvIt",
        params="vcr_defenses.params.learned:AdvItParams",
        requires=("scikit-image>=0.22",),
        extra="vcr-defenses[flow]",
        cost="3 forward passes and 3 flows a frame, for final predictions only",
        reference="https://openaccess.thecvf.com/content_ICCV_2019/html/Xiao_AdvIT_Adversarial_Frames_Identifier_Based_on_Temporal_Consistency_in_Videos_ICCV_2019_paper.html",
        tags=frozenset({"learned", "detector"}),
        example="vcr run --model tiny-r3d --attack ifgsm --defense advit --limit 8",
        defense_kind="detector",
        stochastic=True,
        preserves_time=False,
        prepares=True,
    ),
    DefenseSpec(
        name="defense-patterns",
        summary="A pattern, learned beforehand on the frozen model, added to every clip",
        target="vcr_defenses.defense_patterns:DefensePatterns",
        params="vcr_defenses.params.learned:DefensePatternsParams",
        requires=("safetensors>=0.4",),
        cost="nothing at inference; learned once by vcr prepare",
        reference="https://doi.org/10.1109/TDSC.2023.3346064",
        tags=frozenset({"learned"}),
        example="vcr run --model tiny-r3d --attack pgd --defense defense-patterns --limit 8",
        prepares=True,
    ),
    DefenseSpec(
        name="feature-squeezing",
        summary="Rejects videos whose prediction changes when frames are simplified",
        target="vcr_defenses.feature_squeezing:FeatureSqueezing",
        params="vcr_defenses.params.learned:FeatureSqueezingParams",
        cost="3 forward passes and a non-local means filter, for final predictions only",
        reference="https://arxiv.org/abs/1704.01155",
        tags=frozenset({"learned", "detector"}),
        example="vcr run --model tiny-r3d --attack ifgsm --defense feature-squeezing --limit 8",
        defense_kind="detector",
        prepares=True,
    ),
)
