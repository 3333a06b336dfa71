"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import AttackSpec, PresetSource, hookimpl


@hookimpl
def vcr_register_attacks() -> list[AttackSpec]:
    """Describe the attacks of this distribution."""
    return [
        AttackSpec(
            name="ifgsm",
            summary="Iterative fast gradient sign method (I-FGSM, BIM)",
            target="vcr_attacks.ifgsm:Ifgsm",
            params="vcr_attacks.params:IfgsmParams",
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
            params="vcr_attacks.params:PgdParams",
            reference="https://arxiv.org/abs/1706.06083",
            tags=frozenset({"gradient"}),
            example="vcr run run.toml --set attack.name=pgd --set attack.restarts=5",
            access="white-box",
            norms=frozenset({"linf", "l2"}),
            targeted=True,
            stochastic=True,
        ),
        AttackSpec(
            name="square",
            summary="Square Attack, a random search from scores alone",
            target="vcr_attacks.square:Square",
            params="vcr_attacks.params:SquareParams",
            reference="https://arxiv.org/abs/1912.00049",
            tags=frozenset({"random-search", "paper"}),
            example="vcr run run.toml --set attack.name=square --set attack.iterations=1000",
            access="score",
            norms=frozenset({"linf", "l2"}),
            targeted=True,
            stochastic=True,
        ),
    ]


@hookimpl
def vcr_register_presets() -> list[PresetSource]:
    """Name the folder of the parameter sets that this distribution ships."""
    return [PresetSource(package="vcr_attacks")]
