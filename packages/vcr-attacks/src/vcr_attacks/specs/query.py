"""Attacks that ask the victim for scores or labels."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = (
    AttackSpec(
        name="square",
        summary="Square Attack, a random search from scores alone",
        target="vcr_attacks.square:Square",
        params="vcr_attacks.params.query:SquareParams",
        reference="https://arxiv.org/abs/1912.00049",
        tags=frozenset({"random-search", "paper"}),
        example="vcr run run.toml --set attack.name=square --set attack.iterations=1000",
        access="score",
        norms=frozenset({"linf", "l2"}),
        targeted=True,
        stochastic=True,
    ),
)
