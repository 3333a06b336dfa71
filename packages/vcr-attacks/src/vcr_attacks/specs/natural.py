"""Natural transformations: other frames of the same video."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = (
    AttackSpec(
        name="natural-shift",
        summary="The same sampling some fifteenths of a second earlier or later",
        target="vcr_attacks.natural_shift:NaturalShift",
        params="vcr_attacks.params.natural:NaturalShiftParams",
        reference="https://arxiv.org/abs/1904.10076",
        tags=frozenset({"natural"}),
        example="vcr run --model tiny-r3d --attack natural-shift --set attack.steps=-2 --limit 8",
        access="none",
        norms=frozenset({"none"}),
        stage="plan",
    ),
)
