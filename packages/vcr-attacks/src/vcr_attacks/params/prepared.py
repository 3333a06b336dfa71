"""Parameters of the attacks with an offline step."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from vcr_attacks.params.common import GradientLoss


class UapParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``uap``. The radius is the threat's; training videos are ``[prepare]``'s."""

    algorithm: Annotated[
        Literal["sgd", "deepfool"],
        Meta(
            description="sgd: sign steps on mini-batches; deepfool: the original, video by video, "
            "untargeted only"
        ),
    ] = "sgd"
    epochs: Annotated[int, Meta(ge=1, description="passes over the training videos, at most")] = 10
    batch: Annotated[int, Meta(ge=1, description="videos of a mini-batch; sgd only")] = 8
    step: Annotated[float, Meta(gt=0, le=1, description="size of a sign step; sgd only")] = 1 / 255
    clip: Annotated[
        float,
        Meta(gt=0, description="cross-entropy beyond which a video counts no more; untargeted sgd"),
    ] = 9.0
    holdout: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="share of the training videos that only choose the best pass; rounded down",
        ),
    ] = 0.2
    stop_rate: (
        Annotated[float, Meta(gt=0, le=1, description="fooling rate at which training ends")] | None
    ) = None
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
        int, Meta(ge=0, description="passes over the training videos; 0 leaves the mixer uniform")
    ] = 20
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
