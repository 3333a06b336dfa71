"""What each component of the zoo is, in a line, and the paper that describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_ARXIV: Final = "https://arxiv.org/abs/"


@dataclass(frozen=True, slots=True)
class Family:
    """A component.

    Attributes:
        summary: one line.
        paper: address of the paper.
        tags: free words.
    """

    summary: str
    paper: str
    tags: tuple[str, ...] = ()


def _of(summary: str, arxiv: str, *tags: str) -> Family:
    return Family(summary, _ARXIV + arxiv, tags)


FAMILIES: Final = {
    "c3d": _of("C3D: plain 3D convolutions", "1412.0767", "cnn"),
    "tsn": _of("TSN: a 2D network over segments of the video", "1608.00859", "cnn", "2d"),
    "i3d": _of("I3D: inflated 3D ResNet", "1705.07750", "cnn"),
    "i3d-nonlocal": _of("I3D with non-local blocks", "1711.07971", "cnn"),
    "c2d": _of("C2D: a 2D ResNet with pools over time", "1711.07971", "cnn"),
    "r2plus1d": _of("R(2+1)D: convolutions over space, then over time", "1711.11248", "cnn"),
    "slowonly": _of("SlowOnly: the slow pathway of SlowFast", "1812.03982", "cnn"),
    "trn": _of("TRN: relations of ordered frames, deterministic here", "1711.08496", "cnn", "2d"),
    "tsm": _of("TSM: a 2D network that shifts channels over time", "1811.08383", "cnn", "2d"),
    "tsm-nonlocal": _of("TSM with non-local blocks", "1811.08383", "cnn", "2d"),
    "slowfast": _of("SlowFast: a slow and a fast pathway", "1812.03982", "cnn"),
    "csn": _of("CSN: channel-separated 3D convolutions", "1904.02811", "cnn"),
    "tin": _of("TIN: learned shifts over time", "2001.06499", "cnn", "2d"),
    "tpn": _of("TPN: a pyramid of tempos", "2004.03548", "cnn"),
    "x3d": _of("X3D: small 3D networks, expanded axis by axis", "2004.04730", "cnn"),
    "tanet": _of("TANet: temporally adaptive kernels", "2005.06803", "cnn", "2d"),
    "timesformer": _of("TimeSformer: attention over time and space", "2102.05095", "transformer"),
    "vivit": _of("ViViT: a joint space-time transformer", "2103.15691", "transformer"),
    "videomae": _of("VideoMAE: a video ViT after masked pre-training", "2203.12602", "transformer"),
    "mvit": _of("MViT: a multiscale transformer", "2104.11227", "transformer"),
    "mvitv2": _of("MViTv2: improved multiscale transformer", "2112.01526", "transformer"),
    "video-swin": _of("Video Swin: shifted 3D windows", "2106.13230", "transformer"),
    "r3d": _of("R3D-18: a 3D ResNet", "1711.11248", "cnn"),
    "mc3": _of("MC3-18: 3D convolutions in the first layers only", "1711.11248", "cnn"),
    "s3d": _of("S3D: separable 3D Inception", "1712.04851", "cnn"),
    "uniformer": _of("UniFormer: convolution first, attention later", "2201.04676", "transformer"),
    "uniformerv2": _of("UniFormerV2: CLIP's tower with global blocks", "2211.09552", "transformer"),
    "videomaev2": _of("VideoMAE V2: distilled from a giant", "2303.16727", "transformer"),
    "internvideo": _of("InternVideo: its masked video encoder", "2212.03191", "transformer"),
    "umt": _of("UMT: a ViT taught by CLIP without masks", "2303.16058", "transformer"),
    "amd": Family(
        "AMD: a small ViT by asymmetric masked distillation",
        _ARXIV + "2311.03149",
        ("transformer",),
    ),
    "internvideo2": _of("InternVideo2: stage 1, tuned to actions", "2403.15377", "transformer"),
    "tadaformer": _of(
        "TAdaFormer: CLIP's tower with adaptive convolutions", "2308.05787", "transformer"
    ),
    "one-peace": _of("ONE-PEACE: its vision branch", "2305.11172", "transformer", "large"),
    "ila": _of("ILA: CLIP's tower with learned alignment", "2304.10465", "transformer", "text"),
    "actionclip": _of("ActionCLIP: classes as texts", "2109.08472", "transformer", "text"),
    "clip-zeroshot": _of(
        "CLIP over frames, classes as texts, nothing tuned", "2103.00020", "transformer", "text"
    ),
}
"""Components by name."""
