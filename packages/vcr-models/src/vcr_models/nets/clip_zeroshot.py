"""CLIP as a video classifier without any training: the mean frame against texts of the classes.

Radford et al., arXiv 2103.00020, section 3.1, over frames. The state is that of the official file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

from vcr_models.nets.clip_blocks import Clip, ImageShape, Texts, TextShape

if TYPE_CHECKING:
    from torch import Tensor


class ZeroShotClip(Clip):
    """The classifier.

    Args:
        image: sizes of the image tower.
        text: sizes of the text tower.
        texts: token rows of the classes ``[classes, context]``.
    """

    def __init__(self, image: ImageShape, text: TextShape, texts: Tensor) -> None:
        super().__init__(image, text)
        self.texts = Texts(texts)

    def known_texts(self) -> Tensor:
        """Return the features of the classes ``[classes, output]``, of unit length."""
        return functional.normalize(self.texts.known(self), dim=-1)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        frames = clips.transpose(1, 2)
        seen = functional.normalize(self.visual(frames.flatten(0, 1)), dim=-1)
        video = functional.normalize(seen.unflatten(0, frames.shape[:2]).mean(dim=1), dim=-1)  # type: ignore[no-untyped-call]
        return self.logit_scale.exp() * video @ self.known_texts().T
