"""Attacks with an offline step, or that work through a surrogate model."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = (
    AttackSpec(
        name="uap",
        summary="One perturbation for all videos, trained beforehand",
        target="vcr_attacks.uap:Uap",
        params="vcr_attacks.params.prepared:UapParams",
        reference="https://arxiv.org/abs/1610.08401",
        tags=frozenset({"universal", "paper"}),
        example="vcr prepare run.toml --set attack.name=uap --set attack.epochs=20",
        access="white-box",
        norms=frozenset({"linf"}),
        targeted=True,
        prepares=True,
    ),
    AttackSpec(
        name="bmtc",
        summary="Background mixup with temporal consistency, on a surrogate (BMTC)",
        target="vcr_attacks.bmtc:Bmtc",
        params="vcr_attacks.params.prepared:BmtcParams",
        reference="https://arxiv.org/abs/2505.17807",
        tags=frozenset({"transfer", "paper"}),
        example="vcr prepare run.toml --set attack.name=bmtc --set attack.surrogate=tiny-tsm",
        access="transfer",
        norms=frozenset({"linf"}),
        prepares=True,
    ),
    AttackSpec(
        name="stylefool",
        summary="StyleFool: another picture's style, then NES around the stylised video",
        target="vcr_attacks.stylefool:Stylefool",
        params="vcr_attacks.params.prepared:StylefoolParams",
        extra="vcr-attacks[stylefool]",
        reference="https://arxiv.org/abs/2203.16000",
        tags=frozenset({"cuda-nondeterministic", "estimated-gradient", "paper", "perceptual"}),
        example="vcr prepare run.toml --set attack.name=stylefool --set attack.features=filters",
        access="score",
        norms=frozenset({"linf", "none"}),
        targeted=True,
        prepares=True,
        stochastic=True,
    ),
)
