"""Parameters of the executors."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ExecutorParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What every executor of the core takes."""

    workers: Annotated[int, Meta(ge=0, description="worker processes; 0 = one per device")] = 0
