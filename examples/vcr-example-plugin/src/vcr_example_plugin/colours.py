"""The classes that the model and the dataset share; importing this needs no torch."""

from __future__ import annotations

from vcr_core import LabelSpace

COLOURS = LabelSpace("example-colours", ("red", "green", "blue"))
