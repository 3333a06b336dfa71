from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from vcr_core.protocols import ClipInfo
from vcr_metrics.st_lpips import StLpips
from vcr_metrics.tlp import Tlp

INFO = ClipInfo()

pytestmark = pytest.mark.skipif(
    find_spec("stlpips_pytorch") is None, reason="needs vcr-metrics[st-lpips]"
)


@pytest.fixture(scope="module")
def metric():
    return Tlp()


def test_is_the_gap_between_steps_of_the_two_videos(metric, patterns, monkeypatch):
    clean, test = (patterns[k][:6] for k in "BC")
    distance = StLpips().frames
    with torch.no_grad():
        x, a = (v.float() / 255 for v in (clean, test))
        steps = [distance(v[:-1], v[1:]) for v in (x, a)]
    expected = float((steps[0] - steps[1]).abs().mean())
    assert metric.measure(clean, test, INFO)["tlp"].value == pytest.approx(expected, abs=1e-6)
    monkeypatch.setattr("vcr_metrics.levels._CHUNK_ELEMENTS", 1)
    assert metric.measure(clean, test, INFO)["tlp"].value == pytest.approx(expected, abs=1e-6)


def test_equal_videos_have_none_and_the_order_matters(metric, patterns):
    clean, test = patterns["B"][:4], torch.cat([patterns["C"][:2], patterns["B"][2:4]])
    assert metric.measure(clean, clean, INFO)["tlp"].value == 0
    order = [0, 2, 1, 3]
    there, elsewhere = (
        metric.measure(*pair, INFO)["tlp"].value
        for pair in ((clean, test), (clean[order], test[order]))
    )
    assert abs(there - elsewhere) > 1e-3


def test_frames_of_different_clips_are_not_compared(metric, patterns):
    clean, test = patterns["B"][:4], patterns["D"][:4]
    found = metric.measure(clean, test, ClipInfo(clips=2))["tlp"].value
    parts = [metric.measure(clean[s], test[s], INFO)["tlp"].value for s in (slice(2), slice(2, 4))]
    assert found == pytest.approx(sum(parts) / 2, abs=1e-7)


def test_single_and_small_frames_have_no_value(metric, patterns):
    one = patterns["B"][:1]
    assert metric.measure(one, one, INFO)["tlp"].reason == "clips of one frame"
    small = patterns["B"][:2, :, :23]
    assert metric.measure(small, small, INFO)["tlp"].reason == "frame smaller than 24 px"
