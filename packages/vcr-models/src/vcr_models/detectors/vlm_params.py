"""Parameters of ``vlm-detector``; msgspec only."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from vcr_models.files.params import Checkpoint, Revision

Effect: TypeAlias = Literal[
    "drop", "mask", "rotate", "substitute", "repeat", "noise", "local-mask", "shuffle",
    "freeze", "reverse", "speed", "blur", "jpeg",
]  # fmt: skip


class VlmDetectorParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which chat model to ask, about which effects, and how frames get into it."""

    checkpoint: Checkpoint
    revision: Revision = "main"
    frames: Annotated[
        int, Meta(ge=1, le=256, description="frames shown, the middles of equal parts of the video")
    ] = 8
    effects: Annotated[
        Literal["mvt5", "mvt8", "all"] | list[Effect],
        Meta(
            description="what the second question offers: a suite of effects, or a list; as in "
            "the dataset"
        ),
    ] = "mvt5"
    order: Annotated[
        Literal["seeded", "fixed"],
        Meta(
            description="order of the options: drawn anew for every clip, or yes first and the "
            "original first"
        ),
    ] = "seeded"
    show: Annotated[
        Literal["auto", "video", "images"],
        Meta(description="frames as one video or as single images; auto: what the model takes"),
    ] = "auto"
    max_new_tokens: Annotated[int, Meta(ge=1, le=256, description="length of an answer")] = 8
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Meta(description="precision of the network; auto: that of the checkpoint"),
    ] = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty list, and an effect named twice: two options with one meaning."""
        if isinstance(self.effects, str):
            return
        if not self.effects:
            raise ValueError("effects is an empty list; name at least one effect")
        if len(set(self.effects)) != len(self.effects):
            raise ValueError(f"effects names one of {', '.join(self.effects)} more than once")
