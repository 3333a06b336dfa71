"""Checks of metrics."""

from __future__ import annotations

import math
import unittest
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor

from vcr_core.protocols import ClipInfo, Metric, Reading
from vcr_core.specs import MetricSpec
from vcr_core.testing.checks.inputs import noisy, video
from vcr_core.testing.contract import Subject, require

_TOLERANCE = 1e-4
_SIDES = (32, 192)


def values_of(metric: Metric, reference: Tensor, test: Tensor) -> dict[str, float | None]:
    """Return the plain values of a pair ``[T, C, H, W]``."""
    measured = metric.measure(reference, test, _info())
    return {key: _value(found) for key, found in measured.items()}


def identity_value(subject: Subject) -> None:
    """A clip with itself gives the declared value, or none with a reason."""
    spec = _spec(subject)
    metric = subject.build()
    clip = _clip(metric)
    measured = metric.measure(clip, clip.clone(), _info())
    if spec.identity_value is None:
        _require_reasons(measured, "identical clips")
        return
    for key, found in measured.items():
        value = _value(found)
        require(value is not None, f"{key} of identical clips is missing")
        gap = abs(cast(float, value) - spec.identity_value)
        require(
            gap <= _TOLERANCE * max(1.0, abs(spec.identity_value)),
            f"{key} of identical clips is {value}, the spec says {spec.identity_value}",
        )


def symmetric_if_claimed(subject: Subject) -> None:
    """Exchanging the clips changes nothing."""
    metric = subject.build()
    clean = _clip(metric)
    other = (noisy(clean, 9, seed=5) * 0.8 * 255).round() / 255
    forth, back = values_of(metric, clean, other), values_of(metric, other, clean)
    for key, value in forth.items():
        require(
            _close(value, back[key]),
            f"{key} is {value} one way and {back[key]} the other; set symmetric=False",
        )


def worsens_with_noise(subject: Subject) -> None:
    """More noise is worse, in the declared direction, for every key."""
    metric = subject.build()
    clean = _clip(metric)
    sign = 1 if _spec(subject).higher_is_better else -1
    steps = [values_of(metric, clean, noisy(clean, levels, seed=5)) for levels in (2, 8, 32)]
    for key in steps[0]:
        series = [step[key] for step in steps]
        if any(value is None for value in series):
            raise unittest.SkipTest(f"{key} is missing for clips of up to {_SIDES[-1]} pixels")
        first, second, third = (sign * cast(float, v) for v in series)
        require(
            first > second > third,
            f"{key} with noise of 2, 8 and 32 levels is {series}; "
            f"the spec says that {'higher' if sign > 0 else 'lower'} is better",
        )


def finite_or_none(subject: Subject) -> None:
    """Values are finite numbers, or missing with a reason; edge cases never raise."""
    metric = subject.build()
    flat = torch.full((2, 3, 32, 32), 128 / 255)
    pairs = {
        "a usual pair": (_clip(metric), noisy(_clip(metric), 4, seed=1)),
        "identical clips": (_clip(metric), _clip(metric)),
        "flat clips": (flat, flat + 1 / 255),
        "black and white": (torch.zeros_like(flat), torch.ones_like(flat)),
        "one frame": (flat[:1], noisy(flat[:1], 4, seed=2)),
        "frames of 5x7 pixels": (flat[..., :5, :7], noisy(flat[..., :5, :7], 4, seed=3)),
    }
    for what, (reference, test) in pairs.items():
        measured = metric.measure(reference, test, _info())
        for key, found in measured.items():
            value = _value(found)
            require(
                value is None or math.isfinite(value),
                f"{key} of {what} is {value}; a value that is not finite must be missing",
            )
            _require_range(_spec(subject), key, value, what)
        _require_reasons(
            {k: v for k, v in measured.items() if isinstance(v, Reading) and v.value is None}, what
        )


def batch_order_free(subject: Subject) -> None:
    """A value does not depend on what was measured before; the clips are not changed."""
    metric = subject.build()
    first, second = _clip(metric, seed=1), _clip(metric, seed=2)
    tests = noisy(first, 6, seed=3), noisy(second, 30, seed=4)
    copies = [t.clone() for t in (first, second, *tests)]
    alone = values_of(metric, first, tests[0])
    values_of(metric, second, tests[1])
    again = values_of(metric, first, tests[0])
    fresh = values_of(subject.build(), first, tests[0])
    require(alone == again, f"measured again after another clip: {alone} became {again}")
    require(alone == fresh, f"a new instance gives {fresh} instead of {alone}")
    for clip, copy in zip((first, second, *tests), copies, strict=True):
        require(torch.equal(clip, copy), "the metric changed a clip in place")


def keys_declared(subject: Subject) -> None:
    """Exactly the declared keys come back."""
    spec = _spec(subject)
    metric = subject.build()
    declared = set(spec.keys or (spec.name,))
    found = set(metric.measure(_clip(metric), noisy(_clip(metric), 4, seed=1), _info()))
    require(
        found == declared,
        f"keys {sorted(found)} came back, the spec declares {sorted(declared)}",
    )


def _spec(subject: Subject) -> MetricSpec:
    return cast(MetricSpec, subject.spec)


def _info() -> ClipInfo:
    return ClipInfo(video="contract", seed=1)


def _clip(metric: Metric, seed: int = 1) -> Tensor:
    """Return the smallest clip that the metric can measure, or the largest that is tried."""
    for side in _SIDES:
        clip = video(seed, 1, 4, side, side)[0]
        values = values_of(metric, clip, noisy(clip, 4, seed=9))
        if all(v is not None for v in values.values()):
            break
    return clip


def _value(found: Any) -> float | None:
    value = found.value if isinstance(found, Reading) else found
    return None if value is None else float(value)


def _require_reasons(measured: Mapping[str, Any], what: str) -> None:
    for key, found in measured.items():
        require(_value(found) is None, f"{key} of {what} is {_value(found)}, not missing")
        reason = found.reason if isinstance(found, Reading) else ""
        require(reason, f"{key} of {what} is missing without a reason; return a Reading")


def _require_range(spec: MetricSpec, key: str, value: float | None, what: str) -> None:
    lowest, highest = spec.value_range
    if value is None:
        return
    slack = _TOLERANCE * max(1.0, abs(value))
    require(lowest is None or value >= lowest - slack, f"{key} of {what} is {value} < {lowest}")
    require(highest is None or value <= highest + slack, f"{key} of {what} is {value} > {highest}")


def _close(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return abs(a - b) <= _TOLERANCE * max(1.0, abs(a))
