"""Common corruptions of frames: nobody attacks, the camera or the weather does."""

from __future__ import annotations

from vcr_core import AttackSpec
from vcr_core.specs import Corruption, SuiteMember

from vcr_attacks.specs.suites import GU10, KINETICS400_P, MINI_KINETICS_C, MINI_SSV2_C, within

_IMAGENET_C = "https://arxiv.org/abs/1903.12261"
_GU = "https://arxiv.org/abs/1904.10076"
_YI = "https://arxiv.org/abs/2110.06513"
_SCHIAPPA = "https://arxiv.org/abs/2207.01398"

_YI_BOTH = (within(MINI_KINETICS_C), within(MINI_SSV2_C))


def _corruption(
    name: str,
    summary: str,
    target: str,
    group: str,
    *suites: SuiteMember,
    stochastic: bool = False,
    params: str = "CorruptionParams",
    requires: tuple[str, ...] = (),
    reference: str = _IMAGENET_C,
) -> AttackSpec:
    return AttackSpec(
        name=name,
        summary=summary,
        target=f"vcr_attacks.corruptions.{target}",
        params=f"vcr_attacks.params.corruptions:{params}",
        requires=requires,
        reference=reference,
        tags=frozenset({"corruption", group, *(member.suite.name for member in suites)}),
        example=f"vcr run --model tiny-r3d --attack {name} --set attack.severity=5 --limit 8",
        access="none",
        norms=frozenset({"none"}),
        stochastic=stochastic,
        corruption=Corruption(group=group, member_of=suites),
    )


SPECS: tuple[AttackSpec, ...] = (
    _corruption(
        "brightness", "Brighter frames", "colour:Brightness", "colour", within(GU10), *_YI_BOTH
    ),
    _corruption(
        "contrast", "Less contrast", "colour:Contrast", "colour",
        within(GU10, table="imagenet-c"), within(MINI_KINETICS_C, table="imagenet-c"),
        within(MINI_SSV2_C, table="mini-ssv2-c"), params="ContrastParams",
    ),
    _corruption(
        "defocus-blur", "A lens out of focus", "blur:DefocusBlur", "blur", within(KINETICS400_P)
    ),
    _corruption("elastic", "Elastic deformation", "digital:Elastic", "digital", stochastic=True),
    _corruption("fog", "Fog before the camera", "weather:Fog", "weather", *_YI_BOTH,
                stochastic=True),
    _corruption("frost", "Frost on the lens", "weather:Frost", "weather", stochastic=True),
    _corruption("gaussian-blur", "Gaussian blur", "blur:GaussianBlur", "blur", within(GU10)),
    _corruption(
        "gaussian-noise", "Gaussian noise", "noise:GaussianNoise", "noise",
        within(GU10), within(KINETICS400_P), stochastic=True,
    ),
    _corruption("glass-blur", "Frosted glass", "blur:GlassBlur", "blur", stochastic=True),
    _corruption("hue", "Turned hue", "colour:Hue", "colour", within(GU10), reference=_GU),
    _corruption(
        "impulse-noise", "Salt and pepper", "noise:ImpulseNoise", "noise",
        within(GU10), within(KINETICS400_P), stochastic=True,
    ),
    _corruption(
        "jitter-rotate", "Every frame turned by another small angle", "camera:JitterRotate",
        "camera", within(KINETICS400_P), stochastic=True, reference=_SCHIAPPA,
    ),
    _corruption(
        "jitter-translate", "Every frame shifted by another few pixels", "camera:JitterTranslate",
        "camera", within(KINETICS400_P), stochastic=True, reference=_SCHIAPPA,
    ),
    _corruption(
        "jpeg-compression", "JPEG compression", "digital:JpegCompression", "digital",
        within(GU10), within(KINETICS400_P), requires=("pillow>=10",),
    ),
    _corruption(
        "motion-blur-spatial", "Frames smeared along a line", "blur:MotionBlurSpatial", "blur",
        within(KINETICS400_P), stochastic=True,
    ),
    _corruption("pixelate", "Coarser pixels", "digital:Pixelate", "digital", within(GU10)),
    _corruption("rain", "Rain before the camera", "rain:Rain", "weather", *_YI_BOTH,
                stochastic=True, reference=_YI),
    _corruption("saturate", "Less or more saturation", "colour:Saturate", "colour", within(GU10),
                *_YI_BOTH),
    _corruption(
        "shot-noise", "Photon noise", "noise:ShotNoise", "noise",
        within(MINI_KINETICS_C, table="imagenet-c"), within(MINI_SSV2_C, table="imagenet-c"),
        within(KINETICS400_P, table="kinetics400-p"), stochastic=True, params="TableParams",
    ),
    _corruption("snow", "Falling snow", "weather:Snow", "weather", stochastic=True),
    _corruption(
        "speckle-noise", "Noise that grows with brightness", "noise:SpeckleNoise", "noise",
        within(KINETICS400_P, table="kinetics400-p"), stochastic=True, params="TableParams",
    ),
    _corruption(
        "static-rotate", "All frames turned by one angle", "camera:StaticRotate", "camera",
        within(KINETICS400_P), reference=_SCHIAPPA,
    ),
    _corruption(
        "translate", "Shifted along a diagonal", "digital:Translate", "camera", within(GU10),
        stochastic=True, reference=_GU,
    ),
    _corruption("zoom-blur", "A zoom while the shutter is open", "blur:ZoomBlur", "blur",
                within(KINETICS400_P)),
)  # fmt: skip
