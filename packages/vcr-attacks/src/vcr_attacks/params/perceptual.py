"""Parameters of the attacks with a perceptual constraint."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from vcr_attacks.params.common import GradientLoss, Keep, Steps

Bound: TypeAlias = Annotated[
    float,
    Meta(
        gt=0,
        le=1,
        description="largest offset where threat.norm is 'none'; with 'linf' it is threat.eps",
    ),
]
ShapeWeight: TypeAlias = Annotated[
    float, Meta(ge=0, description="weight of thickness and roughness, the paper's lambda")
]
Thickness: TypeAlias = Annotated[
    float, Meta(ge=0, description="share of the mean square of the offsets, beta 1")
]
Roughness: TypeAlias = Annotated[
    float, Meta(ge=0, description="share of their changes over time, beta 2")
]
FlickerLoss: TypeAlias = Annotated[
    Literal["flicker", "ce", "margin"],
    Meta(description="flicker is the paper's hinge on probabilities, and ce when targeted"),
]


class StadvParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``stadv``."""

    steps: Steps = 20
    lr: Annotated[float, Meta(gt=0, description="Adam's step in pixels")] = 0.1
    tau: Annotated[float, Meta(ge=0, description="weight of the flow's roughness")] = 1.0
    flow_loss: Annotated[
        Literal["mean", "sum"],
        Meta(description="roughness per pixel and neighbour, or summed as in the paper"),
    ] = "mean"
    scope: Annotated[
        Literal["clip", "frame"], Meta(description="one flow for all frames, or one per frame")
    ] = "clip"
    temporal: Annotated[
        float,
        Meta(ge=0, description="weight, next to the roughness, of changes between frames' flows"),
    ] = 1.0
    max_flow: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="largest displacement along an axis, in pixels"),
    ] = None
    loss: GradientLoss = "margin"
    keep: Keep = "best"


class FlickeringParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``flickering``."""

    steps: Steps = 200
    lr: Annotated[float, Meta(gt=0, le=1, description="Adam's step in the pixel range")] = 0.005
    bound: Bound = 0.2
    weight: ShapeWeight = 1.0
    thickness: Thickness = 0.5
    roughness: Roughness = 0.5
    loss: FlickerLoss = "flicker"
    keep: Keep = "best"


class KorhonenParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``korhonen``."""

    steps: Steps = 20
    lr: Annotated[float, Meta(gt=0, le=1, description="Adam's step in the pixel range")] = 0.5 / 255
    map_on: Annotated[
        Literal["update", "gradient", "eps"],
        Meta(
            description="what the activity map scales: Adam's step, the gradient before Adam (as "
            "published; Adam divides it out again), or threat.eps of each pixel"
        ),
    ] = "update"
    map_smooth_t: Annotated[
        bool, Meta(description="take the largest map of each frame and its neighbours in time")
    ] = False
    loss: GradientLoss = "ce"
    keep: Keep = "best"


class ZhangParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``zhang-ssim`` and its relatives."""

    steps: Steps = 20
    lr: Annotated[float, Meta(gt=0, le=1, description="Adam's step in the pixel range")] = 0.005
    weight: Annotated[float, Meta(ge=0, description="weight of the distance, lambda")] = 1.0
    weight_search: Annotated[
        Literal["fixed", "bisect"],
        Meta(
            description="bisect looks, from weight on, for each video's largest weight at which it "
            "falls; needs protocol.stop = 'budget'"
        ),
    ] = "fixed"
    rounds: Annotated[int, Meta(ge=1, description="runs of a bisection")] = 5
    border: Annotated[
        int, Meta(ge=0, description="pixels along the edges of a frame that do not change")
    ] = 0
    chunk_frames: Annotated[
        int, Meta(ge=1, description="frames whose distance is computed at once; changes no result")
    ] = 16
    loss: GradientLoss = "ce"
    keep: Keep = "best"

    def __post_init__(self) -> None:
        """Refuse a bisection that has nothing to scale."""
        if self.weight_search == "bisect" and self.weight == 0:
            raise ValueError("weight_search = 'bisect' scales weight, which is 0")


class ZhangDistsParams(ZhangParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``zhang-dists``."""

    backbone: Annotated[
        str, Meta(description="torchvision's file of the backbone; torch's hub cache if empty")
    ] = ""
    chunk_frames: Annotated[
        int, Meta(ge=1, description="frames whose distance is computed at once; changes no result")
    ] = 4


class ZhangLpipsParams(ZhangDistsParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``zhang-lpips``."""

    net: Annotated[Literal["alex", "vgg"], Meta(description="backbone of LPIPS")] = "vgg"


class SsahParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``ssah``."""

    steps: Steps = 20
    lr: Annotated[
        float, Meta(gt=0, description="Adam's step on arctanh(2x - 1), where pixels are free")
    ] = 0.01
    weight: Annotated[
        float, Meta(ge=0, description="weight of the change of low frequencies, lambda")
    ] = 0.1
    margin: Annotated[float, Meta(ge=0, description="m in the weights of the two similarities")] = (
        0.2
    )
    features: Annotated[
        str,
        Meta(
            description="layer whose activations are compared; '' is the model's last feature "
            "layer, 'logits' its log-probabilities, for models without feature layers"
        ),
    ] = ""
    negatives: Annotated[
        Literal["bank", "own", "batch"],
        Meta(
            description="what features move towards: those of a prepared reference video, the "
            "least similar or the surest one of the target class; the least similar of the video "
            "reversed, turned, still and in inverted colours; or the least similar other video of "
            "the batch"
        ),
    ] = "bank"
    temporal: Annotated[bool, Meta(description="low frequencies over pairs of frames as well")] = (
        False
    )
    keep: Keep = "best"


class FramingParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``framing``."""

    steps: Steps = 60
    lr: Annotated[
        float, Meta(gt=0, description="Adam's step on a, where a border pixel is sigmoid(a)")
    ] = 0.1
    width: Annotated[int, Meta(ge=1, description="width of the border in pixels")] = 4
    scope: Annotated[
        Literal["clip", "frame"], Meta(description="one border for all frames, or one per frame")
    ] = "clip"
    loss: GradientLoss = "ce"
    keep: Keep = "best"


class PatchParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``patch``."""

    steps: Steps = 100
    lr: Annotated[
        float, Meta(gt=0, description="Adam's step on a, where a patch pixel is sigmoid(a)")
    ] = 0.1
    area: Annotated[
        float, Meta(gt=0, lt=1, description="share of a frame that the square covers")
    ] = 0.05
    place: Annotated[
        Literal["random", "center"],
        Meta(description="drawn for each video, or the middle of the frame"),
    ] = "random"
    scope: Annotated[
        Literal["clip", "frame"], Meta(description="the same in all frames, or one per frame")
    ] = "clip"
    loss: GradientLoss = "ce"
    keep: Keep = "best"
