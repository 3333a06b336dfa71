"""Attacks that look through image networks instead of a video model."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = (
    AttackSpec(
        name="i2v",
        summary="Image-to-video, frames pushed away from themselves in an image network (I2V)",
        target="vcr_attacks.i2v:ImageToVideo",
        params="vcr_attacks.params.transfer:I2vParams",
        requires=("torchvision>=0.17",),
        extra="vcr-attacks[images]",
        reference="https://arxiv.org/abs/2112.05379",
        tags=frozenset({"features", "transfer"}),
        example="vcr run run.toml --set attack.name=i2v --set attack.networks='[\"vgg16\"]'",
        access="transfer",
        norms=frozenset({"linf"}),
    ),
    AttackSpec(
        name="ens-i2v",
        summary="Image-to-video through four image networks together (ENS-I2V)",
        target="vcr_attacks.i2v:EnsembleImageToVideo",
        params="vcr_attacks.params.transfer:EnsI2vParams",
        requires=("torchvision>=0.17",),
        extra="vcr-attacks[images]",
        reference="https://arxiv.org/abs/2112.05379",
        tags=frozenset({"ensemble", "features", "transfer"}),
        example="vcr run run.toml --set attack.name=ens-i2v --set threat.eps=16/255",
        access="transfer",
        norms=frozenset({"linf"}),
    ),
)
