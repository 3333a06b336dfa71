"""ILA: CLIP's image tower whose blocks first align what neighbouring frames share.

Tu et al., "Implicit Temporal Modeling with Learnable Alignment for Video Recognition",
arXiv 2304.10465, section 3. Between two frames a small network points at a place in each; what lies
around those places is averaged and added, together with the network's own features. Texts of the
classes are adapted to each video (the prompts of X-CLIP, arXiv 2208.02816, section 3.3). Parameter
names are those of the official release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional

from vcr_models.nets.clip_blocks import (
    EPS,
    Attention,
    Block,
    ImageShape,
    ImageTower,
    Mlp,
    QuickGELU,
    Texts,
    TextShape,
    TextTower,
)
from vcr_models.nets.memory import Recomputing

if TYPE_CHECKING:
    from torch import Tensor

INNER: Final = 256
HALF: Final = 128
REACH: Final = 0.25
SLOPE: Final = 1.5
POINT: Final = 0.75
STEP: Final = 0.2
HEAD_WIDTH: Final = 64


class Ila(TextTower):
    """The network, with the features of its class names as constants.

    Args:
        image: sizes of the image tower.
        text: sizes of the text tower.
        frames: frames of a clip.
        texts: token rows of the class names ``[classes, context]``.
        prompt_layers: layers that adapt texts to a video.
        mixing_layers: blocks over the features of frames.
        disturbed: average nine displaced masks, as the official network does in training. The
            official evaluation switches it off; a network that forgets to computes this.
    """

    def __init__(
        self,
        image: ImageShape,
        text: TextShape,
        *,
        frames: int,
        texts: Tensor,
        prompt_layers: int = 2,
        mixing_layers: int = 1,
        disturbed: bool = False,
    ) -> None:
        super().__init__(text)
        width = image.output
        self.prompts_visual_ln = nn.LayerNorm(image.width, eps=EPS)
        self.prompts_visual_proj = nn.Parameter(torch.zeros(image.width, width))
        self.prompts_generator = Prompts(width, prompt_layers)
        self.mit = FrameMixer(width, frames, mixing_layers)
        self.visual = AligningTower(image, frames, disturbed=disturbed)
        self.texts = Texts(texts)

    def known_texts(self) -> Tensor:
        """Return the features of the class names ``[classes, output]``."""
        return self.texts.known(self)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        frames = clips.transpose(1, 2)
        seen, places = self.visual.look(frames)
        video = functional.normalize(self.mit(seen), dim=-1)
        places = (self.prompts_visual_ln(places) @ self.prompts_visual_proj).mean(dim=1)
        known = self.known_texts().expand(len(clips), -1, -1)
        texts = functional.normalize(known + self.prompts_generator(known, places), dim=-1)
        return self.logit_scale.exp() * torch.einsum("ne,nke->nk", video, texts)


class AligningTower(ImageTower):
    """The image tower with aligning blocks."""

    def __init__(self, shape: ImageShape, frames: int, *, disturbed: bool) -> None:
        self._frames, self._disturbed = frames, disturbed
        super().__init__(shape)

    def blocks(self, shape: ImageShape) -> nn.Module:
        """Return aligning blocks."""
        return AligningTransformer(shape, disturbed=self._disturbed)

    def look(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return features of frames and tokens of places.

        Args:
            frames: ``[N, T, 3, H, W]``, normalised.

        Returns:
            ``[N, T, output]`` and ``[N, T, places, width]``.
        """
        tokens = self.tokens(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])  # type: ignore[no-untyped-call]
        tokens = self.transformer(tokens)
        return self.ln_post(tokens[:, :, 0]) @ self.proj, tokens[:, :, 1:]


class AligningTransformer(nn.Module):
    """A stack of aligning blocks under the name ``resblocks``."""

    def __init__(self, shape: ImageShape, *, disturbed: bool) -> None:
        super().__init__()
        self.resblocks = Recomputing(
            AligningBlock(shape, disturbed=disturbed) for _ in range(shape.depth)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, T, 1 + places, width]``."""
        out: Tensor = self.resblocks(tokens)
        return out


class AligningBlock(nn.Module):
    """What frames share, then attention within each frame and the MLP."""

    def __init__(self, shape: ImageShape, *, disturbed: bool) -> None:
        super().__init__()
        width = shape.width
        self.message_fc = nn.Linear(width, width)
        self.message_ln = nn.LayerNorm(width, eps=EPS)
        self.message_attn = Alignment(width, shape.grid, disturbed=disturbed)
        self.temporal_skip_fc = nn.Linear(width, width)
        self.temporal_skip_align_fc = nn.Linear(width, width)
        self.attn = Attention(width, shape.head_count)
        self.ln_1 = nn.LayerNorm(width, eps=EPS)
        self.mlp = Mlp(width, 4 * width)
        self.ln_2 = nn.LayerNorm(width, eps=EPS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, T, 1 + places, width]``."""
        aligned, shared = self.message_attn(self.message_ln(self.message_fc(tokens)))
        tokens = tokens + self.temporal_skip_align_fc(aligned) + self.temporal_skip_fc(shared)
        within = self.attn(self.ln_1(tokens).flatten(0, 1))
        tokens = tokens + within.unflatten(0, tokens.shape[:2])
        out: Tensor = tokens + self.mlp(self.ln_2(tokens))
        return out


class Alignment(nn.Module):
    """Points at what two neighbouring frames share (eqs. 2 to 8).

    Args:
        width: channels of a token.
        grid: places along a side.
        disturbed: see :class:`Ila`.
    """

    def __init__(self, width: int, grid: int, *, disturbed: bool = False) -> None:
        super().__init__()
        self.grid, self.disturbed = grid, disturbed
        self.interactive_block = nn.Sequential(
            Separable(2 * width, INNER),
            nn.Conv2d(INNER, INNER, 3, padding=1),
            nn.BatchNorm2d(INNER),
            nn.ReLU(),
        )
        self.prediction_block = nn.Sequential(
            nn.Conv2d(INNER, HALF, 3, padding=1),
            nn.BatchNorm2d(HALF),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(HALF, HALF, 3, padding=1),
            nn.BatchNorm2d(HALF),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.AdaptiveMaxPool2d(1),
            nn.Identity(),
            nn.Conv1d(HALF, HALF // 2, 1, groups=2),
            nn.ReLU(),
            nn.Conv1d(HALF // 2, 4, 1, groups=2),
            nn.Tanh(),
        )
        self.conv = nn.Conv3d(HALF, HALF, (3, 1, 1), padding=(1, 0, 0))
        self.fc = nn.Linear(HALF, width)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return aligned tokens and shared features, each ``[N, T, 1 + places, width]``."""
        count, frames = tokens.shape[:2]
        first, places = tokens[:, :, :1], tokens[:, :, 1:]
        maps = places.unflatten(2, (self.grid, self.grid)).movedim(-1, 2)  # type: ignore[no-untyped-call]
        before, after = maps[:, :-1], maps[:, 1:]
        pairs = torch.cat((before, after), dim=2).flatten(0, 1).contiguous()
        features = self.interactive_block(pairs)
        points = self._points(features, count)
        masks = [self._mask(points[..., :2]), self._mask(points[..., 2:])]
        kept = [part * mask[:, :, None] for part, mask in zip((before, after), masks, strict=True)]
        aligned = _stitch(*kept).flatten(3).transpose(2, 3)
        found = features.unflatten(0, (count, frames - 1))
        inner = _stitch(found[:, :, :HALF], found[:, :, HALF:]).transpose(1, 2)
        shared = self.fc(self.conv(inner).permute(0, 2, 3, 4, 1).flatten(2, 3))
        return torch.cat((first, aligned), dim=2), torch.cat((first, shared), dim=2)

    def _points(self, features: Tensor, count: int) -> Tensor:
        """Return ``[N, T - 1, 4]``: x and y in the earlier frame, x and y in the later one."""
        steps = list(self.prediction_block)
        for step in steps[:9]:
            features = step(features)
        line = features.flatten(1).unflatten(0, (count, -1)).transpose(1, 2)  # type: ignore[no-untyped-call]
        for step in steps[10:]:
            line = step(line)
        out: Tensor = POINT * line.transpose(1, 2)
        return out

    def _mask(self, points: Tensor) -> Tensor:
        """Return weights ``[N, T - 1, grid, grid]`` around points ``[N, T - 1, 2]``."""
        if not self.disturbed:
            return self._around(points)
        moves = [(x, y) for x in (-STEP, 0.0, STEP) for y in (-STEP, 0.0, STEP)]
        found = [self._around(points + points.new_tensor(move)) for move in moves]
        return torch.stack(found).mean(dim=0)

    def _around(self, points: Tensor) -> Tensor:
        line = torch.linspace(-1, 1, self.grid, dtype=points.dtype, device=points.device)
        away = (line - points[..., None]).abs()
        near = (1 - SLOPE * (away - REACH)).clamp(min=0)
        weight = torch.where(away <= REACH, torch.ones_like(near), near)
        x, y = weight[..., 0, :], weight[..., 1, :]
        return y[..., :, None] * x[..., None, :]


def _stitch(earlier: Tensor, later: Tensor) -> Tensor:
    """Return T frames of T - 1 pairs: the mean of both parts that show a frame."""
    inner = (earlier[:, 1:] + later[:, :-1]) / 2
    return torch.cat((earlier[:, :1], inner, later[:, -1:]), dim=1)


class Separable(nn.Module):
    """A depthwise and a pointwise convolution, each normalised."""

    def __init__(self, channels: int, output: int) -> None:
        super().__init__()
        self.depthwise_conv = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        )
        self.pointwise_conv = nn.Sequential(
            nn.Conv2d(channels, output, 1), nn.BatchNorm2d(output), nn.ReLU()
        )

    def forward(self, maps: Tensor) -> Tensor:
        """Return ``[N, output, h, w]``."""
        found: Tensor = self.pointwise_conv(self.depthwise_conv(maps))
        return found


class FrameMixer(nn.Module):
    """A transformer over the features of frames, beside a shortcut, and their mean."""

    def __init__(self, width: int, frames: int, depth: int) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.zeros(1, frames, width))
        self.resblocks = nn.Sequential(*(Block(width, width // HEAD_WIDTH) for _ in range(depth)))

    def forward(self, seen: Tensor) -> Tensor:
        """Return ``[N, width]`` of ``[N, T, width]``."""
        mixed: Tensor = self.resblocks(seen + self.positional_embedding)
        return (seen + mixed).mean(dim=1)


class Prompts(nn.Module):
    """What is added to the texts of the classes for one video."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(width))
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.decoder = nn.ModuleList(PromptLayer(width) for _ in range(depth))

    def forward(self, texts: Tensor, places: Tensor) -> Tensor:
        """Return ``[N, classes, width]`` of texts and places ``[N, places, width]``."""
        places = self.norm(places)
        for layer in self.decoder:
            texts = layer(texts, places)
        return self.alpha * texts


class PromptLayer(nn.Module):
    """Texts ask places, then an MLP."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cross_attn = PlainCrossAttention(width)
        self.norm1 = nn.LayerNorm(width, eps=EPS)
        self.norm3 = nn.LayerNorm(width, eps=EPS)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), QuickGELU(), nn.Dropout(0.0), nn.Linear(4 * width, width)
        )

    def forward(self, texts: Tensor, places: Tensor) -> Tensor:
        """Return ``[N, classes, width]``."""
        texts = texts + self.cross_attn(self.norm1(texts), places)
        mixed: Tensor = texts + self.mlp(self.norm3(texts))
        return mixed


class PlainCrossAttention(nn.Module):
    """Attention of texts to places; only the last map has a bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.proj = nn.Linear(width, width)

    def forward(self, asking: Tensor, others: Tensor) -> Tensor:
        """Return ``[N, classes, width]``."""
        parts = (self.q_proj(asking), self.k_proj(others), self.v_proj(others))
        q, k, v = (part.unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(found.transpose(1, 2).flatten(2))
        return out
