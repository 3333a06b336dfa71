"""Parameters of the defenses that purify with a diffusion model."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from vcr_defenses.params.common import MergeRule, Votes

FrameNoise: TypeAlias = Annotated[
    Literal["independent", "shared"],
    Meta(description="noise drawn for every frame, or the same for all frames of a video"),
]


class FrameDenoiserParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which diffusion model of single frames to use, and how frames get into it."""

    denoiser: Annotated[
        str,
        Meta(
            min_length=1,
            description="bundled 'motion-ddpm', a folder in diffusers' layout, "
            "a Hugging Face name in the local cache, or a guided-diffusion .pt file",
        ),
    ] = "motion-ddpm"
    fit: Annotated[
        Literal["resize", "tile", "native"],
        Meta(
            description="resize: to the denoiser's size and back, if the frame is larger; "
            "tile: at full size through overlapping tiles; native: at full size at once"
        ),
    ] = "resize"
    size: Annotated[
        int,
        Meta(
            ge=0,
            description="side of the square or the tile; 0 = what the denoiser was trained at",
        ),
    ] = 0
    overlap: Annotated[
        float, Meta(ge=0, le=0.75, description="part of a tile's side that the next one shares")
    ] = 0.25
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"], Meta(description="precision of the network")
    ] = "float32"
    chunk: Annotated[
        int, Meta(ge=1, description="frames or tiles that pass the network at once")
    ] = 16

    def __post_init__(self) -> None:
        """Refuse a size that would not be used."""
        if self.fit == "native" and self.size:
            raise ValueError("fit = 'native' leaves frames as they are, so size must stay 0")


class FramePurifierParams(
    FrameDenoiserParams, forbid_unknown_fields=True, frozen=True, kw_only=True
):
    """What all purifiers of single frames share."""

    rounds: Annotated[
        int, Meta(ge=1, le=1000, description="how often noise is added and removed again")
    ] = 1
    noise: FrameNoise = "independent"
    votes: Votes = 1
    merge: MergeRule = "majority"


class DiffPureParams(FramePurifierParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``diffpure``."""

    noise_steps: Annotated[
        int, Meta(ge=0, description="training steps of noise that are added; 0 changes nothing")
    ] = 50
    denoise_steps: Annotated[
        int,
        Meta(ge=0, description="steps that take it away, evenly spaced; 0 = all, as published"),
    ] = 5
    sampler: Annotated[
        Literal["ddpm", "ddim"], Meta(description="random ancestral steps or deterministic ones")
    ] = "ddpm"


class FreqPureParams(FramePurifierParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``freqpure``. Radii count Fourier frequencies at the denoiser's size."""

    noise_steps: Annotated[
        int, Meta(ge=0, description="training steps of noise that are added; 0 changes nothing")
    ] = 50
    denoise_steps: Annotated[
        int, Meta(ge=0, description="steps that take it away, evenly spaced; 0 = every one")
    ] = 5
    sampler: Annotated[
        Literal["ddpm", "ddim"], Meta(description="random ancestral steps or deterministic ones")
    ] = "ddpm"
    amplitude_radius: Annotated[
        float, Meta(ge=0, description="amplitudes up to this frequency come from the reference")
    ] = 10.0
    phase_radius: Annotated[
        float, Meta(ge=0, description="phases up to this frequency are held near the reference's")
    ] = 10.0
    phase: Annotated[
        Literal["project", "replace"],
        Meta(description="project: into the reference's phase ± delta; replace: by it"),
    ] = "project"
    delta: Annotated[
        float, Meta(ge=0, description="how far a projected phase may be away, in radians")
    ] = 0.3
    ref: Annotated[
        Literal["denoised", "input"],
        Meta(description="reference: the input noised and denoised at once, or the input itself"),
    ] = "denoised"
    ref_noise_steps: Annotated[
        int, Meta(ge=1, description="training steps of noise that a denoised reference gets")
    ] = 50


class VideopureParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``videopure``. Guidance counts in mode ``videopure`` only."""

    denoiser: Annotated[
        str,
        Meta(
            min_length=1,
            description="bundled 'motion-video' or 'motion-ddpm', a folder in diffusers' layout, "
            "or a Hugging Face name in the local cache",
        ),
    ] = "motion-video"
    mode: Annotated[
        Literal["videopure", "ddim-inversion", "ddim", "ddpm"],
        Meta(
            description="the whole method; without common noise and guidance; "
            "noise added and taken away by DDIM; or by DDPM"
        ),
    ] = "videopure"
    num_inference_steps: Annotated[
        int, Meta(ge=1, description="DDIM steps that would cover the whole schedule")
    ] = 50
    invert_steps: Annotated[
        int, Meta(ge=0, description="how many of them are taken; 0 = only encode and decode")
    ] = 6
    broadcast_frame: Annotated[
        int, Meta(ge=0, description="frame whose predicted noise all frames get in the inversion")
    ] = 0
    w_temp: Annotated[
        float, Meta(ge=0, description="weight of the differences between neighbours along the flow")
    ] = 5.0
    w_sp: Annotated[
        float, Meta(ge=0, description="weight of the squared distance from the encoded input")
    ] = 800.0
    sign_sp: Annotated[
        Literal[1, -1],
        Meta(description="1: that distance grows, as the published code has it; -1: it shrinks"),
    ] = 1
    scale: Annotated[float, Meta(ge=0, description="length of the guided step; 0 = none")] = 4.0
    guide_steps: Annotated[int, Meta(ge=1, description="parts that the guided step is made in")] = 1
    strength: Annotated[
        Literal["published-size", "as-coded"],
        Meta(
            description="published-size: pixels move as far as in a clip of 32 x 224 x 224; "
            "as-coded: further the smaller the clip"
        ),
    ] = "published-size"
    flow: Annotated[
        Literal["raft-large", "raft-small", "ilk", "dis", "farneback", "zero"],
        Meta(
            description="optical flow: RAFT needs torchvision and its weights, ilk scikit-image, "
            "dis and farneback OpenCV; zero compares frames in place"
        ),
    ] = "zero"
    flow_weights: Annotated[
        str, Meta(description="file of RAFT's weights; empty = torch's hub cache")
    ] = ""
    flow_longest: Annotated[
        int, Meta(ge=128, description="flow of larger frames is estimated at this longer side")
    ] = 512
    vote: Annotated[
        bool, Meta(description="classify every candidate; false = the last one only")
    ] = True
    merge: MergeRule = "majority"
    side: Annotated[
        int, Meta(ge=0, description="shorter side at which the model works; 0 = the clip's own")
    ] = 0
    frame_chunk: Annotated[
        int, Meta(ge=1, description="frames that pass the autoencoder at once; bounds memory")
    ] = 16
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"], Meta(description="precision of the networks")
    ] = "float32"
    prompt: Annotated[str, Meta(description="text for the model")] = ""
    variant: Annotated[
        str, Meta(description="middle part of the weights' file names, for instance fp16")
    ] = ""

    def __post_init__(self) -> None:
        """Refuse more steps than there are."""
        if self.invert_steps > self.num_inference_steps:
            raise ValueError(
                f"invert_steps {self.invert_steps} is more than "
                f"num_inference_steps {self.num_inference_steps}"
            )
