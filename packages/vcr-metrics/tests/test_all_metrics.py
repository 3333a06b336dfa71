"""What holds for every metric that is available here, whatever it measures."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vcr_core.api import load
from vcr_core.errors import NotAvailable
from vcr_core.protocols import ClipInfo
from vcr_metrics.plugin import vcr_register_metrics

INFO = ClipInfo()
SPECS = {spec.name: spec for spec in vcr_register_metrics()}
OF_FRAMES = [s.name for s in SPECS.values() if s.needs == "frames" and s.min_size <= 32]
OF_VIDEOS = [s.name for s in SPECS.values() if s.needs == "video"]


@cache
def loaded(name):
    return load("metric", name)


@pytest.fixture
def metric(request):
    try:
        return loaded(request.param)
    except NotAvailable as missing:
        pytest.skip(str(missing).splitlines()[0])


def values(metric, reference, test):
    return {k: r.value for k, r in metric.measure(reference, test, INFO).items()}


@pytest.mark.parametrize("metric", OF_FRAMES, indirect=True)
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(order=st.permutations(range(4)))
def test_frames_in_another_order_have_the_same_values(metric, patterns, order):
    clean = patterns["B"][:4]
    test = torch.cat([patterns["C"][:2], patterns["D"][2:4]])
    there = values(metric, clean, test)
    elsewhere = values(metric, clean[order], test[order])
    assert elsewhere == pytest.approx(there, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("metric", OF_VIDEOS, indirect=True)
def test_the_order_of_frames_matters_to_metrics_of_videos(metric, patterns):
    clean = patterns["B"][:4]
    test = torch.cat([patterns["C"][:2], patterns["D"][2:4]])
    order = [2, 0, 3, 1]
    assert values(metric, clean[order], test[order]) != values(metric, clean, test)


@pytest.mark.parametrize("metric", [*OF_FRAMES, *OF_VIDEOS], indirect=True)
def test_bytes_and_floats_have_the_same_values_and_stay_as_they_are(metric, patterns):
    pair = patterns["B"][:3], patterns["D"][:3]
    floats = [p.float() / 255 for p in pair]
    kept = [p.clone() for p in (*pair, *floats)]
    assert values(metric, *pair) == values(metric, *floats)
    assert all(torch.equal(now, then) for now, then in zip((*pair, *floats), kept, strict=True))


@pytest.mark.parametrize("metric", sorted(SPECS), indirect=True)
@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda v: v[:2], "shape"), (lambda v: v * float("nan"), "finite"), (lambda v: v * 9, "in")],
)
def test_pairs_that_do_not_match_are_refused_and_never_cut(metric, change, message):
    clean = torch.linspace(0.2, 0.8, 3 * 3 * 40 * 48).view(3, 3, 40, 48)
    side = 168 if type(metric).__name__ == "MsSsim" else 0
    if side:
        clean = torch.nn.functional.interpolate(clean, (side, side))
    with pytest.raises(ValueError, match=message):
        metric.measure(clean, change(clean), INFO)


@pytest.mark.gpu
@pytest.mark.parametrize("metric", sorted(SPECS), indirect=True)
def test_a_gpu_has_the_values_of_the_cpu(metric, large_patterns):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    pair = large_patterns["B"], large_patterns["D"]
    on_gpu = values(metric, *[p.cuda() for p in pair])
    # Convolutions of networks may use fewer digits there.
    assert on_gpu == pytest.approx(values(metric, *pair), rel=2e-2, abs=1e-6)
