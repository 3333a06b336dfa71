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
    _tiny(
        "tiny-slowfast",
        "Tiny SlowFast of the generated motion data set, 0.22 M parameters",
        "https://arxiv.org/abs/1812.03982",
        ("fast1", "slow1", "fast2", "slow2", "fast3", "slow3"),
        (
            _weights(
                "tiny-slowfast",
                "b59972e69733675de694ce4c429eb2f96905566365a148f1fa48ad277a9d6b4e",
                445_840,
                0.9417,
            ),
        ),
    ),
    _tiny(
        "tiny-uniformer",
        "Tiny UniFormer of the generated motion data set, 0.09 M parameters",
        "https://arxiv.org/abs/2201.04676",
        ("stem", "local1", "down", "global1", "global2", "norm"),
        (
            _weights(
                "tiny-uniformer",
                "e74d7ea5278e9bd00586f1d9ab312a3bedd58f813fdd43d4d3b88a7868ce52ca",
                191_040,
                0.9604,
            ),
        ),
    ),
    _tiny(
        "tiny-x3d",
        "Tiny X3D of the generated motion data set, 0.09 M parameters",
        "https://arxiv.org/abs/2004.04730",
        ("stem", "block1", "block2", "block3", "block4", "widen_norm", "hidden"),
        (
            _weights(
                "tiny-x3d",
                "85598362e4bb16806cab33cee23ef1842b0f3affb39a2b5f100d4a9d35acb4ec",
                189_816,
                0.9354,
            ),
        ),
    ),
    _tiny(
        "tiny-timesformer",
        "Tiny TimeSformer of the generated motion data set, 0.19 M parameters",
        "https://arxiv.org/abs/2102.05095",
        ("stem", "block1", "block2", "block3", "norm"),
        (
            _weights(
                "tiny-timesformer",
                "4538ead302afc83343f7c66f8e5616e5e0b932913311a60fed4db6307f78b414",
                384_584,
                0.9542,
            ),
        ),
    ),
    _tiny(
        "tiny-swin",
        "Tiny Video Swin of the generated motion data set, 0.10 M parameters",
        "https://arxiv.org/abs/2106.13230",
        ("stem", "block1", "block2", "merging", "block3", "block4", "norm"),
        (
            _weights(
                "tiny-swin",
                "56ea64fc01ea14d7dcac7cefd9cd732b6faf416740b69df3de6c5df464be4ce5",
                214_304,
                0.9042,
            ),
        ),
    ),
)
