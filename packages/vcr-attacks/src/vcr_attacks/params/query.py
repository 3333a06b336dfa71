"""Parameters of the attacks that ask for scores or labels."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

ScoreLoss: TypeAlias = Annotated[
    Literal["auto", "margin", "ce"],
    Meta(description="what decides; auto is margin, or ce when targeted"),
]
Iterations: TypeAlias = Annotated[int, Meta(ge=1, description="steps of the search")]
PairSamples: TypeAlias = Annotated[
    int, Meta(ge=2, multiple_of=2, description="queries per estimate, two a pair")
]
Sigma: TypeAlias = Annotated[
    float, Meta(gt=0, le=1, description="standard deviation of the noise, in the pixel range")
]
Momentum: TypeAlias = Annotated[float, Meta(ge=0, lt=1, description="weight of earlier estimates")]
Step: TypeAlias = (
    Annotated[float, Meta(gt=0, description="first step in units of the norm, or auto")]
    | Literal["auto"]
)
Grid: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(description="cells of equal noise along height and width; absent = one per pixel"),
]

Times: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(description="groups of frames that share values; absent = every frame on its own"),
]
Probe: TypeAlias = Annotated[
    float, Meta(gt=0, le=1, description="root mean square of a probe, in the pixel range")
]

Motion: TypeAlias = Literal[
    "translation", "dilation", "rigid", "translation-dilation", "similarity", "affine"
]
"""Motions that Geo-TRAP's noise makes."""

Temporal: TypeAlias = Literal["fold", "tube", "mixed", "window"]
"""How the squares of the Square Attack extend over time."""


class SquareParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``square``. Norm and radius are the threat's."""

    iterations: Annotated[
        int, Meta(ge=1, description="proposals; one query each, and one for the start")
    ] = 200
    p_init: Annotated[
        float, Meta(gt=0, le=1, description="share of a frame that the first squares cover")
    ] = 0.8
    temporal: Annotated[
        Temporal,
        Meta(
            description="fold: one square, with signs of its own in every frame; tube: the same "
            "signs in all frames; mixed: one or the other at random; "
            "window: as tube, in a random half of the frames"
        ),
    ] = "mixed"
    loss: ScoreLoss = "auto"


class NesParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``nes``. Norm and radius are the threat's."""

    iterations: Iterations = 200
    samples: PairSamples = 50
    sigma: Sigma = 1 / 255
    momentum: Momentum = 0.9
    step: Step = "auto"
    least_step: Annotated[
        float,
        Meta(gt=0, le=1, description="share of the first step that the step never goes below"),
    ] = 0.25
    plateau: Annotated[
        int, Meta(ge=0, description="looks without progress that halve the step; 0 = never")
    ] = 5
    grid: Grid = None
    time_shared: Annotated[bool, Meta(description="the same noise in every frame")] = False
    starts: Annotated[
        int, Meta(ge=1, description="points to choose the start from: the clean and random ones")
    ] = 1
    accept_only_better: Annotated[
        bool, Meta(description="undo a step that did not lower the loss, and halve it")
    ] = False
    loss: ScoreLoss = "auto"


class NesTiledParams(NesParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``nes-tiled``: those of ``nes`` with other defaults."""

    grid: Grid = 8
    starts: Annotated[
        int, Meta(ge=1, description="points to choose the start from: the clean and random ones")
    ] = 4
    accept_only_better: Annotated[
        bool, Meta(description="undo a step that did not lower the loss, and halve it")
    ] = True


class GradestParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``gradest``. The radius is the threat's."""

    iterations: Iterations = 200
    motion: Annotated[Motion, Meta(description="how the noise moves from frame to frame")] = (
        "translation-dilation"
    )
    spread: Annotated[
        float, Meta(gt=0, description="weight of the noise beside the slope so far")
    ] = 0.1
    probe: Probe = 1 / 255
    rate: Annotated[float, Meta(gt=0, description="weight of a correction of the slope")] = 0.1
    step: Step = "auto"
    loss: Annotated[
        Literal["auto", "flicker", "margin", "ce"],
        Meta(description="what decides; auto is flicker, or ce when targeted"),
    ] = "auto"


class SimbaParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``simba``. Norm and radius are the threat's."""

    iterations: Annotated[
        int, Meta(ge=1, description="directions tried; one or two queries each")
    ] = 500
    basis: Annotated[
        Literal["dct", "pixel"], Meta(description="low frequencies or single pixels")
    ] = "dct"
    grid: Annotated[
        int, Meta(ge=1, description="frequencies along height and width (basis dct)")
    ] = 14
    times: Annotated[int, Meta(ge=1, description="frequencies over time (basis dct)")] = 4
    step: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="a direction's largest value (linf) or length (l2); "
                "auto = eps for linf, eps / 8 for l2",
            ),
        ]
        | Literal["auto"]
    ) = "auto"
    loss: Annotated[
        Literal["auto", "margin", "ce", "prob"],
        Meta(description="what has to fall; auto is margin, or ce when targeted"),
    ] = "auto"


class BanditsParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``bandits``. The radius is the threat's."""

    iterations: Iterations = 200
    grid: Grid = 16
    times: Times = None
    exploration: Annotated[
        float, Meta(gt=0, description="size of the noise beside the prior's")
    ] = 1.0
    probe: Probe = 1 / 255
    rate: Annotated[
        float, Meta(gt=0, description="how far a pair of ordinary weight moves the prior")
    ] = 0.05
    step: Step = "auto"
    loss: ScoreLoss = "auto"


class ParsimoniousParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``parsimonious``. The radius is the threat's."""

    queries: Annotated[int, Meta(ge=1, description="queries of one video at most")] = 1000
    block: Annotated[int, Meta(ge=1, description="side of the first blocks, in pixels")] = 32
    least_block: Annotated[int, Meta(ge=1, description="side below which no block is halved")] = 4
    times: Times = 4
    batch: Annotated[int, Meta(ge=1, description="blocks that are compared with each other")] = 64
    chunk: Annotated[int, Meta(ge=1, description="candidates asked for in one call")] = 16
    loss: ScoreLoss = "auto"

    def __post_init__(self) -> None:
        """Refuse blocks that would have to grow."""
        if self.least_block > self.block:
            raise ValueError("least_block must not be larger than block")


class VbadParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``vbad``. The radius is the threat's."""

    iterations: Iterations = 200
    samples: Annotated[
        int, Meta(ge=2, multiple_of=2, description="queries per estimate, two a pair")
    ] = 48
    sigma: Annotated[
        float, Meta(gt=0, le=1, description="standard deviation of the weights, in the pixel range")
    ] = 1 / 255
    patches: Annotated[
        int, Meta(ge=1, description="patches along height and width of every frame")
    ] = 8
    tentative: Annotated[
        str,
        Meta(
            min_length=1,
            description="where the tentative signs come from: random, or an image network as in "
            "i2v",
        ),
    ] = "random"
    texture: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="cells of random signs along height and width; absent = pixels"),
    ] = 32
    depth: Annotated[
        int, Meta(ge=1, description="layer of the image network, from 1 at the pixels to 4")
    ] = 4
    size: Annotated[
        int,
        Meta(ge=1, description="short side that larger frames are resized to for the network"),
    ] = 224
    step: Step = "auto"
    least_step: Annotated[
        float,
        Meta(gt=0, le=1, description="share of the first step that the step never goes below"),
    ] = 0.25
    plateau: Annotated[
        int, Meta(ge=0, description="looks without progress that halve the step; 0 = never")
    ] = 5
    loss: ScoreLoss = "auto"


class TenadParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``tenad``."""

    steps: Annotated[int, Meta(ge=1, description="steps of the direction")] = 20
    starts: Annotated[int, Meta(ge=1, description="random directions to choose the first from")] = 8
    directions: Annotated[int, Meta(ge=1, description="finite differences per step")] = 3
    difference: Annotated[float, Meta(gt=0, description="length of a finite difference")] = 0.01
    rate: Annotated[float, Meta(gt=0, description="length of a step, halved when it fails")] = 0.2
    stride: Annotated[
        int, Meta(ge=1, description="pixels between free values of height and width")
    ] = 32
    first: Annotated[
        float, Meta(gt=0, le=1, description="first factor, in the pixel range; doubled from there")
    ] = 16 / 255
    reach: Annotated[float, Meta(gt=0, description="largest factor, in the pixel range")] = 2.0


class MeSamplerParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``me-sampler``. The radius is the threat's."""

    iterations: Iterations = 200
    block: Annotated[
        int, Meta(ge=1, description="side of the blocks whose motion is looked for, in pixels")
    ] = 8
    reach: Annotated[
        int, Meta(ge=0, description="farthest motion from frame to frame, in pixels")
    ] = 4
    spread: Annotated[
        float, Meta(gt=0, description="weight of the noise beside the slope so far")
    ] = 0.1
    probe: Probe = 1 / 255
    rate: Annotated[float, Meta(gt=0, description="weight of a correction of the slope")] = 0.1
    step: Step = "auto"
    loss: ScoreLoss = "auto"
