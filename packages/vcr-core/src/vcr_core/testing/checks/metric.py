"""Checks of metrics."""

from __future__ import annotations

import math
import unittest
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import torch
from torch import Tensor

from vcr_core.protocols import ClipInfo, DifferentiableMetric, Metric, Reading
from vcr_core.specs import MetricSpec
from vcr_core.testing.checks.ambient import under_state
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
            gap <= spec.identity_slack + _TOLERANCE * max(1.0, abs(spec.identity_value)),
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


def smallest_frame(subject: Subject) -> None:
    """Frames of the declared smallest side have values, those one pixel below have a reason."""
    smallest = _spec(subject).min_size
    metric = subject.build()
    for side in {smallest, max(1, smallest - 1)}:
        clip = video(1, 1, 4, side, max(side, 16))[0]
        measured = metric.measure(clip, noisy(clip, 4, seed=9), _info())
        if side < smallest:
            _require_reasons(measured, f"frames of {side} px")
            continue
        absent = [key for key, found in measured.items() if _value(found) is None]
        require(
            not absent,
            f"{', '.join(absent)} of frames of {side} px is missing; the spec says min_size={side}",
        )


def differentiable_if_claimed(subject: Subject) -> None:
    """The distance is 0 for equal videos, grows with noise, and has a finite gradient."""
    metric = subject.build()
    require(
        isinstance(metric, DifferentiableMetric),
        "there is no method distance, which differentiable=True promises",
    )
    clean = _clip(metric)[None]
    pair = torch.cat([clean, clean])
    leaf = torch.cat([noisy(clean, 4, seed=1), noisy(clean, 32, seed=1)]).requires_grad_()
    found = metric.distance(pair, leaf)
    require(tuple(found.shape) == (2,), f"distance is {list(found.shape)} for 2 videos, not [2]")
    same = metric.distance(clean, clean)
    require(float(same.abs().max()) <= _TOLERANCE, f"equal videos are {same.tolist()} apart")
    first, second = found.tolist()
    require(first < second, f"noise of 4 and 32 levels is {[first, second]} apart")
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    require(bool(torch.isfinite(grad).all()), "the gradient of the distance is not finite")
    require(bool((grad != 0).flatten(1).any(1).all()), "the gradient of the distance is zero")


def concurrent_if_claimed(subject: Subject) -> None:
    """Two threads measure what one does alone, and global generators are neither used nor changed.

    They belong to whatever the main thread does at the same time.
    """
    metric = subject.build()
    clean = _clip(metric)
    pairs = [(clean, noisy(clean, levels, seed=5)) for levels in (4, 16)]

    def measured() -> list[dict[str, float | None]]:
        return [values_of(metric, *pair) for pair in pairs]

    alone = under_state(7, measured, "measuring")
    again = under_state(8, measured, "measuring")
    require(alone == again, f"{alone} became {again} under another global random state")
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(lambda pair: values_of(metric, *pair), pairs))
    require(alone == together, f"{alone} became {together} when two threads measured at once")


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
