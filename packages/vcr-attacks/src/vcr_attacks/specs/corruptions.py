"""Common corruptions of frames: nobody attacks, the camera or the codec does."""

from __future__ import annotations

from vcr_core import AttackSpec

_IMAGENET_C = "https://arxiv.org/abs/1903.12261"
_GU = "https://arxiv.org/abs/1904.10076"


def _corruption(
    name: str,
    summary: str,
    target: str,
    group: str,
    *,
    stochastic: bool = False,
    params: str = "CorruptionParams",
    requires: tuple[str, ...] = (),
    reference: str = _IMAGENET_C,
    suite: str = "",
) -> AttackSpec:
    return AttackSpec(
        name=name,
        summary=summary,
        target=f"vcr_attacks.corruptions.{target}",
        params=f"vcr_attacks.params.corruptions:{params}",
        requires=requires,
        reference=reference,
        tags=frozenset({"corruption", group, *filter(None, [suite])}),
        example=f"vcr run --model tiny-r3d --attack {name} --set attack.severity=5 --limit 8",
        access="none",
        norms=frozenset({"none"}),
        stochastic=stochastic,
    )


SPECS: tuple[AttackSpec, ...] = (
    _corruption("brightness", "Brighter frames", "colour:Brightness", "colour", suite="gu10"),
    _corruption("contrast", "Less contrast", "colour:Contrast", "colour", suite="gu10"),
    _corruption("defocus-blur", "A lens out of focus", "blur:DefocusBlur", "blur"),
    _corruption("elastic", "Elastic deformation", "digital:Elastic", "digital", stochastic=True),
    _corruption("fog", "Fog before the camera", "weather:Fog", "weather", stochastic=True),
    _corruption("frost", "Frost on the lens", "weather:Frost", "weather", stochastic=True),
    _corruption("gaussian-blur", "Gaussian blur", "blur:GaussianBlur", "blur", suite="gu10"),
    _corruption(
        "gaussian-noise", "Gaussian noise", "noise:GaussianNoise", "noise", stochastic=True,
        suite="gu10",
    ),
    _corruption("glass-blur", "Frosted glass", "blur:GlassBlur", "blur", stochastic=True),
    _corruption("hue", "Turned hue", "colour:Hue", "colour", reference=_GU, suite="gu10"),
    _corruption(
        "impulse-noise", "Salt and pepper", "noise:ImpulseNoise", "noise", stochastic=True,
        suite="gu10",
    ),
    _corruption(
        "jpeg-compression", "JPEG compression", "digital:JpegCompression", "digital",
        requires=("pillow>=10",), suite="gu10",
    ),
    _corruption(
        "motion-blur-spatial", "Frames smeared along a line", "blur:MotionBlurSpatial", "blur",
        stochastic=True,
    ),
    _corruption("pixelate", "Coarser pixels", "digital:Pixelate", "digital", suite="gu10"),
    _corruption("saturate", "Less or more saturation", "colour:Saturate", "colour", suite="gu10"),
    _corruption(
        "shot-noise", "Photon noise", "noise:ShotNoise", "noise", stochastic=True,
        params="TableParams",
    ),
    _corruption("snow", "Falling snow", "weather:Snow", "weather", stochastic=True),
    _corruption(
        "speckle-noise", "Noise that grows with brightness", "noise:SpeckleNoise", "noise",
        stochastic=True, params="TableParams",
    ),
    _corruption(
        "translate", "Shifted along a diagonal", "digital:Translate", "camera", stochastic=True,
        reference=_GU, suite="gu10",
    ),
    _corruption("zoom-blur", "A zoom while the shutter is open", "blur:ZoomBlur", "blur"),
)  # fmt: skip
