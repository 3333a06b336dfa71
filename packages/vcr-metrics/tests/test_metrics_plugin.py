from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
from vcr_metrics.plugin import vcr_register_metrics

SPECS = {spec.name: spec for spec in vcr_register_metrics()}


def test_names():
    assert set(SPECS) == {
        "dists", "flicker", "lpips", "lpips-vcrbench", "ms-ssim", "mse", "psnr", "ssim",
        "ssim-uniform7", "st-lpips", "tlp", "vmaf", "warping-error",
    }  # fmt: skip


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


def test_weight_files_of_metrics_are_listed_and_looked_for_where_a_run_says(tmp_path, monkeypatch):
    from click.testing import CliRunner
    from vcr_core.cli.weights import command
    from vcr_core.components import build
    from vcr_core.config.objects import choose_component
    from vcr_core.errors import ComponentUnavailable

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("VCR_WEIGHTS_DIR", str(tmp_path))
    done = CliRunner().invoke(command, ["list", "lpips", "dists"])
    assert done.exit_code == 0, done.output
    listed = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert listed == ["lpips.alex", "lpips.vgg", "lpips.squeeze", "dists"]
    chosen = choose_component("metric", "lpips.squeeze", {})
    pytest.importorskip("lpips", reason="needs vcr-metrics[lpips]")
    with pytest.raises(ComponentUnavailable, match="a-folder-of-the-run"):
        build(chosen, (tmp_path / "a-folder-of-the-run",))


@pytest.mark.parametrize(
    ("ref", "params"),
    [
        ("lpips.vgg", {"net": "vgg"}),
        ("st-lpips.vgg", {"net": "vgg"}),
        ("vmaf.neg", {"model": "vmaf_v0.6.1neg"}),
        ("warping-error.dis", {"flow": "dis"}),
    ],
)
def test_presets(ref, params):
    from vcr_core.config.objects import choose_component

    assert params.items() <= choose_component("metric", ref, {}).params.items()
