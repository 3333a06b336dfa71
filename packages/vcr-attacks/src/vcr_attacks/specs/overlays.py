"""Overlays that are trained once for all videos."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = (
    AttackSpec(
        name="flickering-universal",
        summary="Over-the-air flickering, the same for all videos and trained beforehand",
        target="vcr_attacks.overlays:FlickeringUniversal",
        params="vcr_attacks.params.overlays:FlickeringUniversalParams",
        reference="https://arxiv.org/abs/2002.05123",
        tags=frozenset({"perceptual", "universal", "video"}),
        example="vcr prepare run.toml --set attack.name=flickering-universal",
        access="white-box",
        norms=frozenset({"none", "linf"}),
        targeted=True,
        prepares=True,
    ),
    AttackSpec(
        name="framing-universal",
        summary="Adversarial framing, one border for all videos, trained beforehand",
        target="vcr_attacks.overlays:FramingUniversal",
        params="vcr_attacks.params.overlays:FramingUniversalParams",
        reference="https://arxiv.org/abs/1812.04599",
        tags=frozenset({"perceptual", "region", "universal"}),
        example="vcr prepare run.toml --set attack.name=framing-universal",
        access="white-box",
        norms=frozenset({"none"}),
        targeted=True,
        prepares=True,
    ),
    AttackSpec(
        name="patch-universal",
        summary="Adversarial patch, one square for all videos and places, trained beforehand",
        target="vcr_attacks.overlays:PatchUniversal",
        params="vcr_attacks.params.overlays:PatchUniversalParams",
        reference="https://arxiv.org/abs/1712.09665",
        tags=frozenset({"perceptual", "region", "universal"}),
        example="vcr prepare run.toml --set attack.name=patch-universal",
        access="white-box",
        norms=frozenset({"none"}),
        targeted=True,
        prepares=True,
        stochastic=True,
    ),
)
