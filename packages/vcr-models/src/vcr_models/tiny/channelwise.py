"""Channel-wise convolution over space, then over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from torch import Tensor


class ChannelWise(nn.Module):
    """A k x k x k convolution of each channel, factorised: k x k in each frame, then k in time.

    Factorised because CPUs have no fast backward pass of the whole one; it has the same reach.

    Args:
        channels: their number, before and after.
        kernel: k, odd.
        stride: along height and width.
    """

    def __init__(self, channels: int, kernel: int = 3, *, stride: int = 1) -> None:
        super().__init__()
        half = kernel // 2
        self.space = nn.Conv2d(
            channels, channels, kernel, stride, half, groups=channels, bias=False
        )
        self.time = nn.Conv2d(channels, channels, (kernel, 1), padding=(half, 0), groups=channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``[N, C, T, h / stride, w / stride]`` of ``[N, C, T, h, w]``."""
        n, channels, frames = x.shape[:3]
        y: Tensor = self.space(x.transpose(1, 2).flatten(0, 1))
        height, width = y.shape[2:]
        y = y.reshape(n, frames, channels, height * width).transpose(1, 2).contiguous()
        y = self.time(y)
        return y.reshape(n, channels, -1, height, width)
