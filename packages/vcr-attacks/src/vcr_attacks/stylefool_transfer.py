"""Style transfer of a video: by optimisation with temporal consistency, or by colour statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
import torch.nn.functional as F

from vcr_attacks.block_motion import displacements
from vcr_attacks.optimiser_loop import Adam
from vcr_attacks.stylefool_features import Features, check_size, gram

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from vcr_attacks.params.prepared import StylefoolParams

_RELIABLE: Final = 15 / 255
"""Difference to the moved frame before, mean over channels, up to which a motion is believed."""

_BLOCK: Final = 8
_LEVELS: Final = 255.0


def statistics_matched(video: Tensor, style: Tensor) -> Tensor:
    """Return a video whose channels have the means and deviations of a picture, clamped to [0, 1].

    Args:
        video: ``[T, C, H, W]``; the statistics are those of all frames together.
        style: ``[C, h, w]``.
    """
    mean, spread = (_over_places(video.transpose(0, 1), how) for how in ("mean", "std"))
    goal_mean, goal_spread = (_over_places(style, how) for how in ("mean", "std"))
    return ((video - mean) / spread.clamp_min(1e-6) * goal_spread + goal_mean).clamp(0, 1)


class Gatys:
    """Optimisation of the pixels of one frame after another.

    Gatys, Ecker, Bethge, "Image Style Transfer Using Convolutional Neural Networks", CVPR 2016,
    equations (1) to (7), and the temporal loss of Ruder, Dosovitskiy, Brox, "Artistic Style
    Transfer for Videos", GCPR 2016, equation (7). A frame minimises ``content * mean((F - P)^2) +
    style * sum_l mean((G_l - A_l)^2) + temporal * mean(c (x - w)^2) + smoothness * sum(dx^2)``
    with Gram matrices over ``C H W``, pixels in levels of 8 bits, ``w`` the stylised frame before,
    moved along the motion of blocks, and ``c`` 1 where that motion is believed. The first
    frame starts at itself, every other one at ``w``. Draws nothing.

    Args:
        params: weights, steps and optimiser.
        features: what content and style are compared by.
    """

    def __init__(self, params: StylefoolParams, features: Features) -> None:
        self.params = params
        self.features = features

    def __call__(self, video: Tensor, style: Tensor) -> Tensor:
        """Return ``[T, C, H, W]`` in [0, 1], a new tensor.

        Args:
            video: ``[T, C, H, W]``.
            style: ``[C, h, w]``.

        Raises:
            IncompatibleComponents: if frames or style picture are too small for the features.
        """
        for height, width in (video.shape[-2:], style.shape[-2:]):
            check_size(self.features, height, width)
        self.features.to(video.device)
        with torch.no_grad():
            grams = [gram(maps) for maps in self.features(style.unsqueeze(0))[0]]
        moved, believed = motion(video, self.params.reach)
        frames: list[Tensor] = []
        for number, frame in enumerate(video):
            before, start, trust = None, frame, None
            if frames:
                trust = believed[number - 1]
                before = _taken_from(frames[-1], moved[number - 1])
                start = before
            steps = self.params.first_steps if number == 0 else self.params.next_steps
            frames.append(self._frame(frame, start, grams, before, trust, steps))
        return torch.stack(frames)

    def _frame(
        self,
        frame: Tensor,
        start: Tensor,
        grams: list[Tensor],
        before: Tensor | None,
        trust: Tensor | None,
        steps: int,
    ) -> Tensor:
        params = self.params
        with torch.no_grad():
            content = self.features(frame.unsqueeze(0))[1]

        def loss(pictures: Tensor) -> Tensor:
            maps, own = self.features(pictures)
            value = params.content_weight * F.mse_loss(own, content)
            for found, goal in zip(maps, grams, strict=False):
                value = value + params.style_weight * F.mse_loss(gram(found), goal)
            if before is not None and trust is not None and params.temporal_weight:
                apart = (trust * (pictures[0] - before) * _LEVELS).square().mean()
                value = value + params.temporal_weight * apart
            if params.smoothness:
                value = value + params.smoothness * _roughness(pictures * _LEVELS)
            return value

        descent = _adam if params.optimiser == "adam" else _lbfgs
        return descent(loss, start.unsqueeze(0), steps, params.lr)[0]


def motion(video: Tensor, reach: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return, for each frame but the first, where its pixels were before and where to believe it.

    Args:
        video: ``[T, C, H, W]``.
        reach: largest motion in pixels; 0 for none at all, the plain difference of frames.

    Returns:
        ``[H, W]`` int64 positions in the flattened frame before, and ``[1, H, W]`` of 0 and 1.
    """
    height, width = video.shape[-2:]
    rows = torch.arange(height, device=video.device).view(-1, 1)
    columns = torch.arange(width, device=video.device)
    places, believed = [], []
    if len(video) > 1:
        for number, (down, across) in enumerate(displacements(video, _BLOCK, reach)):
            source = (rows + down).clamp(0, height - 1) * width
            place = source + (columns + across).clamp(0, width - 1)
            error = (video[number + 1] - _taken_from(video[number], place)).abs()
            places.append(place)
            believed.append((error.mean(dim=0, keepdim=True) <= _RELIABLE).to(video))
    return places, believed


def _taken_from(frame: Tensor, place: Tensor) -> Tensor:
    return frame.flatten(1)[:, place]


def _adam(loss: Callable[[Tensor], Tensor], start: Tensor, steps: int, lr: float) -> Tensor:
    point, adam = start.clone(), Adam(start, lr)
    everyone = torch.arange(len(start), device=start.device)
    for _ in range(steps):
        point = point.detach().requires_grad_()
        with torch.enable_grad():
            (grad,) = torch.autograd.grad(loss(point), point)
        point = (point.detach() - adam.move(grad, everyone)).clamp_(0, 1)
    return point.detach()


def _lbfgs(loss: Callable[[Tensor], Tensor], start: Tensor, steps: int, lr: float) -> Tensor:
    """Run at most ``steps`` iterations of L-BFGS; the first of them moves by at most ``lr``."""
    point = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([point], lr=1.0, max_iter=steps, line_search_fn="strong_wolfe")
    # Divided by the first gradient, so that the first trial step is of the size of lr.
    with torch.enable_grad():
        (grad,) = torch.autograd.grad(loss(point), point)
        scale = lr / grad.abs().max().clamp_min(1e-30)

        def closure() -> Tensor:
            value = loss(point.clamp(0, 1)) * scale
            (point.grad,) = torch.autograd.grad(value, point)
            return value

        optimiser.step(closure)  # type: ignore[no-untyped-call,unused-ignore]
    return point.detach().clamp(0, 1)


def _roughness(pictures: Tensor) -> Tensor:
    """Return the sum of squared differences of neighbours along height and width."""
    return pictures.diff(dim=-1).square().sum() + pictures.diff(dim=-2).square().sum()


def _over_places(channels: Tensor, how: str) -> Tensor:
    """Return mean or deviation of each channel ``[C, ...]``, as ``[C, 1, 1]``."""
    flat = channels.flatten(1)
    value = flat.mean(dim=1) if how == "mean" else flat.std(dim=1, correction=0)
    return value.view(-1, 1, 1)
