"""Video-language models that are asked about tampering."""

from __future__ import annotations

from vcr_core import ClipSpec, ModelSpec

SPECS: tuple[ModelSpec, ...] = (
    ModelSpec(
        name="vlm-detector",
        summary="Chat model of transformers that is asked whether a video was tampered with",
        target="vcr_models.detectors.vlm:VlmDetector",
        params="vcr_models.detectors.vlm_params:VlmDetectorParams",
        requires=("transformers>=4.57", "torchvision>=0.17", "pillow>=10"),
        extra="vcr-models[transformers]",
        reference="https://arxiv.org/abs/2412.19794",
        license="that of the checkpoint",
        tags=frozenset({"detector"}),
        example=(
            "vcr run --dataset tamper --model vlm-detector "
            "--set model.checkpoint=/path/to/checkpoint --limit 16"
        ),
        label_space="tamper-mvt5",
        num_classes=6,
        clip=ClipSpec(frames=8, policy="segment_middle"),
        differentiable=False,
    ),
)
