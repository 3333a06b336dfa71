"""TRN: relations of ordered frames, over a 2D ResNet.

Zhou et al., "Temporal Relational Reasoning in Videos", arXiv 1711.08496, section 3. Parameter names
are those of mmaction2's release. Which frames a relation looks at is drawn anew at every pass there
(equation 3 asks for all of them in expectation); here it is drawn once, from a seed, so that a
prediction and its gradient belong to one function.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

INNER = {"multi": 256, "single": 512}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrnShape:
    """Sizes of a network.

    Attributes:
        depth: of the ResNet: 18 or 50.
        classes: rows of the head.
        frames: frames of a clip.
        hidden: channels of a frame.
        scales: relations of every number of frames from all down to two, or of all frames only.
        per_scale: relations of a scale.
        chosen: relations are drawn from ``seed``, or the first ones in order.
        seed: of the draw.
    """

    depth: Literal[18, 50] = 50
    classes: int = 174
    frames: int = 8
    hidden: int = 256
    scales: Literal["multi", "single"] = "multi"
    per_scale: int = 3
    chosen: Literal["drawn", "first"] = "drawn"
    seed: int = 0


class Trn(nn.Module):
    """The network.

    Args:
        shape: its sizes.
    """

    def __init__(self, shape: TrnShape) -> None:
        super().__init__()
        self.backbone = ResNet(shape.depth)
        self.cls_head = Head(shape, self.backbone.channels)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        frames = clips.transpose(1, 2)
        maps = self.backbone(frames.flatten(0, 1))
        logits: Tensor = self.cls_head(maps.mean(dim=(2, 3)).unflatten(0, frames.shape[:2]))
        return logits


class Head(nn.Module):
    """From features of frames to classes."""

    def __init__(self, shape: TrnShape, channels: int) -> None:
        super().__init__()
        self.fc_cls = nn.Linear(channels, shape.hidden)
        self.consensus = ManyScales(shape) if shape.scales == "multi" else OneScale(shape)

    def forward(self, features: Tensor) -> Tensor:
        """Return ``[N, classes]`` of ``[N, T, channels]``."""
        found: Tensor = self.consensus(self.fc_cls(features))
        return found


def _relation(shape: TrnShape, frames: int) -> nn.Sequential:
    inner = INNER[shape.scales]
    return nn.Sequential(
        nn.ReLU(),
        nn.Linear(frames * shape.hidden, inner),
        nn.ReLU(),
        nn.Linear(inner, shape.classes),
    )


class OneScale(nn.Module):
    """The relation of all frames (equation 1)."""

    def __init__(self, shape: TrnShape) -> None:
        super().__init__()
        self.classifier = _relation(shape, shape.frames)

    def forward(self, frames: Tensor) -> Tensor:
        """Return ``[N, classes]`` of ``[N, T, hidden]``."""
        found: Tensor = self.classifier(frames.flatten(1))
        return found


class ManyScales(nn.Module):
    """The sum over relations of all, all but one, … and two frames (equation 4)."""

    def __init__(self, shape: TrnShape) -> None:
        super().__init__()
        self.sizes = list(range(shape.frames, 1, -1))
        self.fc_fusion_scales = nn.ModuleList(_relation(shape, size) for size in self.sizes)
        self.relations = [chosen_relations(shape, size) for size in self.sizes]

    def forward(self, frames: Tensor) -> Tensor:
        """Return ``[N, classes]`` of ``[N, T, hidden]``."""
        found = []
        for part, relations in zip(self.fc_fusion_scales, self.relations, strict=True):
            found += [part(frames[:, list(chosen)].flatten(1)) for chosen in relations]
        return torch.stack(found).sum(dim=0)


def chosen_relations(shape: TrnShape, size: int) -> list[tuple[int, ...]]:
    """Return which frames the relations of one scale look at, in order."""
    every = list(itertools.combinations(range(shape.frames), size))
    if shape.chosen == "first" or len(every) <= shape.per_scale:
        return every[: shape.per_scale]
    order = np.random.Generator(np.random.PCG64([shape.seed, size])).permutation(len(every))
    return [every[index] for index in sorted(order[: shape.per_scale])]


class ConvNorm(nn.Module):
    """A convolution and its norm under mmaction2's names."""

    def __init__(self, into: int, out: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, out, kernel, stride, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(out)

    def forward(self, maps: Tensor) -> Tensor:
        """Return ``[N, out, h, w]``."""
        found: Tensor = self.bn(self.conv(maps))
        return found


class ResidualBlock(nn.Module):
    """Two (3 x 3, 3 x 3) or three (1 x 1, 3 x 3, 1 x 1) convolutions beside a shortcut."""

    def __init__(self, into: int, width: int, stride: int, *, deep: bool) -> None:
        super().__init__()
        out = 4 * width if deep else width
        if deep:
            self.conv1 = ConvNorm(into, width, 1)
            self.conv2 = ConvNorm(width, width, 3, stride)
            self.conv3 = ConvNorm(width, out, 1)
        else:
            self.conv1 = ConvNorm(into, width, 3, stride)
            self.conv2 = ConvNorm(width, width, 3)
        self.deep = deep
        short = stride == 1 and into == out
        self.downsample = None if short else ConvNorm(into, out, 1, stride)
        self.relu = nn.ReLU()

    def forward(self, maps: Tensor) -> Tensor:
        """Return ``[N, out, h, w]``."""
        beside = maps if self.downsample is None else self.downsample(maps)
        found = self.conv2(self.relu(self.conv1(maps)))
        if self.deep:
            found = self.conv3(self.relu(found))
        last: Tensor = self.relu(found + beside)
        return last


class ResNet(nn.Module):
    """A 2D ResNet; the stride of a deep block is that of its 3 x 3 convolution."""

    def __init__(self, depth: Literal[18, 50]) -> None:
        super().__init__()
        deep = depth == 50
        counts = (3, 4, 6, 3) if deep else (2, 2, 2, 2)
        self.conv1 = ConvNorm(3, 64, 7, 2)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        into = 64
        for number, count in enumerate(counts):
            width = 64 * 2**number
            out = 4 * width if deep else width
            stride = 1 if number == 0 else 2
            self.add_module(
                f"layer{number + 1}",
                nn.Sequential(
                    ResidualBlock(into, width, stride, deep=deep),
                    *(ResidualBlock(out, width, 1, deep=deep) for _ in range(count - 1)),
                ),
            )
            into = out
        self.channels = into

    def forward(self, frames: Tensor) -> Tensor:
        """Return ``[N, channels, h, w]`` of ``[N, 3, H, W]``."""
        maps = self.maxpool(self.relu(self.conv1(frames)))
        for number in range(1, 5):
            maps = self.get_submodule(f"layer{number}")(maps)
        out: Tensor = maps
        return out
