"""Parameters of the Ray executor."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class RayParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Where the cluster is and what each worker takes of it."""

    address: Annotated[
        str,
        Meta(description="cluster: 'auto', HOST:PORT or ray://HOST:PORT; empty = a local one"),
    ] = ""
    cpus: Annotated[int, Meta(ge=1, description="CPU cores of a worker, and its threads")] = 1
    gpus: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="GPUs of a worker; absent = one where the cluster has any"),
    ] = None
    resources: Annotated[
        dict[str, float], Meta(description="custom resources of a worker by name")
    ] = {}
    retries: Annotated[
        int,
        Meta(ge=0, description="times that a lost worker is placed anew without a new record"),
    ] = 3
