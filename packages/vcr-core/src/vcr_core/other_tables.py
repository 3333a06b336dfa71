"""Records as one row a frame, and runs as the log file of VCR-Bench has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core import outcomes, stats
from vcr_core.manifest import is_targeted, table
from vcr_core.tables import metric_value, to_csv

if TYPE_CHECKING:
    from vcr_core.summary import RunView
    from vcr_core.tables import ColumnType, Row

LOG_COLUMNS: dict[str, ColumnType] = {
    "model": "text",
    "attack": "text",
    "test_dataset": "text",
    "time": "float",
    "mean_time": "float",
    "mean_iterations": "float",
    "eps": "float",
    "iter": "int",
    "mean_psnr": "float",
    "mean_vmaf": "float",
    "clear_correct": "int",
    "attacked_success": "int",
    "target_success": "int",
    "num_total": "int",
}
"""The 14 columns of the VCR-Bench log, one line a model and attack, in its order."""

_FRAME_COLUMNS: dict[str, ColumnType] = {
    "run": "text",
    "video": "text",
    "frame": "int",
    "source_frame": "int",
}
_TIMES = ("t_clean_s", "t_attack_s", "t_eval_s")


def log_text(runs: Sequence[RunView]) -> str:
    """Return one line a run in the columns of the VCR-Bench log; no value is an empty cell.

    As there, ``eps`` is in levels of 255, times are those of the clean prediction, the attack and
    the final one, and predictions are those of the defended model where there is a defense.
    Unlike there, ``num_total`` leaves out videos that failed.
    """
    return to_csv(LOG_COLUMNS, [_log_row(run) for run in runs])


def frames_text(runs: Sequence[RunView]) -> str:
    """Return one line a frame with every metric that has a value a frame.

    ``frame`` is the position among the frames that are attacked, ``source_frame`` the one in the
    file where it is known.
    """
    names = sorted({name for run in runs for r in run.records for name in _per_frame(r)})
    columns: dict[str, ColumnType] = {**_FRAME_COLUMNS, **dict.fromkeys(names, "float")}
    return to_csv(columns, [row for run in runs for r in run.records for row in _frames(run, r)])


def _frames(run: RunView, record: Mapping[str, Any]) -> list[Row]:
    values = _per_frame(record)
    indices = (record.get("input") or {}).get("indices") or []
    count = max(map(len, values.values()), default=0)
    # A clip's own frames, where every clip is attacked by itself, are no distinct source frames.
    known = len(indices) == count
    return [
        {
            "run": run.name,
            "video": record["video"],
            "frame": i,
            "source_frame": indices[i] if known else None,
            **{name: found[i] for name, found in values.items() if i < len(found)},
        }
        for i in range(count)
    ]


def _per_frame(record: Mapping[str, Any]) -> dict[str, Sequence[float | None]]:
    return {
        name: reading["per_frame"]
        for name, reading in (record.get("metrics") or {}).items()
        if isinstance(reading, Mapping) and reading.get("per_frame")
    }


def _log_row(run: RunView) -> Row:
    evaluated = [record for record in run.records if outcomes.is_evaluated(record)]
    attacked = [r for r in evaluated if r["status"] == "ok" and outcomes.has_attack(r)]
    defended = any(outcomes.has_defense(record) for record in evaluated)
    times = [t for r in attacked if (t := _time(r)) is not None]
    threat = table(run.manifest, "threat")
    steps = table(run.manifest, "attack").get("steps")
    right = [r for r in evaluated if _first_right(outcomes.clean_corners(r, defended=defended), r)]
    lost = [
        r for r in right if not _first_right(outcomes.attacked_corners(r, defended=defended), r)
    ]
    return {
        "model": run.model,
        "attack": run.attack or None,
        "test_dataset": run.dataset,
        "time": sum(times) if times else None,
        "mean_time": stats.mean(times),
        "mean_iterations": stats.mean(_costs(attacked, "iterations")),
        "eps": _levels(threat) if run.attack else None,
        "iter": steps if isinstance(steps, int) else None,
        "mean_psnr": stats.mean(_metric(attacked, "psnr")),
        "mean_vmaf": stats.mean(_metric(attacked, "vmaf")),
        "clear_correct": len(right),
        "attacked_success": len(lost) if run.attack else None,
        "target_success": _targets(attacked, defended) if is_targeted(run.manifest) else None,
        "num_total": len(evaluated),
    }


def _first_right(corners: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> bool:
    return bool(corners) and outcomes.is_right(record, corners[0])


def _targets(attacked: Sequence[Mapping[str, Any]], defended: bool) -> int:
    first = [outcomes.attacked_corners(r, defended=defended)[:1] for r in attacked]
    return sum(
        bool(found) and found[0].get("pred") == r.get("target")
        for found, r in zip(first, attacked, strict=True)
    )


def _levels(threat: Mapping[str, Any]) -> float | None:
    from vcr_core.reporters.rows import eps_of

    eps = eps_of(threat)
    norm = threat.get("norm", "linf")
    if eps is None or norm == "none":
        return None
    return round(255 * eps, 6) if norm == "linf" else eps


def _time(record: Mapping[str, Any]) -> float | None:
    cost = record.get("cost") or {}
    spent = [cost[name] for name in _TIMES if isinstance(cost.get(name), int | float)]
    return float(sum(spent)) if spent else None


def _costs(records: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    values = ((record.get("cost") or {}).get(name) for record in records)
    return [float(value) for value in values if isinstance(value, int | float)]


def _metric(records: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [value for r in records if (value := metric_value(r, name)) is not None]
