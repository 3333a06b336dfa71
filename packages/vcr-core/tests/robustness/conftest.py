"""Runs made by hand: who was right before and after, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from vcr_core.summary import RunView

SUITE = {"name": "two", "version": "1", "types": 2, "severities": 2}


def corner(right: bool, p: float | None = None) -> dict[str, Any]:
    """A prediction of label 0; another label where it is wrong."""
    return {"pred": 0 if right else 1, "p_label": (0.8 if right else 0.1) if p is None else p}


def make_records(
    before: Sequence[Any], after: Sequence[Any], **extra: Sequence[Any]
) -> list[dict[str, Any]]:
    """One record a video with label 0; ``None`` in ``after`` for a video that was skipped.

    An outcome is a bool, or a tuple of bools, one a draw of a random defense.
    """
    found = []
    for index, (one, other) in enumerate(zip(before, after, strict=True)):
        record: dict[str, Any] = {"video": f"v{index:04d}", "label": 0, "status": "ok"}
        if other is None:
            record.update(status="skipped", notes=["boundary: leaves the video"])
        elif isinstance(other, tuple):
            record["clean"] = corner(True)
            record["attacked"] = corner(True)
            record["clean_defended"] = [corner(bool(draw)) for draw in one]
            record["attacked_defended"] = [corner(bool(draw)) for draw in other]
        else:
            record["clean"], record["attacked"] = corner(bool(one)), corner(bool(other))
        for key, values in extra.items():
            if values[index] is not None and record["status"] == "ok":
                record[key] = values[index]
        found.append(record)
    return found


def make_run(
    attack: str,
    records: list[dict[str, Any]],
    *,
    model: str = "m",
    tags: Sequence[str] = (),
    params: dict[str, Any] | None = None,
    corruption: dict[str, Any] | None = None,
    defense: str = "",
    status: str = "done",
    **changes: Any,
) -> RunView:
    """A run of an attack that asks nothing, in memory."""
    part = {"role": "attack", "ref": f"vcr-attacks/{attack}", "access": "none", "tags": list(tags)}
    if corruption is not None:
        part["corruption"] = corruption
    experiment: dict[str, Any] = {
        "dataset": {"name": "motion", "limit": len(records)},
        "model": {"name": model},
        "attack": {"name": attack, **(params or {})},
        "threat": {"norm": "none"},
        "protocol": {"views": "light"},
    }
    if defense:
        experiment["defense"] = [{"name": defense}]
    manifest = {
        "run": f"{model}-{attack}-{params}", "status": status, "seed": 42,
        "evaluation_version": 1, "experiment": experiment,
        "components": [{**part, "params": params or {}}],
        "dataset": {"fingerprint": "f00d"}, "batches": [[r["video"] for r in records]],
        "started": "2026-05-01T10:00:00.000Z", **changes,
    }  # fmt: skip
    return RunView(Path(), manifest, records, {})


class Make:
    """Makers of runs."""

    records = staticmethod(make_records)

    @staticmethod
    def shift(step: int, before: Sequence[Any], after: Sequence[Any], **options: Any) -> RunView:
        """A natural shift."""
        extra = {k: options.pop(k) for k in ("perturbation", "metrics", "input") if k in options}
        return make_run(
            "natural-shift",
            make_records(before, after, **extra),
            tags=["natural"],
            params={"steps": step, "rate": 15, "unit": "time", "boundary": "skip", "reach": 5},
            **options,
        )

    @staticmethod
    def corruption(
        name: str,
        severity: int,
        before: Sequence[Any],
        after: Sequence[Any],
        *,
        group: str = "noise",
        suites: Sequence[dict[str, Any]] = (SUITE,),
        params: dict[str, Any] | None = None,
        **options: Any,
    ) -> RunView:
        """A corruption of the suite ``two``: two types, two severities."""
        facts = {"type": name, "group": group, "severity": severity, "suites": list(suites)}
        return make_run(
            name,
            make_records(before, after),
            tags=["corruption"],
            params={"severity": severity, **(params or {})},
            corruption=facts,
            **options,
        )

    @staticmethod
    def tampering(name: str, before: Sequence[Any], after: Sequence[Any], **options: Any) -> Any:
        """A tampering operator, one second in the middle."""
        params = {"location": "middle", "duration_s": 1.0, **options.pop("params", {})}
        tags = ["tampering", *options.pop("suite", ["mvt5"])]
        extra = {k: options.pop(k) for k in ("transform",) if k in options}
        return make_run(
            name, make_records(before, after, **extra), tags=tags, params=params, **options
        )


@pytest.fixture
def make() -> type[Make]:
    """Makers: ``make.shift``, ``make.corruption``, ``make.tampering``, ``make.records``."""
    return Make
