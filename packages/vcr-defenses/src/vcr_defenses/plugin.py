"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import DefenseSpec, hookimpl


@hookimpl
def vcr_register_defenses() -> list[DefenseSpec]:
    """Describe the defenses of this distribution."""
    return [
        DefenseSpec(
            name="gaussian-blur",
            summary="Gaussian blur of every frame, fixed or with a random box-like kernel",
            target="vcr_defenses.gaussian_blur:GaussianBlur",
            params="vcr_defenses.params:GaussianBlurParams",
            reference="https://arxiv.org/abs/2610.08936",
            tags=frozenset({"spatial", "transform"}),
            example="vcr run run.toml --set defense.name=gaussian-blur --set defense.sigma=1.5",
            gradient="exact",
        ),
        DefenseSpec(
            name="jpeg",
            summary="JPEG compression of every frame, with a differentiable JPEG for the gradient",
            target="vcr_defenses.jpeg:Jpeg",
            params="vcr_defenses.params:JpegParams",
            requires=("pillow>=10",),
            reference="https://arxiv.org/abs/1711.00117",
            tags=frozenset({"spatial", "transform"}),
            example="vcr run run.toml --set defense.name=jpeg --set defense.quality=50",
            gradient="surrogate",
        ),
        DefenseSpec(
            name="rotate",
            summary="Rotation of the whole video by a random angle",
            target="vcr_defenses.rotate:Rotate",
            params="vcr_defenses.params:RotateParams",
            reference="https://arxiv.org/abs/2610.08936",
            tags=frozenset({"spatial", "transform", "cuda-nondeterministic"}),
            example="vcr run run.toml --set defense.name=rotate --set defense.max_degrees=15",
            stochastic=True,
            gradient="exact",
        ),
    ]
