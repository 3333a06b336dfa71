"""Corruptions of whole videos: order and rate of frames, coding, transmission."""

from __future__ import annotations

from vcr_core import AttackSpec
from vcr_core.specs import Corruption, SuiteMember

from vcr_attacks.specs.suites import KINETICS400_P, MINI_KINETICS_C, MINI_SSV2_C, within

_YI = "https://arxiv.org/abs/2110.06513"
_SCHIAPPA = "https://arxiv.org/abs/2207.01398"

_YI_BOTH = (within(MINI_KINETICS_C), within(MINI_SSV2_C))
_YI_TABLES = (
    within(MINI_KINETICS_C, table="mini-kinetics-c"),
    within(MINI_SSV2_C, table="mini-ssv2-c"),
)
_SCH = (within(KINETICS400_P),)


def _corruption(
    name: str,
    summary: str,
    target: str,
    group: str,
    suites: tuple[SuiteMember, ...] = (),
    *,
    stochastic: bool = False,
    changes_length: bool = False,
    params: str = "CorruptionParams",
    requires: tuple[str, ...] = (),
) -> AttackSpec:
    return AttackSpec(
        name=name,
        summary=summary,
        target=f"vcr_attacks.corruptions.{target}",
        params=f"vcr_attacks.params.corruptions:{params}",
        requires=requires,
        reference=_SCHIAPPA if suites == _SCH else _YI,
        tags=frozenset({"corruption", group, *(member.suite.name for member in suites)}),
        example=f"vcr run --model tiny-r3d --attack {name} --set attack.severity=5 --limit 8",
        access="none",
        norms=frozenset({"none"}),
        stage="source",
        stochastic=stochastic,
        corruption=Corruption(group=group, changes_length=changes_length, member_of=suites),
    )


_AV = ("av>=18",)

SPECS: tuple[AttackSpec, ...] = (
    _corruption(
        "bit-error", "Flipped bytes in an H.264 stream", "transmission:BitError", "transmission",
        _YI_BOTH, stochastic=True, requires=_AV,
    ),
    _corruption(
        "box-jumble", "Stretches of frames in a random order", "temporal:BoxJumble", "temporal",
        _SCH, stochastic=True,
    ),
    _corruption(
        "frame-freeze", "A few frames, each held until the next", "temporal:FrameFreeze",
        "temporal", _SCH, stochastic=True,
    ),
    _corruption(
        "frame-rate", "Fewer frames a second", "temporal:FrameRate", "temporal", _YI_TABLES,
        params="TemporalParams",
    ),
    _corruption(
        "frame-sampling", "Every s-th frame alone", "temporal:FrameSampling", "temporal", _SCH,
        changes_length=True,
    ),
    _corruption("h264-abr", "H.264 of a low bit rate", "codecs:H264Abr", "digital", requires=_AV),
    _corruption(
        "h264-crf", "H.264 of a low quality", "codecs:H264Crf", "digital", _YI_BOTH, requires=_AV
    ),
    _corruption("h265-abr", "H.265 of a low bit rate", "codecs:H265Abr", "digital", requires=_AV),
    _corruption(
        "h265-crf", "H.265 of a low quality", "codecs:H265Crf", "digital", _YI_BOTH, requires=_AV
    ),
    _corruption(
        "jumble", "Frames of each stretch in a random order", "temporal:Jumble", "temporal",
        _SCH, stochastic=True,
    ),
    _corruption(
        "motion-blur-temporal", "Each frame a mean of its neighbours in time",
        "temporal:MotionBlurTemporal", "blur", _YI_TABLES, params="TemporalParams",
    ),
    _corruption("mpeg1", "MPEG-1 of a coarse quantizer", "codecs:Mpeg1", "digital", _SCH,
                requires=_AV),
    _corruption("mpeg2", "MPEG-2 of a coarse quantizer", "codecs:Mpeg2", "digital", _SCH,
                requires=_AV),
    _corruption(
        "packet-loss", "Lost packets of an H.264 stream", "transmission:PacketLoss",
        "transmission", _YI_BOTH, stochastic=True, requires=_AV,
    ),
    _corruption(
        "reverse-sampling", "Every s-th frame alone, backwards", "temporal:ReverseSampling",
        "temporal", _SCH, changes_length=True,
    ),
)  # fmt: skip
