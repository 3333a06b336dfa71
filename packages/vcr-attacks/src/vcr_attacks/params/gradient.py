"""Parameters of the attacks that step along gradients."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from vcr_attacks.params.common import GradientLoss, Keep, Steps

SignStep: TypeAlias = (
    Annotated[float, Meta(gt=0, le=1, description="step size '1/255', or auto = 2.5 * eps / steps")]
    | Literal["auto"]
)
Decay: TypeAlias = Annotated[
    float, Meta(ge=0, description="weight of what was accumulated; 0 is no momentum")
]


class IfgsmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``ifgsm``. The radius is the threat's."""

    steps: Steps = 20
    step: SignStep = 1 / 255
    loss: GradientLoss = "ce"
    keep: Keep = "best"


class PgdParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``pgd``. Norm and radius are the threat's."""

    steps: Steps = 20
    step: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="step in units of the norm, or auto = eps / 4, more below 10 steps",
            ),
        ]
        | Literal["auto"]
    ) = "auto"
    random_start: Annotated[
        bool, Meta(description="start at a random point of the ball instead of the clean video")
    ] = True
    restarts: Annotated[
        int, Meta(ge=1, description="runs from new starts, for videos not yet broken")
    ] = 1
    loss: GradientLoss = "ce"
    keep: Keep = "best"

    def __post_init__(self) -> None:
        """Refuse restarts that would all be the same."""
        if self.restarts > 1 and not self.random_start:
            raise ValueError("restarts above 1 need random_start = true: every run would be equal")


class FgsmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``fgsm``. Norm and radius are the threat's."""

    random_start: Annotated[
        bool,
        Meta(description="R+FGSM: half of the radius in a random direction, half along the "
        "gradient there"),
    ] = False  # fmt: skip
    loss: GradientLoss = "ce"
    keep: Keep = "best"


class MifgsmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``mifgsm``. The radius is the threat's."""

    steps: Steps = 20
    step: SignStep = 1 / 255
    decay: Decay = 1.0
    normalize: Annotated[
        Literal["l1", "none"],
        Meta(description="what each gradient is divided by before it is accumulated"),
    ] = "l1"
    norm_scope: Annotated[
        Literal["video", "frame"],
        Meta(description="whether the norm is over the whole video or over each frame"),
    ] = "video"
    loss: GradientLoss = "ce"
    keep: Keep = "best"


class ApgdParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``apgd``. Norm and radius are the threat's; steps size themselves."""

    steps: Steps = 20
    restarts: Annotated[
        int, Meta(ge=1, description="runs from new starts, for videos not yet broken")
    ] = 1
    loss: Annotated[
        Literal["ce", "dlr", "margin", "dlr-targeted"],
        Meta(
            description="what is minimised; dlr-targeted pulls an untargeted contest towards one "
            "wrong class after another"
        ),
    ] = "ce"
    target_classes: Annotated[
        int, Meta(ge=1, description="wrong classes that dlr-targeted tries, the likeliest first")
    ] = 9
    rho: Annotated[
        float,
        Meta(ge=0, le=1, description="share of steps since a checkpoint that have to lower the "
        "loss, else the step is halved"),
    ] = 0.75  # fmt: skip


class CwParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``cw``."""

    rounds: Annotated[
        int, Meta(ge=1, description="rounds of the search for the weight of success")
    ] = 9
    steps: Annotated[int, Meta(ge=1, description="gradient steps per round")] = 100
    lr: Annotated[float, Meta(gt=0, description="step of Adam on the arc tangent of pixels")] = 0.01
    weight: Annotated[
        float, Meta(gt=0, description="first weight of success against distance, ten times as much "
        "in the next round while it fails")
    ] = 1e-3  # fmt: skip
    kappa: Annotated[
        float, Meta(ge=0, description="margin in logits that a success has to have")
    ] = 0.0
    abort_early: Annotated[
        bool, Meta(description="end a round when a tenth of its steps brought no progress")
    ] = True


class DeepFoolParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``deepfool``."""

    steps: Annotated[int, Meta(ge=1, description="linearisations at most")] = 50
    classes: Annotated[
        int, Meta(ge=2, description="likeliest classes that are looked at, the label's included")
    ] = 10
    overshoot: Annotated[
        float, Meta(ge=0, description="share of the step that is added to cross the boundary")
    ] = 0.02


class FabParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``fab``."""

    steps: Annotated[int, Meta(ge=1, description="steps of a run")] = 20
    boundary: Annotated[
        Literal["each", "nearest"],
        Meta(
            description="each: a run to the boundary of one other class after another (FAB-T); "
            "nearest: in every step to the nearest of them, at a gradient for each (FAB)"
        ),
    ] = "each"
    target_classes: Annotated[
        int, Meta(ge=1, description="other classes that are looked at, the likeliest first")
    ] = 3
    restarts: Annotated[
        int,
        Meta(ge=1, description="runs; the first from the clean video, others from random points"),
    ] = 1
    bias: Annotated[
        float, Meta(ge=0, le=1, description="largest weight of the clean video, alpha max")
    ] = 0.1
    overshoot: Annotated[
        float, Meta(ge=1, description="share of the way to the boundary that is gone, eta")
    ] = 1.05
    back: Annotated[
        float,
        Meta(gt=0, lt=1, description="share of a change that is kept after a success, beta"),
    ] = 0.9
    distance: Annotated[
        Literal["l2", "linf"],
        Meta(description="what is small where threat.norm is 'none'; else it is that norm"),
    ] = "l2"
    smallest: Annotated[
        bool, Meta(description="search on for a smaller change; off: as the run's stop rule says")
    ] = True


class AutoAttackParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``autoattack``. Norm and radius are the threat's."""

    version: Annotated[
        Literal["fast", "standard", "rand"],
        Meta(
            description="fast: APGD-CE and APGD-T with 20 steps, 200 queries of Square; standard: "
            "100 steps, 9 classes, FAB-T, 5000 queries; rand: APGD-CE, APGD-DLR, set protocol.eot"
        ),
    ] = "fast"


class OneFrameParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``one-frame``. The radius is the threat's."""

    frame: Annotated[
        Literal["best", "gradient"] | Annotated[int, Meta(ge=0)],
        Meta(description="try every frame, the one with the largest gradient, or a position"),
    ] = "best"
    steps: Steps = 20
    step: SignStep = 1 / 255
    loss: GradientLoss = "ce"


class FrameSaliencyParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``frame-saliency``. The radius is the threat's."""

    refresh: Annotated[
        bool, Meta(description="take the gradient anew after each frame that was moved")
    ] = False
    loss: GradientLoss = "ce"


class SparseParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``sparse``."""

    frames: Annotated[
        Annotated[str, Meta(pattern=r"^(all|(first|every|saliency):[1-9][0-9]*)$")] | list[int],
        Meta(description="frames that may change: all, first:3, every:4, saliency:2 or positions"),
    ] = "all"
    weight: Annotated[
        Annotated[float, Meta(ge=0)] | Literal["auto"],
        Meta(description="weight of the l2,1 penalty, or auto: the largest one that succeeds"),
    ] = "auto"
    rounds: Annotated[int, Meta(ge=1, description="rounds of the search with weight auto")] = 5
    steps: Annotated[int, Meta(ge=1, description="gradient steps per round")] = 100
    lr: Annotated[float, Meta(gt=0, description="step of Adam in the pixel range [0, 1]")] = 0.01
    loss: GradientLoss = "ce"


class TtParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``tt``. The radius is the threat's."""

    surrogate: Annotated[
        str, Meta(min_length=1, description="model whose gradients are used, of equal clip length")
    ] = "tiny-r3d"
    steps: Steps = 10
    step: (
        Annotated[float, Meta(gt=0, le=1, description="step size '1/255'; even = eps / steps")]
        | Literal["even", "auto"]
    ) = "even"
    kernel: Annotated[
        int, Meta(ge=1, description="number of shifts, odd: from -kernel // 2 to kernel // 2")
    ] = 15
    weights: Annotated[
        Literal["gaussian", "linear", "uniform"], Meta(description="weight of each shift")
    ] = "gaussian"
    shifts: Annotated[
        Literal["adjacent", "remote", "random"],
        Meta(description="by 1, 2, … frames; half of the video further; or drawn anew each step"),
    ] = "adjacent"
    decay: Annotated[
        float,
        Meta(ge=0, description="momentum, on gradients normalised per frame; 0 for none"),
    ] = 0.0
    loss: GradientLoss = "ce"

    def __post_init__(self) -> None:
        """Refuse a kernel without a middle."""
        if self.kernel % 2 == 0:
            raise ValueError("kernel must be odd: its middle is the video as it is")


class AmifgsmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``amifgsm``. A video's radius is ``1 / (8 quality)``, within the threat's."""

    quality: Annotated[
        str,
        Meta(
            pattern=r"^(niqe|[\w.]+:\w+)$",
            description="niqe, or package.module:function from frames to a number, "
            "lower for more natural ones",
        ),
    ] = "niqe"
    eps_min: Annotated[float, Meta(gt=0, le=1, description="smallest radius of a video")] = 1 / 255
    eps_max: Annotated[float, Meta(gt=0, le=1, description="largest radius of a video")] = 16 / 255
    steps: Steps = 20
    step: SignStep = 1 / 255
    decay: Decay = 1.0
    normalize: Annotated[
        Literal["l1", "none"],
        Meta(description="what each gradient is divided by before it is accumulated"),
    ] = "l1"
    loss: GradientLoss = "ce"
    keep: Keep = "best"

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        if self.eps_min > self.eps_max:
            raise ValueError("eps_min is above eps_max")
