"""The classes that detectors of tampering tell apart."""

from __future__ import annotations

from typing import Final

from vcr_core.protocols import LabelSpace

ORIGINAL: Final = "original"

MVT5: Final = ("drop", "mask", "rotate", "substitute", "repeat")
"""The effects of MVTamperBench, arXiv 2412.19794, section 3.3."""

MVT8: Final = (*MVT5, "noise", "local-mask", "shuffle")
EVERY: Final = (*MVT8, "freeze", "reverse", "speed", "blur", "jpeg")
SUITES: Final[dict[str, tuple[str, ...]]] = {"mvt5": MVT5, "mvt8": MVT8, "all": EVERY}

LABELS: Final = LabelSpace("tamper-all", (ORIGINAL, *EVERY))
"""Those of the dataset ``tamper`` with ``effects = "all"``, in its order."""

IMPOSSIBLE: Final = -20.0
"""Log-probability of an effect that a detector does not reckon with."""
