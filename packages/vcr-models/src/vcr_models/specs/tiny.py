"""Bundled tiny classifiers of the generated data set."""

from __future__ import annotations

from vcr_core import ClipSpec, ModelSpec, WeightSpec

_CLIP = ClipSpec(frames=16, policy="center", end="clamp", size=64)
_LABELS = "motion-16"


def _weights(name: str, sha256: str, size: int, accuracy: float, variant: str = "") -> WeightSpec:
    file = f"{name}.{variant}" if variant else name
    return WeightSpec(
        variant=variant,
        url=f"package:vcr_models/weights/{file}.safetensors",
        sha256=sha256,
        bytes=size,
        license="MIT",
        label_space=_LABELS,
        clean_accuracy=accuracy,
    )


def _tiny(
    name: str,
    summary: str,
    reference: str,
    layers: tuple[str, ...],
    weights: tuple[WeightSpec, ...],
) -> ModelSpec:
    return ModelSpec(
        name=name,
        summary=summary,
        target="vcr_models.tiny.build:from_weights",
        reference=reference,
        tags=frozenset({"bundled", "tiny"}),
        example=f"vcr run --model {name} --attack ifgsm --eps 2/255 --limit 16",
        label_space=_LABELS,
        num_classes=16,
        clip=_CLIP,
        weights=weights,
        feature_layers=layers,
    )


SPECS: tuple[ModelSpec, ...] = (
    _tiny(
        "tiny-r3d",
        "Tiny 3D residual CNN of the generated motion data set, 0.37 M parameters",
        "https://arxiv.org/abs/1711.11248",
        ("stem", "stage1", "stage2", "residual", "stage3"),
        (
            _weights(
                "tiny-r3d",
                "8cf28c17546d7c66d00fb732b1c96458565f3248d13782d851e18c6157b714d3",
                1_479_784,
                0.9979,
            ),
            _weights(
                "tiny-r3d",
                "8af36b6adfb42d22a8f71fb87ec69c2ea73f89fa7b5b7ab7b9c9b959af43d8fb",
                1_479_816,
                0.8938,
                variant="adv",
            ),
        ),
    ),
    _tiny(
        "tiny-r2plus1d",
        "Tiny (2+1)D CNN of the generated motion data set, 0.20 M parameters",
        "https://arxiv.org/abs/1711.11248",
        ("stem", "stage1", "stage2", "stage3"),
        (
            _weights(
                "tiny-r2plus1d",
                "ac1f10b71183399636810134f17f260d29c29632630567607de4b3e9a2a33f41",
                823_416,
                0.9812,
            ),
        ),
    ),
    _tiny(
        "tiny-tsm",
        "Tiny 2D CNN with temporal shift of the generated motion data set, 0.19 M parameters",
        "https://arxiv.org/abs/1811.08383",
        ("norm1", "norm2", "norm3", "norm4"),
        (
            _weights(
                "tiny-tsm",
                "f558db0823e9ddc5539fb3cc0af4c14cc30d9981a749794b84493a6eaf58ff92",
                772_376,
                0.9875,
            ),
        ),
    ),
    _tiny(
        "tiny-vit",
        "Tiny space-time transformer of the generated motion data set, 0.36 M parameters",
        "https://arxiv.org/abs/2103.15691",
        ("norm1", "norm2", "norm3"),
        (
            _weights(
                "tiny-vit",
                "d198535204a719c23249ca55aa43f4589d8059c0281eda90a39d8092ef0e3c32",
                1_449_280,
                0.9833,
            ),
        ),
    ),
)
