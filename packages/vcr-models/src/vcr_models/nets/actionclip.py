"""ActionCLIP: frames by CLIP's image tower, their order by an adapter, classes by texts.

Wang et al., "ActionCLIP: A New Paradigm for Video Action Recognition", arXiv 2109.08472,
section 3.3. Two layouts are known: the port in mmaction2 and the official release; they differ in
where parameters lie and in the norms of the adapter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast

import torch
from torch import nn
from torch.nn import functional

from vcr_models.nets.clip_blocks import EPS, Clip, ImageShape, Texts, TextShape, Transformer

if TYPE_CHECKING:
    from torch import Tensor

TEMPLATES: Final = (
    "a photo of action {}",
    "a picture of action {}",
    "Human action of {}",
    "{}, an action",
    "{} this is an action",
    "{}, a video of action",
    "Playing action of {}",
    "{}",
    "Playing a kind of action, {}",
    "Doing a kind of action, {}",
    "Look, the human is {}",
    "Can you recognize the action of {}?",
    "Video classification of {}",
    "A video of {}",
    "The man is {}",
    "The woman is {}",
)
"""Texts about a class that the port in mmaction2 asks with."""

SCALE: Final = 100.0
EPS_OFFICIAL: Final = 1e-12


class ActionClip(nn.Module):
    """The network, with the features of its texts as constants.

    Args:
        image: sizes of the image tower.
        text: sizes of the text tower.
        frames: frames of a clip.
        adapter_depth: blocks of the adapter.
        texts: token rows ``[templates, classes, context]``.
        layout: whose names the parameters have.
        positions: rows of the adapter's table; as many as frames where nothing else is said.
    """

    def __init__(
        self,
        image: ImageShape,
        text: TextShape,
        *,
        frames: int,
        texts: Tensor,
        adapter_depth: int = 6,
        layout: Literal["mmaction2", "official"] = "mmaction2",
        positions: int = 0,
    ) -> None:
        super().__init__()
        self.frames = frames
        official = layout == "official"
        self._names = ("model", "fusion_model") if official else ("clip", "adapter")
        adapter = Adapter(
            positions or frames,
            text.output,
            adapter_depth,
            heads=text.width // 64,
            eps=EPS_OFFICIAL if official else EPS,
        )
        self.add_module(self._names[0], Clip(image, text))
        self.add_module(self._names[1], adapter)
        self.texts = Texts(texts)

    def known_texts(self) -> Tensor:
        """Return the features of all texts ``[templates, classes, output]``, of unit length."""
        return functional.normalize(self.texts.known(self.tower), dim=-1)

    @property
    def tower(self) -> Clip:
        """CLIP's towers, whatever the layout calls them."""
        return cast("Clip", self.get_submodule(self._names[0]))

    def video_features(self, clips: Tensor) -> Tensor:
        """Return features ``[N, output]`` of normalised clips ``[N, 3, T, H, W]``."""
        tower, adapter = self.tower, self.get_submodule(self._names[1])
        frames = clips.transpose(1, 2)
        seen = tower.visual(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
        mean: Tensor = adapter(seen)
        return mean

    def forward(self, clips: Tensor) -> Tensor:
        """Return log-probabilities ``[N, classes]``: the mean probability over the templates."""
        video = functional.normalize(self.video_features(clips), dim=-1)
        scores = SCALE * torch.einsum("ne,pke->npk", video, self.known_texts())
        log_p = scores.log_softmax(dim=-1)
        return log_p.logsumexp(dim=1) - torch.tensor(float(log_p.shape[1])).log()


class Adapter(nn.Module):
    """A transformer over the features of frames, beside a shortcut, and their mean."""

    def __init__(self, frames: int, width: int, depth: int, *, heads: int, eps: float) -> None:
        super().__init__()
        self.frame_position_embeddings = nn.Embedding(frames, width)
        self.transformer = Transformer(width, depth, heads, eps=eps)

    def forward(self, seen: Tensor) -> Tensor:
        """Return ``[N, width]`` of ``[N, T, width]``."""
        placed = seen + self.frame_position_embeddings.weight[: seen.shape[1]]
        out: Tensor = (self.transformer(placed) + seen).mean(dim=1)
        return out
