"""What the plugin describes, and its observers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcr_core.hookspecs import hookimpl
from vcr_core.specs import AttackSpec, DatasetSpec


@hookimpl
def vcr_register_attacks() -> list[AttackSpec]:
    return [
        AttackSpec(
            name="moody",
            summary="toy-descent in a process that may wait, hang, print or die",
            target="vcr_e2e.attacks:Moody",
            access="white-box",
            norms=frozenset({"linf"}),
        )
    ]


@hookimpl
def vcr_register_datasets() -> list[DatasetSpec]:
    return [
        DatasetSpec(
            name="moody-shapes",
            summary="toy-shapes from a decoder that may raise, exit, hang or die",
            target="vcr_e2e.datasets:MoodyShapes",
            label_space="toy-directions",
            generated=True,
        )
    ]


@hookimpl
def vcr_run_started(run: Mapping[str, Any]) -> None:
    _observe("started", run)


@hookimpl
def vcr_record_written(run: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    _observe(f"record {record['video']}", run, record)


@hookimpl
def vcr_run_finished(run: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    _observe("finished", run, summary)


def _observe(what: str, *seen: Mapping[str, Any]) -> None:
    """Note what was seen, then do everything that an observer must not be able to do."""
    path = os.environ.get("VCR_E2E_OBSERVER")
    if not path:
        return
    with Path(path).open("a") as file:
        file.write(what + "\n")
    for data in seen:
        data.clear()  # type: ignore[attr-defined]
    raise RuntimeError("this observer always fails")
