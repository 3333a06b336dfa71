"""Models that users bring as files; classes and clips are in the parameters."""

from __future__ import annotations

from vcr_core import ClipSpec, ModelSpec

SPECS: tuple[ModelSpec, ...] = (
    ModelSpec(
        name="network-file",
        summary="A network of yours in a TorchScript or torch.export file",
        target="vcr_models.files.network_file:build",
        params="vcr_models.files.params:NetworkFileParams",
        tags=frozenset({"user"}),
        example=(
            "vcr run --model network-file --set model.file=net.pt2 --set model.labels=kinetics400 "
            "--set model.frames=16"
        ),
        label_space="",
        num_classes=0,
        clip=ClipSpec(frames=16),
    ),
    ModelSpec(
        name="python-file",
        summary="A classifier of yours that a function in a Python file returns",
        target="vcr_models.files.python_file:build",
        params="vcr_models.files.params:PythonFileParams",
        tags=frozenset({"user"}),
        example="vcr run --model python-file --set model.file=my_model.py",
        label_space="",
        num_classes=0,
        clip=ClipSpec(frames=16),
    ),
    ModelSpec(
        name="transformers-video",
        summary="Any video classifier of transformers, by folder or name in the local cache",
        target="vcr_models.files.transformers_video:build",
        params="vcr_models.files.params:TransformersVideoParams",
        requires=("transformers>=4.57",),
        extra="vcr-models[transformers]",
        license="that of the checkpoint",
        tags=frozenset({"user"}),
        example=(
            "vcr run --model transformers-video "
            "--set model.checkpoint=MCG-NJU/videomae-base-finetuned-kinetics"
        ),
        label_space="",
        num_classes=0,
        clip=ClipSpec(frames=16),
    ),
)
