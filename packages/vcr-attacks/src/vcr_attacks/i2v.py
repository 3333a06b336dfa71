"""Image-to-video: frames that an image network no longer recognises as themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cosine_similarity
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam
from vcr_attacks.params.transfer import EnsI2vParams, I2vParams
from vcr_attacks.pictures import frame_features

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.image_models import CountedImageModel
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

START = 0.01 / 255
"""First change of every pixel: where two features are equal, their cosine has no gradient."""


class ImageToVideo(BaseVideoAttack):
    """I2V in the L-infinity ball, on image networks.

    Wei, Chen, Wu, Jiang, "Cross-Modal Transferable Adversarial Attacks from Images to Videos", CVPR
    2022, equations (2) and (3): Adam lowers the cosine between features of each frame and features
    of the same frame with a perturbation. The perturbation itself is free; it is clamped where it
    is added to the frame. With several networks their cosines are summed (ENS-I2V, equation 4).

    No video model is asked, the one under attack neither, and nothing stops early. Videos are taken
    one by one. Costs ``steps`` gradients of every network and one forward pass more, in which all
    frames of a video take part; uses no randomness.
    """

    def __init__(self, params: I2vParams | None = None) -> None:
        self.params = params or I2vParams()

    @property
    def image_models(self) -> tuple[str, ...]:
        """The image networks, which a run reads before its first video."""
        return tuple(self.params.networks)

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the videos after the last step.

        Args:
            victim: not asked.
            video: ``[B, T, 3, H, W]``, float32 in [0, 1]; not modified.
            goals: not used: features have no class.
            ctx: the threat model, of norm ``linf``, whose frames and region are kept, and the image
                networks.

        Raises:
            ComponentUnavailable: if a network or its weights are not on this machine.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        networks = [
            (ctx.image_model(name), depth)
            for name, depth in zip(params.networks, params.depths, strict=True)
        ]
        low, high = threat.bounds(video)
        alone = [slice(i, i + 1) for i in range(len(video))]
        return torch.cat([self._one(networks, video[i], low[i], high[i], i.start) for i in alone])

    def _one(
        self,
        networks: list[tuple[CountedImageModel, int]],
        clean: Tensor,
        low: Tensor,
        high: Tensor,
        number: int,
    ) -> Tensor:
        """Return one perturbed video ``[1, T, 3, H, W]``."""
        row = torch.tensor([number], device=clean.device)
        with torch.no_grad():
            before = [self._features(network, clean, row, depth) for network, depth in networks]
        change = torch.full_like(clean, START)
        adam = Adam(change, self.params.lr)
        first = torch.zeros_like(row)
        for _ in range(self.params.steps):
            leaf = change.requires_grad_()
            with torch.enable_grad():
                point = (clean + leaf).clamp(low, high)
                alike = torch.stack(
                    [
                        cosine_similarity(self._features(network, point, row, depth), old).sum()
                        for (network, depth), old in zip(networks, before, strict=True)
                    ]
                )
                (grad,) = torch.autograd.grad(alike.sum(), leaf)
            change = change.detach() - adam.move(grad, first)
        return (clean + change).clamp(low, high)

    def _features(
        self, network: CountedImageModel, video: Tensor, row: Tensor, depth: int
    ) -> Tensor:
        """Return the features of each frame, ``[T, D]``."""
        return frame_features(network, video, row, depth, self.params.size).flatten(1)


class EnsembleImageToVideo(ImageToVideo):
    """:class:`ImageToVideo` on the paper's four networks together (ENS-I2V)."""

    def __init__(self, params: EnsI2vParams | None = None) -> None:
        super().__init__(params or EnsI2vParams())
