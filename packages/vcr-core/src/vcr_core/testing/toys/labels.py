"""Label space of the moving shapes; importing it needs no torch."""

from __future__ import annotations

from vcr_core.protocols import LabelSpace

DIRECTIONS = (
    "east", "north-east", "north", "north-west", "west", "south-west", "south", "south-east",
)  # fmt: skip
"""Direction ``k`` points ``45·k`` degrees anticlockwise from east."""

SHAPES = ("disc", "square", "diamond")

SHAPE_LABELS = LabelSpace("toy-directions", DIRECTIONS)
