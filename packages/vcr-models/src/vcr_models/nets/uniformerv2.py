"""UniFormerV2: CLIP's image tower with global blocks that gather over the whole clip.

Li et al., "UniFormerV2: Spatiotemporal Learning by Arming Image ViTs with Video UniFormer",
arXiv 2211.09552, section 3. Two layouts are known, the official one and mmaction2's; they differ in
the names of the last norm and the classifier only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from vcr_models.nets.class_head import ClassHead
from vcr_models.nets.clip_blocks import EPS, Attention, Mlp, with_class_token
from vcr_models.nets.memory import Recomputing

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class UniFormerV2Shape:
    """Sizes of a network.

    Attributes:
        width: channels of a token.
        depth: number of blocks.
        heads: attention heads.
        patch: side of a token in pixels.
        frames: frames of a clip.
        size: side of a frame in pixels.
        classes: rows of the head.
        gathered: blocks behind which a global block looks at a copy of the tokens.
        local: local relation modules around the attention (not in the Kinetics files).
        halve: the first convolution covers three frames and halves their number.
        reduction: of the channels inside the local modules.
        layout: whose names the last parameters have.
    """

    width: int = 768
    depth: int = 12
    heads: int = 12
    patch: int = 16
    frames: int = 8
    size: int = 224
    classes: int = 400
    gathered: tuple[int, ...] = (8, 9, 10, 11)
    local: bool = False
    halve: bool = False
    reduction: float = 1.5
    layout: Literal["mmaction2", "official"] = "mmaction2"


class UniFormerV2(nn.Module):
    """The network.

    Args:
        shape: its sizes.
    """

    def __init__(self, shape: UniFormerV2Shape) -> None:
        super().__init__()
        self.shape = shape
        self.backbone = Backbone(shape)
        if shape.layout == "mmaction2":
            self.cls_head = ClassHead(shape.width, shape.classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        found: Tensor = self.backbone(clips)
        if self.shape.layout == "mmaction2":
            found = self.cls_head(found)
        return found


class Backbone(nn.Module):
    """From clips to features."""

    def __init__(self, shape: UniFormerV2Shape) -> None:
        super().__init__()
        width, side = shape.width, shape.patch
        deep = 3 if shape.halve else 1
        self.conv1 = nn.Conv3d(
            3,
            width,
            (deep, side, side),
            (2 if shape.halve else 1, side, side),
            padding=(deep // 2, 0, 0),
            bias=False,
        )
        self.class_embedding = nn.Parameter(torch.zeros(width))
        places = (shape.size // side) ** 2
        self.positional_embedding = nn.Parameter(torch.zeros(1 + places, width))
        self.ln_pre = nn.LayerNorm(width, eps=EPS)
        self.transformer = Transformer(shape)

    def forward(self, clips: Tensor) -> Tensor:
        """Return ``[N, width]``, or logits in the official layout."""
        maps = self.conv1(clips).transpose(1, 2)
        tokens = with_class_token(
            maps.flatten(0, 1), self.class_embedding, self.positional_embedding
        )
        found: Tensor = self.transformer(self.ln_pre(tokens).unflatten(0, maps.shape[:2]))
        return found


class Transformer(nn.Module):
    """Blocks within frames, and a query that asks copies of their tokens across frames."""

    def __init__(self, shape: UniFormerV2Shape) -> None:
        super().__init__()
        width = shape.width
        self.gathered = {block: i for i, block in enumerate(shape.gathered)}
        self.grid = shape.size // shape.patch
        self.temporal_cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.balance = nn.Parameter(torch.zeros(width))
        self.resblocks = Recomputing(LocalBlock(shape) for _ in range(shape.depth))
        self.dpe = nn.ModuleList(
            nn.Conv3d(width, width, 3, padding=1, groups=width) for _ in shape.gathered
        )
        self.dec = nn.ModuleList(GlobalBlock(shape) for _ in shape.gathered)
        if shape.layout == "official":
            classifier = nn.Linear(width, shape.classes)
            self.proj = nn.Sequential(nn.LayerNorm(width, eps=EPS), nn.Dropout(0.5), classifier)
        else:
            self.norm = nn.LayerNorm(width, eps=EPS)
        self.official = shape.layout == "official"

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, width]`` (or ``[N, classes]``) of ``[N, T, 1 + places, width]``."""
        asking = self.temporal_cls_token.expand(len(tokens), -1, -1)
        for number, block in enumerate(self.resblocks):
            tokens = self.resblocks.step(block, tokens)
            if number in self.gathered:
                which = self.gathered[number]
                asking = self.dec[which](asking, self._copy(tokens, which))
        weight = torch.sigmoid(self.balance)
        mean = tokens[:, :, 0].mean(dim=1)
        mixed = (1 - weight) * asking[:, 0] + weight * mean
        last: Tensor = self.proj(mixed) if self.official else self.norm(mixed)
        return last

    def _copy(self, tokens: Tensor, which: int) -> Tensor:
        """Return all tokens of a clip ``[N, T (1 + places), width]``, places with positions."""
        first, places = tokens[:, :, :1], tokens[:, :, 1:]
        maps = places.unflatten(2, (self.grid, self.grid)).permute(0, 4, 1, 2, 3)  # type: ignore[no-untyped-call]
        moved = self.dpe[which](maps).permute(0, 2, 3, 4, 1).flatten(2, 3)
        return torch.cat((first, places + moved), dim=2).flatten(1, 2)


class LocalBlock(nn.Module):
    """A block of the image tower, with local relation modules where the file has them."""

    def __init__(self, shape: UniFormerV2Shape) -> None:
        super().__init__()
        self.grid = shape.size // shape.patch
        if shape.local:
            self.lmhra1 = LocalRelation(shape)
            self.lmhra2 = LocalRelation(shape)
        self.local = shape.local
        self.attn = Attention(shape.width, shape.heads)
        self.ln_1 = nn.LayerNorm(shape.width, eps=EPS)
        self.mlp = Mlp(shape.width, 4 * shape.width)
        self.ln_2 = nn.LayerNorm(shape.width, eps=EPS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, T, 1 + places, width]``."""
        if self.local:
            tokens = self._relate(self.lmhra1, tokens)
        within = self.attn(self.ln_1(tokens).flatten(0, 1))
        tokens = tokens + within.unflatten(0, tokens.shape[:2])
        if self.local:
            tokens = self._relate(self.lmhra2, tokens)
        out: Tensor = tokens + self.mlp(self.ln_2(tokens))
        return out

    def _relate(self, module: nn.Module, tokens: Tensor) -> Tensor:
        first, places = tokens[:, :, :1], tokens[:, :, 1:]
        maps = places.unflatten(2, (self.grid, self.grid)).permute(0, 4, 1, 2, 3).contiguous()  # type: ignore[no-untyped-call]
        moved = module(maps).permute(0, 2, 3, 4, 1).flatten(2, 3)
        return torch.cat((first, places + moved), dim=2)


class LocalRelation(nn.Module):
    """Relations of neighbouring frames: a depthwise convolution over time between two maps."""

    def __init__(self, shape: UniFormerV2Shape) -> None:
        super().__init__()
        width, inner = shape.width, int(shape.width // shape.reduction)
        self.pos_embed = nn.Sequential(
            nn.BatchNorm3d(width),
            nn.Conv3d(width, inner, 1),
            nn.Conv3d(inner, inner, (3, 1, 1), padding=(1, 0, 0), groups=inner),
            nn.Conv3d(inner, width, 1),
        )

    def forward(self, maps: Tensor) -> Tensor:
        """Return ``[N, width, T, h, w]``."""
        found: Tensor = self.pos_embed(maps)
        return found


class GlobalBlock(nn.Module):
    """A query that asks all tokens of a clip (eqs. 4 to 6)."""

    def __init__(self, shape: UniFormerV2Shape) -> None:
        super().__init__()
        width = shape.width
        self.attn = Attention(width, shape.heads)
        self.ln_1 = nn.LayerNorm(width, eps=EPS)
        self.mlp = Mlp(width, 4 * width)
        self.ln_2 = nn.LayerNorm(width, eps=EPS)
        self.ln_3 = nn.LayerNorm(width, eps=EPS)

    def forward(self, asking: Tensor, tokens: Tensor) -> Tensor:
        """Return ``[N, 1, width]``."""
        asking = asking + self.attn.cross(self.ln_1(asking), self.ln_3(tokens))
        out: Tensor = asking + self.mlp(self.ln_2(asking))
        return out
