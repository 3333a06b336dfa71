"""Rules over several keys of the core's own tables, with hints about units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vcr_core.config.fraction_text import parse_number
from vcr_core.refs import literal_values
from vcr_core.specs import Norm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vcr_core.config.check import Problems
    from vcr_core.config.schema import ThreatConfig

NORMS = literal_values(Norm)
UNIT_NORMS = ("linf", "l0")
"""Norms whose radius is a fraction: of the pixel range, or of all pixels."""


def check_eps(threat: Mapping[str, Any], norm: str, problems: Problems) -> None:
    """Add a problem for a radius above 1 where it is a fraction, with what was probably meant."""
    raw = threat.get("eps")
    value = parse_number(raw) if isinstance(raw, str) else raw
    if isinstance(value, bool) or not isinstance(value, int | float):
        return  # another check has said so
    if norm not in NORMS:
        norm = "linf"  # its own problem; the radius was most likely meant for the default
    if norm in UNIT_NORMS and 1 < value < math.inf:
        hint = f": did you mean '{value:g}/255'?" if norm == "linf" and value <= 255 else ""
        what = "the pixel range" if norm == "linf" else "all pixels of the video"
        problems.add(
            ("threat", "eps"),
            f"found {raw!r}; allowed with norm {norm!r}: 0 to 1, a fraction of {what}{hint}",
        )


def check_threat(threat: ThreatConfig, problems: Problems) -> None:
    """Add problems of frames, regions and radii that no type can express."""
    frames = threat.frames
    if isinstance(frames, int) and frames < 1:
        problems.add(("threat", "frames"), f"found {frames}; allowed: 1 or more frames")
    is_bad_list = isinstance(frames, list) and (
        not frames or min(frames) < 0 or len(set(frames)) < len(frames)
    )
    if is_bad_list:
        problems.add(
            ("threat", "frames"),
            f"found {frames}; allowed: positions from 0 on, each once, at least one",
        )
    region = threat.region
    if region is not None:
        is_box = len(region) == 4 and region[0] < region[2] and region[1] < region[3]
        if not is_box:
            problems.add(
                ("threat", "region"),
                f"found {region}; allowed: [top, left, bottom, right] as fractions, "
                "top < bottom and left < right",
            )
    if threat.per_frame_eps is not None and threat.norm != "linf":
        problems.add(
            ("threat", "per_frame_eps"),
            f"set with norm {threat.norm!r}; allowed: with norm 'linf' only",
        )
    if threat.per_frame_eps == []:
        problems.add(("threat", "per_frame_eps"), "found an empty list; leave the key out")
