"""The form of ``run.json``: whoever sends a run may write anything into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from vcr_core.leaderboard.checks import Check, failed, passed
from vcr_core.manifest import has_own_labels

_Radius = (
    Annotated[float, Meta(ge=0)]
    | Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(/[1-9][0-9]*(\.[0-9]+)?)?$")]
)


class _Named(Struct, kw_only=True):
    name: str
    variant: str | None = None


class _Threat(Struct, kw_only=True):
    norm: str = "linf"
    eps: _Radius | None = None
    per_frame_eps: list[_Radius] | None = None
    targeted: bool = False


class _Experiment(Struct, kw_only=True):
    dataset: _Named
    model: _Named
    attack: _Named | None = None
    defense: _Named | list[_Named] | None = None
    threat: _Threat | None = None
    protocol: dict[str, Any] | None = None


class _Component(Struct, kw_only=True):
    role: str
    ref: str
    kind: str = ""
    distribution: str = ""
    version: str | None = None
    access: str | None = None
    weights: str | None = None


class _Dataset(Struct, kw_only=True):
    fingerprint: str
    labels: list[str]
    label_space: str | None = None
    n: int | None = None


class _Environment(Struct, kw_only=True):
    python: str | None = None
    machine: str | None = None
    versions: dict[str, Any] | None = None
    torch: dict[str, Any] | None = None


class _Manifest(Struct, kw_only=True):
    run: str
    status: str
    evaluation_version: int
    experiment: _Experiment
    experiment_hash: str
    components: list[_Component]
    dataset: _Dataset
    batches: list[list[str]]
    seed: int | None = None
    threads: int | None = None
    environment: _Environment | None = None
    command: list[str] | None = None
    plugin_failures: list[dict[str, Any]] | None = None
    flags: list[str] | None = None
    started: str | None = None
    ended: str | None = None


def check_manifest(manifest: Mapping[str, Any]) -> Check:
    """Check the types of all that is used of a manifest; other fields may hold anything."""
    try:
        found = msgspec.convert(manifest, type=_Manifest)
    except msgspec.ValidationError as error:
        return failed("manifest", f"run.json: {error}")
    if not any(found.batches):
        return failed("manifest", "run.json plans no videos")
    if has_own_labels(manifest):
        return failed(
            "manifest",
            "protocol.labels is 'clean-prediction': each model is judged by its own answers, which "
            "ranks no models",
        )
    return passed("manifest", "run.json has the form of a manifest")
