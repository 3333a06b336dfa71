"""Parameters of the zoo's models."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ZooParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters that every model of the zoo has."""

    file: Annotated[
        str,
        Meta(
            description="a checkpoint of yours, of the same layout, instead of the published one",
            extra={"path": True},
        ),
    ] = ""
    crops: Annotated[
        Literal[0, 1, 3, 10],
        Meta(description="crops of a clip with full views; 0 = as published"),
    ] = 0
    precision: Annotated[
        Literal["float32", "bfloat16", "float16"],
        Meta(description="of weights and inner values; less than float32 makes gradients coarse"),
    ] = "float32"
    recompute: Annotated[
        bool,
        Meta(description="compute blocks again in the backward pass: less memory, more time"),
    ] = False
    trust_pickle: Annotated[
        bool,
        Meta(description="read a checkpoint that holds more than weights; it can run code"),
    ] = False
