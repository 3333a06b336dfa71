"""Parameters that a test has to hand in."""

from __future__ import annotations

import msgspec


class NeedsRoot(msgspec.Struct, forbid_unknown_fields=True):
    """Has one field without a default."""

    root: str
    split: str = "val"
