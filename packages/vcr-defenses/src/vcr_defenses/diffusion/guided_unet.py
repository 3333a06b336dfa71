"""The network of guided-diffusion's unconditional models, written from its description.

Dhariwal & Nichol, "Diffusion models beat GANs on image synthesis", NeurIPS 2021, table 4 and
section 3: residual blocks that also change the resolution, scale and shift by the step, attention
with 64 channels a head. Modules are named so that the keys of a published checkpoint fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.functional import avg_pool2d, interpolate, scaled_dot_product_attention, silu

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedShape:
    """Sizes of a network; the defaults are those of ``256x256_diffusion_uncond``.

    Attributes:
        width: channels of the finest resolution.
        multipliers: channels of each resolution in units of ``width``.
        blocks: residual blocks per resolution on the way down, one more on the way up.
        attention: reductions of the side at which blocks attend: 256 / 32, 256 / 16, 256 / 8.
        head: channels of an attention head.
        groups: of the normalisation.
        size: side of the images it was trained on.
        out: output channels; three are the noise, three more a variance.
    """

    width: int = 256
    multipliers: tuple[int, ...] = (1, 1, 2, 2, 4, 4)
    blocks: int = 2
    attention: tuple[int, ...] = (8, 16, 32)
    head: int = 64
    groups: int = 32
    size: int = 256
    out: int = 6


class _Residual(nn.Module):
    """A residual block, which may double or halve the resolution between its convolutions."""

    def __init__(self, shape: GuidedShape, inside: int, outside: int, resize: str = "") -> None:
        super().__init__()
        self._resize = resize
        self.in_layers = nn.Sequential(
            nn.GroupNorm(shape.groups, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1)
        )
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(4 * shape.width, 2 * outside))
        self.out_layers = nn.Sequential(
            nn.GroupNorm(shape.groups, outside),
            nn.SiLU(),
            nn.Identity(),
            nn.Conv2d(outside, outside, 3, padding=1),
        )
        same = inside == outside
        self.skip_connection = nn.Identity() if same else nn.Conv2d(inside, outside, 1)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        h = self.in_layers[1](self.in_layers[0](x))
        h, x = self.in_layers[2](self._resized(h)), self._resized(x)
        scale, shift = self.emb_layers(step)[..., None, None].chunk(2, dim=1)
        h = self.out_layers[0](h) * (1 + scale) + shift
        added: Tensor = self.skip_connection(x) + self.out_layers[3](silu(h))
        return added

    def _resized(self, x: Tensor) -> Tensor:
        if self._resize == "down":
            return avg_pool2d(x, 2)
        return interpolate(x, scale_factor=2.0) if self._resize == "up" else x


class _Attention(nn.Module):
    """Self-attention over all positions; the channels of a head's q, k and v lie side by side."""

    def __init__(self, shape: GuidedShape, channels: int) -> None:
        super().__init__()
        self._heads = channels // shape.head
        self.norm = nn.GroupNorm(shape.groups, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj_out = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        flat = x.flatten(2)
        heads = self.qkv(self.norm(flat)).view(len(x), self._heads, -1, flat.shape[2])
        q, k, v = heads.transpose(2, 3).chunk(3, dim=3)
        seen = scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(flat.shape)
        added: Tensor = (flat + self.proj_out(seen)).view_as(x)
        return added


class _First(nn.Conv2d):
    """A convolution that takes the step like the other blocks."""

    def forward(self, x: Tensor, step: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x)


class _Chain(nn.Sequential):
    def forward(self, x: Tensor, step: Tensor) -> Tensor:  # type: ignore[override]
        for block in self:
            x = block(x, step)
        return x


class GuidedUNet(nn.Module):
    """From images ``[N, 3, H, W]`` and a step to ``[N, out, H, W]``.

    Args:
        shape: sizes.
    """

    def __init__(self, shape: GuidedShape | None = None) -> None:
        super().__init__()
        shape = shape or GuidedShape()
        self._width = shape.width
        hidden = 4 * shape.width
        self.time_embed = nn.Sequential(
            nn.Linear(shape.width, hidden), nn.SiLU(), nn.Linear(hidden, hidden)
        )
        channels, skipped, reduction = shape.width, [shape.width], 1
        down: list[nn.Module] = [_Chain(_First(3, channels, 3, padding=1))]
        for level, multiplier in enumerate(shape.multipliers):
            wide = shape.width * multiplier
            for _ in range(shape.blocks):
                down.append(_chain(shape, channels, wide, reduction))
                channels = wide
                skipped.append(channels)
            if level < len(shape.multipliers) - 1:
                down.append(_Chain(_Residual(shape, channels, channels, "down")))
                skipped.append(channels)
                reduction *= 2
        self.input_blocks = nn.ModuleList(down)
        self.middle_block = _Chain(
            _Residual(shape, channels, channels),
            _Attention(shape, channels),
            _Residual(shape, channels, channels),
        )
        up: list[nn.Module] = []
        for level, multiplier in reversed(list(enumerate(shape.multipliers))):
            wide = shape.width * multiplier
            for number in range(shape.blocks + 1):
                chain = _chain(shape, channels + skipped.pop(), wide, reduction)
                channels = wide
                if level and number == shape.blocks:
                    chain.append(_Residual(shape, channels, channels, "up"))
                    reduction //= 2
                up.append(chain)
        self.output_blocks = nn.ModuleList(up)
        self.out = nn.Sequential(
            nn.GroupNorm(shape.groups, channels),
            nn.SiLU(),
            nn.Conv2d(channels, shape.out, 3, padding=1),
        )

    def forward(self, x: Tensor, step: int) -> Tensor:
        """Return the network's output; height and width are multiples of ``2 ** (levels - 1)``."""
        embedded = self.time_embed(step_features(step, self._width).to(x))[None]
        kept = []
        for block in self.input_blocks:
            x = block(x, embedded)
            kept.append(x)
        x = self.middle_block(x, embedded)
        for block in self.output_blocks:
            x = block(torch.cat([x, kept.pop()], dim=1), embedded)
        out: Tensor = self.out(x)
        return out


def step_features(step: int, width: int) -> Tensor:
    """Return ``[width]``: cosines, then sines, of the step at frequencies from 1 to 1e-4."""
    half = width // 2
    angle = step * torch.exp(torch.arange(half) * (-math.log(10000) / half))
    return torch.cat([angle.cos(), angle.sin()])


def _chain(shape: GuidedShape, inside: int, outside: int, reduction: int) -> _Chain:
    blocks: list[nn.Module] = [_Residual(shape, inside, outside)]
    if reduction in shape.attention:
        blocks.append(_Attention(shape, outside))
    return _Chain(*blocks)
