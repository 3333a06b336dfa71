"""TIN's interlacing: groups of channels move along time by a learned, real number of frames.

Shao et al., "Temporal Interlacing Network", arXiv 2001.06499, section 3. The compiled operator that
mmaction2 calls exists for CUDA only, and its backward pass shifts the gradient in the direction in
which the forward pass shifts the values; this is plain torch, so that autograd does it. Parameter
names are those of mmaction2's module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

SHARE = 4
"""One in so many channels is interlaced."""


def shift(values: Tensor, steps: Tensor) -> Tensor:
    """Return channels moved along time by whole numbers of frames, zeros moved in.

    ``out[n, t + steps[n, g], c] = values[n, t, c]`` for the channels ``c`` of group ``g``.

    Args:
        values: ``[N, T, C, P]``.
        steps: ``[N, G]`` int; ``G`` divides ``C``, and groups are consecutive channels.
    """
    count, frames, channels, places = values.shape
    groups = steps.shape[1]
    parts = values.reshape(count, frames, groups, (channels // groups) * places)
    wanted = torch.arange(frames, device=values.device)[None, :, None] - steps[:, None].long()
    inside = (wanted >= 0) & (wanted < frames)
    index = wanted.clamp(0, frames - 1)[..., None].expand_as(parts)
    return (parts.gather(1, index) * inside[..., None]).view_as(values)


def real_shift(values: Tensor, steps: Tensor) -> Tensor:
    """Return channels moved by real numbers of frames: between the two whole ones around.

    Args:
        values: ``[N, T, C, P]``.
        steps: ``[N, G]`` float; gradients reach it through the two weights.
    """
    low = steps.detach().floor()
    share = (steps - low).repeat_interleave(values.shape[2] // steps.shape[1], dim=1)
    share = share[:, None, :, None]
    return (1 - share) * shift(values, low) + share * shift(values, low + 1)


class Interlace(nn.Module):
    """The module in front of a convolution.

    Args:
        offset_net: with ``conv``, ``fc1`` and ``fc2``.
        weight_net: with ``conv``.
        frames: frames of a clip.
    """

    def __init__(self, offset_net: nn.Module, weight_net: nn.Module, frames: int) -> None:
        super().__init__()
        self.offset_net, self.weight_net, self.frames = offset_net, weight_net, frames

    def forward(self, maps: Tensor) -> Tensor:
        """Return ``[N T, C, h, w]`` of the same shape."""
        clips = maps.unflatten(0, (-1, self.frames))  # type: ignore[no-untyped-call]
        channels = clips.shape[2] // SHARE
        moving, rest = clips[:, :, :channels], clips[:, :, channels:]
        seen = moving.mean(dim=(3, 4)).transpose(1, 2)
        steps = self._steps(seen)
        weights = 2 * torch.sigmoid(self.weight_net.get_submodule("conv")(seen)).transpose(1, 2)
        # Two learned steps and their opposites, on a quarter of the moving channels each.
        moved = real_shift(moving.flatten(3), torch.cat((steps, -steps), dim=1))
        factor = torch.cat((weights, weights), dim=2).repeat_interleave(channels // 4, dim=2)
        found = (moved * factor[..., None]).view_as(moving)
        return torch.cat((found, rest), dim=2).flatten(0, 1)

    def _steps(self, seen: Tensor) -> Tensor:
        """Return ``[N, 2]`` between -2 and 2 of ``[N, C, T]``."""
        net = self.offset_net
        line = net.get_submodule("conv")(seen)[:, 0]
        line = net.get_submodule("fc2")(torch.relu(net.get_submodule("fc1")(line)))
        return 4 * (torch.sigmoid(line) - 0.5)
