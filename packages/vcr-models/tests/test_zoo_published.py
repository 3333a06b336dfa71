"""Real files, for whoever has them: `pytest -m weights` with files where `vcr weights` looks.

Accuracy needs labelled videos as well: a folder a class in VCR_TEST_VIDEOS.
"""

from __future__ import annotations

import os

import pytest
import torch
import vcr_core as vcr
from vcr_core.availability import availability
from vcr_core.components import build
from vcr_core.config.experiment import Chosen
from vcr_core.plugins import registry
from vcr_core.stats import rate
from vcr_core.weights.places import find
from vcr_models.zoo.catalog import catalog

pytestmark = pytest.mark.weights
VIDEOS = "VCR_TEST_VIDEOS"


def chosen(ref):
    entry, variant = registry().find("model", ref)
    weights = next(w for w in entry.spec.weights if w.variant == variant)
    if find(weights) is None:
        pytest.skip(f"the file of {ref} is not here")
    state = availability(entry.spec, weights)
    if not state.ok:
        pytest.skip(state.text)
    return Chosen(spec=entry.spec, distribution=entry.distribution, version=entry.version,
                  variant=variant, params={})  # fmt: skip


@pytest.mark.parametrize("ref", catalog())
def test_a_published_file_loads_strictly_and_predicts(ref):
    model = build(chosen(ref)).for_views("light")
    variant = catalog()[ref]
    clip = torch.rand(1, variant.frames, 3, variant.size, variant.size)
    with torch.no_grad():
        first, again = model.logits(clip), model.logits(clip)
    assert torch.equal(first, again)
    assert torch.isfinite(first).all()


@pytest.mark.parametrize("ref", catalog())
def test_accuracy_is_the_published_one_within_the_interval(ref):
    chosen(ref)
    if not os.environ.get(VIDEOS):
        pytest.skip(f"{VIDEOS} names no folder of labelled videos")
    published = catalog()[ref].top1
    videos = vcr.load("dataset", "folder", root=os.environ[VIDEOS])
    result = vcr.evaluate(model=ref, dataset=videos, protocol={"views": "full"})
    counts = result.summary()["definitions"]["clean_accuracy"]
    interval = rate(counts["value"] * counts["n"], counts["n"])
    assert interval.low <= published / 100 <= interval.high
