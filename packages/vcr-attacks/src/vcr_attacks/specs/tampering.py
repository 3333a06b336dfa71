"""Tampering operators: nobody attacks, one segment of the video is changed before sampling."""

from __future__ import annotations

from vcr_core import AttackSpec

_PAPER = "https://arxiv.org/abs/2412.19794"


def _operator(
    name: str,
    summary: str,
    target: str,
    params: str,
    *,
    stochastic: bool = False,
    requires: tuple[str, ...] = (),
    suite: str = "",
) -> AttackSpec:
    return AttackSpec(
        name=name,
        summary=summary,
        target=f"vcr_attacks.tampering.{target}",
        params=f"vcr_attacks.params.tampering:{params}",
        requires=requires,
        reference=_PAPER,
        tags=frozenset({"tampering", *filter(None, [suite])}),
        example=f"vcr run --model tiny-r3d --attack {name} --limit 8",
        access="none",
        norms=frozenset({"none"}),
        stage="source",
        stochastic=stochastic,
    )


SPECS: tuple[AttackSpec, ...] = (
    _operator("blur", "A segment is blurred", "pixels:Blur", "SoftenParams"),
    _operator("drop", "A segment is cut out", "cuts:Drop", "CutParams", suite="mvt5"),
    _operator("freeze", "The first frame of a segment is held", "cuts:Freeze", "TamperParams"),
    _operator(
        "jpeg", "A segment is compressed frame by frame", "pixels:Jpeg", "CompressParams",
        requires=("pillow>=10",),
    ),
    _operator(
        "local-mask", "A rectangle covers a part of a segment", "pixels:LocalMask",
        "LocalMaskParams", stochastic=True, suite="mvt8",
    ),
    _operator("mask", "A segment is black", "pixels:Mask", "MaskParams", suite="mvt5"),
    _operator(
        "noise", "Gaussian noise in a segment", "pixels:Noise", "NoiseParams", stochastic=True,
        suite="mvt8",
    ),
    _operator("repeat", "A segment is shown twice", "cuts:Repeat", "RepeatParams", suite="mvt5"),
    _operator("reverse", "A segment is played backwards", "cuts:Reverse", "TamperParams"),
    _operator("rotate", "A segment is turned by 180 degrees", "pixels:Rotate", "TurnParams",
              suite="mvt5"),
    _operator(
        "shuffle", "The frames of a segment in a random order", "cuts:Shuffle", "TamperParams",
        stochastic=True, suite="mvt8",
    ),
    _operator("speed", "A segment runs faster or slower", "cuts:Speed", "SpeedParams"),
    _operator(
        "substitute", "A segment is replaced by frames of another video", "pixels:Substitute",
        "SubstituteParams", stochastic=True, suite="mvt5",
    ),
)  # fmt: skip
