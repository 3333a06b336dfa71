"""Parameters of the corruptions."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class CorruptionParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The parameter that every corruption has."""

    severity: Annotated[int, Meta(ge=0, le=5, description="0 changes nothing, 5 is worst")] = 3


class TableParams(CorruptionParams, frozen=True, kw_only=True):
    """Parameters of noise whose strength two publications tabulate differently."""

    table: Annotated[
        Literal["imagenet-c", "kinetics400-p"],
        Meta(description="whose five strengths"),
    ] = "imagenet-c"


class ContrastParams(CorruptionParams, frozen=True, kw_only=True):
    """Parameters of ``contrast``."""

    table: Annotated[
        Literal["imagenet-c", "mini-ssv2-c"],
        Meta(description="whose five strengths"),
    ] = "imagenet-c"


class TemporalParams(CorruptionParams, frozen=True, kw_only=True):
    """Parameters of corruptions that are gentler for videos in which time matters more."""

    table: Annotated[
        Literal["mini-kinetics-c", "mini-ssv2-c"],
        Meta(description="whose five strengths"),
    ] = "mini-kinetics-c"
