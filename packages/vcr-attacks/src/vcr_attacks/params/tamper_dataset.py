"""Parameters of the dataset ``tamper``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from vcr_attacks.params.tampering import TamperParams


class TamperDatasetParams(TamperParams, frozen=True, kw_only=True):
    """Which videos are tampered with, and how; all effects of a video have the same segment."""

    base: Annotated[
        str | dict[str, Any],
        Meta(description="dataset to tamper with: a reference, or a table of name and parameters"),
    ] = "motion"
    effects: Annotated[
        Literal["mvt5", "mvt8", "all"] | list[str],
        Meta(description="a suite of effects, or names of effects; each adds a video a source"),
    ] = "mvt5"
    operators: Annotated[
        dict[str, dict[str, Any]], Meta(description="parameters of single effects, by name")
    ] = field(default_factory=dict)
    seed: Annotated[int, Meta(ge=0, description="seed of donors, places and noise")] = 0
