"""Parameters of models that users bring as files."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, field
from vcr_core.specs import SamplingPolicy

Checkpoint: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        description="folder of a transformers checkpoint, or owner/name of one in the local "
        "Hugging Face cache",
    ),
]
Revision: TypeAlias = Annotated[
    str, Meta(min_length=1, description="branch, tag or commit of a name in the cache")
]
Stride: TypeAlias = Annotated[int, Meta(ge=1, description="source frames between two of a clip")]
Clips: TypeAlias = Annotated[int, Meta(ge=1, description="clips of a video with full views")]
Policy: TypeAlias = Annotated[SamplingPolicy, Meta(description="how clips are placed")]
Crops: TypeAlias = Annotated[Literal[1, 3, 10], Meta(description="crops of a clip with full views")]
Resize: TypeAlias = Annotated[
    int, Meta(ge=0, description="short side before the crop; 0 = the side of the crop")
]
Three: TypeAlias = Annotated[
    tuple[float, float, float], Meta(description="one number a channel, on [0, 1]")
]


class NetworkFileParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of ``network-file``."""

    file: Annotated[
        str, Meta(description="a TorchScript or torch.export file", extra={"path": True})
    ]
    labels: Annotated[
        str,
        Meta(description="kinetics400, ssv2, ucf101, motion, or a text file with a name a line"),
    ]
    frames: Annotated[int, Meta(ge=1, description="frames of a clip")]
    stride: Stride = 1
    clips: Clips = 1
    policy: Policy = "uniform_clips"
    size: Annotated[int, Meta(ge=1, description="side of the crop that it takes, in pixels")] = 224
    resize: Resize = 0
    crops: Crops = 1
    mean: Annotated[Three, Meta(description="pixel mean that is subtracted")] = (0.0, 0.0, 0.0)
    std: Annotated[Three, Meta(description="what pixels are divided by then")] = (1.0, 1.0, 1.0)
    layout: Annotated[
        Literal["NCTHW", "NTCHW"], Meta(description="order of the axes that it takes")
    ] = "NCTHW"
    output: Annotated[
        Literal["logits", "probabilities"], Meta(description="what it returns, [N, classes]")
    ] = "logits"
    batch: Annotated[
        int, Meta(ge=0, description="clips at once that it was exported for; 0 = any number")
    ] = 0


class PythonFileParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of ``python-file``."""

    file: Annotated[str, Meta(description="a Python file", extra={"path": True})]
    function: Annotated[
        str, Meta(description="name of a function in it that returns a classifier")
    ] = "model"
    arguments: Annotated[
        dict[str, Any], Meta(description="what the function is called with, by name")
    ] = field(default_factory=dict)


class TransformersVideoParams(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Parameters of ``transformers-video``."""

    checkpoint: Checkpoint
    revision: Revision = "main"
    frames: Annotated[int, Meta(ge=0, description="frames of a clip; 0 = as it says")] = 0
    stride: Stride = 4
    clips: Clips = 1
    policy: Policy = "uniform_clips"
    size: Annotated[int, Meta(ge=0, description="side of the crop, in pixels; 0 = as it says")] = 0
    resize: Resize = 0
    crops: Crops = 1
    mean: Annotated[
        tuple[float, float, float] | None,
        Meta(description="pixel mean on [0, 1]; none = as it says"),
    ] = None
    std: Annotated[
        tuple[float, float, float] | None,
        Meta(description="what pixels are divided by; none = as it says"),
    ] = None
