"""Parameter types that several families share."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

Per: TypeAlias = Literal["video", "clip", "frame"]
"""How often a random parameter is drawn."""

Votes: TypeAlias = Annotated[
    int, Meta(ge=1, le=10000, description="draws that are classified; each is a forward pass")
]
MergeRule: TypeAlias = Annotated[
    Literal["mean-prob", "majority"],
    Meta(description="mean of the votes' probabilities, or the class of most of them"),
]
