"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import MetricSpec, hookimpl


@hookimpl
def vcr_register_metrics() -> list[MetricSpec]:
    """Describe the metrics of this distribution."""
    return [
        MetricSpec(
            name="mse",
            summary="Mean squared error over all pixels, in squared 8-bit levels",
            target="vcr_metrics.mse:Mse",
            tags=frozenset({"distortion", "pair"}),
            example="vcr run run.toml --set 'metrics.names=[\"mse\"]'",
            higher_is_better=False,
            unit="levels²",
            identity_value=0.0,
            keys=("mse",),
            value_range=(0.0, 65025.0),
            per_frame=True,
        ),
        MetricSpec(
            name="psnr",
            summary="Peak signal-to-noise ratio of the whole video, and averaged over its frames",
            target="vcr_metrics.psnr:Psnr",
            params="vcr_metrics.params:PsnrParams",
            tags=frozenset({"distortion", "pair"}),
            example="vcr run run.toml --set 'metrics.names=[\"psnr\"]'",
            higher_is_better=True,
            unit="dB",
            identity_value=None,
            keys=("psnr", "psnr_frame_mean"),
            value_range=(0.0, None),
            per_frame=True,
        ),
        MetricSpec(
            name="ssim",
            summary="Structural similarity, Gaussian 11x11 window on each RGB channel",
            target="vcr_metrics.ssim:Ssim",
            reference="https://doi.org/10.1109/TIP.2003.819861",
            tags=frozenset({"distortion", "pair"}),
            example="vcr run run.toml --set 'metrics.names=[\"ssim\"]'",
            higher_is_better=True,
            identity_value=1.0,
            keys=("ssim",),
            value_range=(-1.0, 1.0),
            per_frame=True,
        ),
        MetricSpec(
            name="ssim-uniform7",
            summary="Structural similarity as in the VCR-Bench tables, uniform 7x7 window",
            target="vcr_metrics.ssim:SsimUniform7",
            reference="https://doi.org/10.1109/TIP.2003.819861",
            tags=frozenset({"distortion", "pair"}),
            example="vcr run run.toml --set 'metrics.names=[\"ssim-uniform7\"]'",
            higher_is_better=True,
            identity_value=1.0,
            keys=("ssim-uniform7",),
            value_range=(-1.0, 1.0),
            per_frame=True,
        ),
    ]
