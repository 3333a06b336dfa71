"""Means over videos, each with how many it rests on and why the others have no value."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from vcr_core import outcomes, stats
from vcr_core.tables import metric_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

NO_REASON = "no reason given"

_PSNR_CAP = 100.0

_PERTURBATION = ("linf", "l2", "l1", "l0_fraction", "frames_touched", "l21", "violation")


def describe_mean(
    values: Iterable[float | None], *, reasons: Iterable[str] = (), seed: int = 0
) -> dict[str, Any]:
    """Return ``{value, n, null, ci95, method, median}`` of one value per video.

    Args:
        values: ``None`` where a video has none; those are counted and left out.
        reasons: one reason for every ``None``; they are counted too.
        seed: of the bootstrap.
    """
    listed = list(values)
    present = [value for value in listed if value is not None and math.isfinite(value)]
    result = stats.bootstrap_mean(present, seed=seed)
    entry: dict[str, Any] = {
        "value": result.value,
        "n": len(present),
        "null": len(listed) - len(present),
        "ci95": result.ci95,
        "method": result.method,
        "median": stats.median(present),
    }
    counted = Counter(reasons)
    if counted:
        entry["reasons"] = dict(sorted(counted.items()))
    return entry


def metrics(attacked: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """Return mean, median and interval of every metric: over attacked videos and over successes.

    Added are ``psnr_of_mean_mse`` where there is an MSE, which is not the mean of the PSNRs, and
    ``psnr_capped_mean`` where there is a PSNR, in which identical clips count as 100 dB.
    """
    names = sorted({name for record in attacked for name in record.get("metrics") or ()})
    found: dict[str, Any] = {}
    for name in names:
        values = [metric_value(record, name) for record in attacked]
        reasons = [
            _reason(record, name)
            for record, value in zip(attacked, values, strict=True)
            if value is None
        ]
        won = [record for record in attacked if outcomes.succeeded(record)]
        found[name] = {
            **describe_mean(values, reasons=reasons, seed=seed),
            "over_successes": describe_mean(
                (metric_value(record, name) for record in won), seed=seed
            ),
        }
        makers = Counter(filter(None, (_maker(record, name) for record in attacked)))
        if makers:
            found[name]["by"] = dict(sorted(makers.items()))
    if "mse" in found:
        found["psnr_of_mean_mse"] = _psnr_of_mean(found["mse"])
    if "psnr" in found:
        found["psnr_capped_mean"] = describe_mean(map(_capped_psnr, attacked), seed=seed)
    return found


def _maker(record: Mapping[str, Any], name: str) -> str:
    """Return library and version behind a value, where the metric names them."""
    reading = (record.get("metrics") or {}).get(name)
    return str(reading.get("by") or "") if isinstance(reading, dict) else ""


def _capped_psnr(record: Mapping[str, Any]) -> float | None:
    value = metric_value(record, "psnr")
    if value is None:
        return _PSNR_CAP if _reason(record, "psnr") == "identical" else None
    return min(value, _PSNR_CAP)


def _reason(record: Mapping[str, Any], name: str) -> str:
    reading = (record.get("metrics") or {}).get(name)
    if isinstance(reading, dict) and reading.get("reason"):
        return str(reading["reason"])
    notes = record.get("notes")
    if isinstance(notes, dict):
        for key in (name, f"metrics.{name}"):
            if notes.get(key):
                return str(notes[key])
    return NO_REASON if reading is not None else "not measured"


def _psnr_of_mean(mse: Mapping[str, Any]) -> dict[str, Any]:
    """Return the PSNR of the mean MSE, in dB; always at or below the mean of the PSNRs."""
    value = mse["value"]
    entry: dict[str, Any] = {"value": None, "n": mse["n"], "null": mse["null"], "ci95": None}
    if value:
        low, high = mse["ci95"]
        entry["value"] = _psnr(value)
        # A larger error is a smaller PSNR: the ends change places.
        entry["ci95"] = [_psnr(high), _psnr(low)] if low > 0 else None
    else:
        entry["reasons"] = {"identical" if value == 0 else "no values": mse["n"]}
    return {**entry, "method": f"10·log10(255²/mean mse), interval from {mse['method']} of mse"}


def _psnr(mse: float) -> float:
    return 10 * math.log10(255**2 / mse)


def predictions(attacked: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """Return how sure the bare model is, before and after; means over attacked videos."""
    rules: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
        "confidence_drop": _confidence_drop,
        "margin_clean": lambda r: _corner_value(
            outcomes.clean_corners(r, defended=False), "margin"
        ),
        "margin_attacked": lambda r: _corner_value(
            outcomes.attacked_corners(r, defended=False), "margin"
        ),
    }
    found = {name: [rule(record) for record in attacked] for name, rule in rules.items()}
    return {
        name: describe_mean(values, seed=seed)
        for name, values in found.items()
        if any(value is not None for value in values)
    }


def _confidence_drop(record: Mapping[str, Any]) -> float | None:
    before = _corner_value(outcomes.clean_corners(record, defended=False), "p_label")
    after = _corner_value(outcomes.attacked_corners(record, defended=False), "p_label")
    return None if before is None or after is None else before - after


def _corner_value(corners: Sequence[Mapping[str, Any]], key: str) -> float | None:
    value = corners[0].get(key) if corners else None
    return float(value) if isinstance(value, int | float) else None


def perturbation(attacked: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """Return mean and largest size of what attacks changed, and how many had to be corrected."""
    sizes = [record["perturbation"] for record in attacked if record.get("perturbation")]
    if not sizes:
        return {}
    found: dict[str, Any] = {}
    for name in _PERTURBATION:
        values = [size[name] for size in sizes if isinstance(size.get(name), int | float)]
        if values:
            found[name] = {**describe_mean(values, seed=seed), "max": max(values)}
    for name in ("projected", "quantised"):
        found[name] = sum(bool(size.get(name)) for size in sizes)
    return found


def costs(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean, median and sum of each cost; queries also over successes alone."""
    names: dict[str, None] = {}
    for record in records:
        names.update(dict.fromkeys(record.get("cost") or ()))
    won = [record for record in records if outcomes.succeeded(record)]
    found: dict[str, Any] = {}
    for name in names:
        values = _cost_values(records, name)
        if name == "budget_exhausted":
            found[name] = {"count": int(sum(values)), "n": len(values)}
        elif name != "chunk" and values:
            found[name] = {
                "mean": stats.mean(values),
                "median": stats.median(values),
                "max": max(values),
                "sum": math.fsum(values),
                "n": len(values),
            }
            if name in ("forwards", "backwards", "iterations"):
                found[name]["median_over_successes"] = stats.median(_cost_values(won, name))
    return found


def _cost_values(records: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    values = ((record.get("cost") or {}).get(name) for record in records)
    return [float(value) for value in values if isinstance(value, int | float)]
