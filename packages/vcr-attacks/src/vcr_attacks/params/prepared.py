"""Parameters of the attacks with an offline step."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from vcr_attacks.params.common import Epochs, GradientLoss, Holdout, StopRate
from vcr_attacks.params.query import Grid, Iterations, Momentum, PairSamples, ScoreLoss, Sigma


class UapParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``uap``. The radius is the threat's; training videos are ``[prepare]``'s."""

    algorithm: Annotated[
        Literal["sgd", "deepfool"],
        Meta(
            description="sgd: sign steps on mini-batches; deepfool: the original, video by video, "
            "untargeted only"
        ),
    ] = "sgd"
    epochs: Epochs = 10
    batch: Annotated[int, Meta(ge=1, description="videos of a mini-batch; sgd only")] = 8
    step: Annotated[float, Meta(gt=0, le=1, description="size of a sign step; sgd only")] = 1 / 255
    clip: Annotated[
        float,
        Meta(gt=0, description="cross-entropy beyond which a video counts no more; untargeted sgd"),
    ] = 9.0
    holdout: Holdout = 0.2
    stop_rate: StopRate = None
    candidates: Annotated[
        int, Meta(ge=2, description="most probable classes that deepfool looks at")
    ] = 10
    overshoot: Annotated[
        float, Meta(ge=0, description="how much further than the boundary deepfool goes")
    ] = 0.02
    inner_steps: Annotated[int, Meta(ge=1, description="deepfool's steps a video")] = 10


class BmtcParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``bmtc``. The radius is the threat's; training videos are ``[prepare]``'s."""

    surrogate: Annotated[
        str, Meta(description="model that stands in for the one under attack, by reference")
    ] = "tiny-r3d"
    auxiliaries: Annotated[
        list[str],
        Meta(description="further models on which a mixture should work; only while preparing"),
    ] = []
    steps: Annotated[int, Meta(ge=1, description="gradient steps on the surrogate")] = 10
    step: (
        Annotated[float, Meta(gt=0, le=1, description="step size, or auto = eps / steps")]
        | Literal["auto"]
    ) = "auto"
    gamma: Annotated[
        float, Meta(gt=0, le=1, description="share of the video in the mixture; 1 = no background")
    ] = 0.8
    consistency: Annotated[
        float,
        Meta(ge=0, description="weight of aligned gradients of neighbouring frames; 0 = off"),
    ] = 0.1
    guidance: Annotated[
        float, Meta(ge=0, description="weight of the attraction to the backgrounds' classes")
    ] = 0.0
    sample: Annotated[
        bool, Meta(description="draw backgrounds from the mixer instead of its first choice")
    ] = False
    loss: GradientLoss = "ce"
    backgrounds: Annotated[
        int, Meta(ge=1, description="backgrounds at most; one a class of the training videos")
    ] = 400
    mixer_epochs: Annotated[
        int,
        Meta(
            ge=0,
            description="passes over the training videos, the first of which only measures; "
            "0 leaves the mixer uniform",
        ),
    ] = 60
    mixer_batch: Annotated[int, Meta(ge=1, description="videos of a step of the mixer")] = 8
    mixer_rate: Annotated[float, Meta(gt=0, description="learning rate of the mixer")] = 3e-3
    mixer_momentum: Annotated[float, Meta(ge=0, lt=1, description="momentum of the mixer")] = 0.9
    reward_attack: Annotated[
        float, Meta(ge=0, description="weight of success on the surrogate")
    ] = 1
    reward_transfer: Annotated[
        float, Meta(ge=0, description="weight of success on the auxiliary models")
    ] = 0.3
    reward_consistency: Annotated[
        float, Meta(ge=0, description="weight of aligned gradients in the mixer's reward")
    ] = 0.1
    transfer_every: Annotated[
        int, Meta(ge=1, description="steps of the mixer between looks at the auxiliary models")
    ] = 5


class StylefoolParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``stylefool``. Training videos are ``[prepare]``'s."""

    styles: Annotated[
        str,
        Meta(
            description="videos: three frames of every training video, as in the paper; bundled: "
            "16 drawn textures; or a folder of pictures"
        ),
    ] = "videos"
    styliser: Annotated[
        Literal["gatys", "statistics"],
        Meta(
            description="gatys: optimised pixels with temporal consistency; statistics: each "
            "channel's mean and deviation, which needs no features"
        ),
    ] = "gatys"
    features: Annotated[
        Literal["vgg19", "filters"],
        Meta(
            description="vgg19 as in the paper, from a file; filters: oriented filters at four "
            "scales, which need no weights and are not the paper's"
        ),
    ] = "vgg19"
    weights: Annotated[
        str,
        Meta(
            description="torchvision's file of VGG19; torch's hub cache if empty",
            extra={"path": True},
        ),
    ] = ""
    style_side: Annotated[
        int, Meta(ge=16, description="shorter side in pixels that pictures are shrunk to")
    ] = 256
    strength: Annotated[
        float, Meta(gt=0, le=1, description="share of the stylised video in its mixture with it")
    ] = 1.0
    first_steps: Annotated[int, Meta(ge=1, description="steps of gatys on the first frame")] = 200
    next_steps: Annotated[int, Meta(ge=1, description="steps of gatys on every other frame")] = 100
    optimiser: Annotated[Literal["adam", "lbfgs"], Meta(description="what gatys descends with")] = (
        "adam"
    )
    lr: Annotated[
        float,
        Meta(gt=0, le=1, description="Adam's step, or L-BFGS's first trial, in the pixel range"),
    ] = 0.01
    content_weight: Annotated[float, Meta(ge=0, description="weight of the content loss")] = 10.0
    style_weight: Annotated[float, Meta(ge=0, description="weight of the style loss")] = 50.0
    temporal_weight: Annotated[
        float, Meta(ge=0, description="weight of changes to the moved frame before")
    ] = 1e3
    smoothness: Annotated[float, Meta(ge=0, description="weight of the total variation")] = 1e-3
    reach: Annotated[
        int,
        Meta(ge=0, description="largest motion between frames in pixels; 0 compares them unmoved"),
    ] = 4
    confidence_weight: Annotated[
        float,
        Meta(ge=0, description="weight of the target's probability in the choice of a style, mu"),
    ] = 1e5
    radius: Annotated[
        float,
        Meta(
            ge=0, le=1,
            description="L-infinity radius around the stylised video where threat.norm is 'none'; "
            "with 'linf' the ball is threat.eps around the original",
        ),
    ] = 0.05  # fmt: skip
    start: Annotated[
        Literal["class", "styled"],
        Meta(
            description="where a targeted search without a norm begins: at a training video of the "
            "target class, as published, or at the stylised video"
        ),
    ] = "class"
    iterations: Iterations = 200
    samples: PairSamples = 48
    sigma: Sigma = 1 / 255
    momentum: Momentum = 0.9
    grid: Grid = None
    step: (
        Annotated[
            float,
            Meta(gt=0, le=1, description="first step in the pixel range; auto = radius / 5"),
        ]
        | Literal["auto"]
    ) = "auto"
    least_step: Annotated[
        float,
        Meta(gt=0, le=1, description="share of the first step that the step never goes below"),
    ] = 0.1
    plateau: Annotated[
        int, Meta(ge=0, description="looks without progress that halve the step; 0 = never")
    ] = 20
    accept_only_better: Annotated[
        bool, Meta(description="undo a step that did not lower the loss, and halve it")
    ] = False
    loss: ScoreLoss = "auto"
