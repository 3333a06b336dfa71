"""Distances and metrics of one clean and adversarial pair."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.errors import ContractViolation
from vcr_core.protocols import Reading
from vcr_core.seeding import isolated_random_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from vcr_core.protocols import ClipInfo, Metric

logger = logging.getLogger(__name__)


def distances(
    adversarial: Tensor, clean: Tensor, violation: float, quantised: bool, *, projected: bool
) -> dict[str, Any]:
    """Return the record's ``perturbation`` of one video ``[T, C, H, W]``."""
    delta = (adversarial - clean).abs()
    sites = delta.amax(dim=1)
    energy = delta.square().flatten(1).sum(dim=1, dtype=torch.float64)
    return {
        "linf": float(delta.max()),
        "l2": float(energy.sum()) ** 0.5,
        "l1": float(delta.mean(dtype=torch.float64)),
        "l0_fraction": float((sites > 0).double().mean()),
        "frames_touched": int((sites.flatten(1).amax(dim=1) > 0).sum()),
        "l21": float(energy.sqrt().sum()),
        "violation": violation,
        "projected": projected,
        "quantised": quantised,
    }


def readings(
    metrics: Sequence[tuple[str, tuple[str, ...], Metric]],
    reference: Tensor,
    test: Tensor,
    info: ClipInfo,
) -> dict[str, dict[str, Any]]:
    """Return ``{key: {"value", "reason"?, "per_frame"?, "by"?}}``.

    Raises:
        ContractViolation: if a metric reports something that is no number; a metric that cannot
            measure says so with a :class:`Reading` without a value.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, keys, metric in metrics:
        try:
            with torch.no_grad(), isolated_random_state(info.seed):
                measured = metric.measure(reference, test, info)
        # Inside the per-video boundary: a failing metric must not cost the attack's result.
        except Exception as error:
            logger.warning("metric %s failed on %s", name, info.video, exc_info=True)
            measured = {k: Reading(None, f"{type(error).__name__}: {error}") for k in keys}
        for key, value in measured.items():
            if key in found:
                raise ContractViolation(f"metric {name!r} reports {key!r}, which another one does")
            found[key] = _reading(name, key, value)
    return found


def _reading(name: str, key: str, value: float | Reading | None) -> dict[str, Any]:
    reading = value if isinstance(value, Reading) else Reading(value)
    number, reason = reading.value, reading.reason
    if number is not None and not math.isfinite(number):
        number, reason = None, reason or f"{name} gave {number}"
    plain: dict[str, Any] = {"value": None if number is None else float(number)}
    if number is None:
        plain["reason"] = reason or "not computed"
    if reading.per_frame:
        plain["per_frame"] = [
            None if v is None or not math.isfinite(v) else float(v) for v in reading.per_frame
        ]
    if reading.by:
        plain["by"] = reading.by
    return plain
