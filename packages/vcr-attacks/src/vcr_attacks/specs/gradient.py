"""Attacks that step along gradients of the victim."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = (
    AttackSpec(
        name="ifgsm",
        summary="Iterative fast gradient sign method (I-FGSM, BIM)",
        target="vcr_attacks.ifgsm:Ifgsm",
        params="vcr_attacks.params.gradient:IfgsmParams",
        reference="https://arxiv.org/abs/1607.02533",
        tags=frozenset({"gradient", "paper"}),
        example="vcr run run.toml --set attack.name=ifgsm --set attack.steps=10",
        access="white-box",
        norms=frozenset({"linf"}),
        targeted=True,
    ),
    AttackSpec(
        name="pgd",
        summary="Projected gradient descent with random starts and restarts",
        target="vcr_attacks.pgd:Pgd",
        params="vcr_attacks.params.gradient:PgdParams",
        reference="https://arxiv.org/abs/1706.06083",
        tags=frozenset({"gradient"}),
        example="vcr run run.toml --set attack.name=pgd --set attack.restarts=5",
        access="white-box",
        norms=frozenset({"linf", "l2"}),
        targeted=True,
        stochastic=True,
    ),
)
