"""Detectors of tampering that come with the package."""

from __future__ import annotations

from vcr_core import ClipSpec, ModelSpec, WeightSpec

_CLIP = ClipSpec(frames=600, policy="all", size=112, reduce_to=112)
_LABELS = "tamper-all"
_PAPER = "https://arxiv.org/abs/2412.19794"


def _file(name: str, sha256: str, size: int, variant: str = "") -> WeightSpec:
    return WeightSpec(
        variant=variant,
        url=f"package:vcr_models/weights/{name}",
        sha256=sha256,
        bytes=size,
        license="MIT",
        label_space=_LABELS,
    )


SPECS: tuple[ModelSpec, ...] = (
    ModelSpec(
        name="tamper-baseline",
        summary="Detector of tampering by rules over differences between frames; no network",
        target="vcr_models.detectors.baseline:TamperBaseline",
        params="vcr_models.detectors.params:BaselineParams",
        reference=_PAPER,
        tags=frozenset({"detector", "bundled"}),
        example="vcr run --dataset tamper --model tamper-baseline --limit 60",
        label_space=_LABELS,
        num_classes=14,
        clip=_CLIP,
        weights=(
            WeightSpec(license="MIT", label_space=_LABELS),
            _file(
                "tamper-baseline.motion.json",
                "80a67a9f6fdf41e34a3e098f465824bf20af476a667bdfb711a94e18f0b9a486",
                558,
                variant="motion",
            ),
            _file(
                "tamper-baseline.lr.json",
                "b1efe54a612285391d2315d0f6367b32a2fa88f89fcc5e0cf3f6317e83b73cd7",
                2_913,
                variant="lr",
            ),
        ),
        differentiable=False,
    ),
    ModelSpec(
        name="tamper-net",
        summary="Tiny network in time over differences between frames, trained on tampered motion",
        target="vcr_models.detectors.net:TamperNetDetector",
        params="vcr_models.detectors.params:NetParams",
        reference=_PAPER,
        tags=frozenset({"detector", "bundled"}),
        example="vcr run --dataset tamper --model tamper-net --limit 60",
        label_space=_LABELS,
        num_classes=14,
        clip=_CLIP,
        weights=(
            _file(
                "tamper-net.safetensors",
                "f004d33be145e14234d6212637744063bf470fc406a7647b332d9639cc6b96f3",
                124_596,
            ),
        ),
    ),
)
