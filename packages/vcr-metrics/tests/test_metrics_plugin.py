from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
from vcr_metrics.plugin import vcr_register_metrics

SPECS = {spec.name: spec for spec in vcr_register_metrics()}


def test_names():
    assert set(SPECS) == {"dists", "lpips", "mse", "psnr", "ssim", "ssim-uniform7"}


@pytest.mark.parametrize("name", ["mse", "psnr", "ssim", "ssim-uniform7"])
def test_declared_keys_and_identity_value(name, patterns):
    from vcr_core.protocols import ClipInfo

    spec = SPECS[name]
    module, _, attribute = spec.target.partition(":")
    metric = getattr(import_module(module), attribute)()
    video = patterns["B"]
    readings = metric.measure(video, video, ClipInfo())
    assert tuple(readings) == spec.keys
    value = readings[spec.keys[0]].value
    if spec.identity_value is None:
        assert value is None
    else:
        assert value == pytest.approx(spec.identity_value, abs=1e-12)
    assert len(readings[spec.keys[0]].per_frame) == video.shape[0]


def test_describing_the_metrics_imports_nothing_heavy():
    code = (
        "import sys, vcr_metrics.plugin as p, vcr_metrics.params; p.vcr_register_metrics(); "
        "assert not {'torch', 'numpy', 'skimage', 'av'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
