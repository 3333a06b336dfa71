"""Optical flow between neighbouring frames, and warping along it.

A flow ``[..., 2, h, w]`` is in pixels of its own grid, x before y, and points from a frame into the
next one: ``frame_i(p) = frame_{i+1}(p + flow_i(p))`` where the estimate is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch.nn.functional import grid_sample, interpolate

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

FlowMethod: TypeAlias = Literal["raft-large", "raft-small", "ilk", "dis", "farneback", "zero"]
"""RAFT of torchvision; iterative Lucas-Kanade of scikit-image; OpenCV's; nothing moves."""

_GREY = (0.299, 0.587, 0.114)


def estimate_flow(
    frames: Tensor, method: FlowMethod, *, weights: str = "", longest: int = 512
) -> Tensor:
    """Return the flow from each frame into the next.

    Pairs pass the estimator one at a time, so memory does not grow with the number of frames.

    Args:
        frames: ``[N, T, 3, H, W]`` in [0, 1].
        method: how to estimate.
        weights: file of RAFT's weights, ``""`` for torch's hub cache.
        longest: frames whose longer side is larger are estimated at that size.

    Returns:
        ``[N, T - 1, 2, H, W]`` float32 on the device of the frames, in pixels.

    Raises:
        ComponentUnavailable: if the method's library or weights are not here.
    """
    batch, count, _, height, width = frames.shape
    flow = frames.new_zeros(batch, max(count - 1, 0), 2, height, width, dtype=torch.float32)
    if method == "zero" or flow.numel() == 0:
        return flow
    pair = _estimator(method, weights, frames.device)
    size = _working_size(height, width, longest, smallest=128 if method.startswith("raft") else 16)
    for n in range(batch):
        seen = _resized(frames[n].float(), size)
        for i in range(count - 1):
            flow[n, i] = to_grid(pair(seen[i], seen[i + 1]).to(flow), (height, width))
    return flow


def require_flow(method: FlowMethod, weights: str = "") -> None:
    """Check that a method's library and weights are on this machine.

    Raises:
        ComponentUnavailable: if they are not, with what to do.
    """
    if method in ("raft-large", "raft-small"):
        from vcr_defenses.diffusion.raft import find_raft

        find_raft(method, weights)
    elif method != "zero":
        from vcr_defenses.diffusion.classical_flow import library

        library(method)


def to_grid(flow: Tensor, size: tuple[int, int]) -> Tensor:
    """Return flow ``[..., 2, H, W]`` on another grid, in pixels of that grid.

    Bilinear, centres of pixels aligned; both components are scaled by how their axis changes.
    """
    height, width = flow.shape[-2:]
    if (height, width) == size:
        return flow
    resized = interpolate(
        flow.reshape(-1, 2, height, width), size=size, mode="bilinear", align_corners=False
    )
    scale = flow.new_tensor([size[1] / width, size[0] / height]).view(2, 1, 1)
    return (resized * scale).reshape(*flow.shape[:-2], *size)


def warp(frames: Tensor, flow: Tensor) -> Tensor:
    """Return ``frames(p + flow(p))``, bilinear, zero outside of the frame.

    Args:
        frames: ``[N, C, h, w]``.
        flow: ``[N, 2, h, w]``.
    """
    height, width = frames.shape[-2:]
    flow = flow.to(frames)
    x = torch.arange(width, device=frames.device, dtype=frames.dtype) + flow[:, 0]
    y = torch.arange(height, device=frames.device, dtype=frames.dtype).view(-1, 1) + flow[:, 1]
    grid = torch.stack([2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], dim=-1)
    return grid_sample(frames, grid, mode="bilinear", padding_mode="zeros", align_corners=True)


def warp_error(frames: Tensor, flow: Tensor) -> Tensor:
    """Return ``sum_i mean |warp(frame_i, flow_{i-1}) - frame_{i-1}|`` of each video, ``[N]``.

    Args:
        frames: ``[N, C, T, h, w]``.
        flow: ``[N, T - 1, 2, h, w]``.
    """
    return warp_residual(frames, flow).abs().mean(dim=(1, 3, 4)).sum(dim=1)


def warp_residual(frames: Tensor, flow: Tensor) -> Tensor:
    """Return ``warp(frame_{i+1}, flow_i) - frame_i``, ``[N, C, T - 1, h, w]``."""
    batch, _, count, height, width = frames.shape
    if count < 2:
        return frames[:, :, :0]
    following = frames[:, :, 1:].transpose(1, 2).flatten(0, 1)
    warped = warp(following, flow.reshape(-1, 2, height, width))
    warped = warped.reshape(batch, count - 1, *warped.shape[1:]).transpose(1, 2)
    return warped - frames[:, :, :-1]


def _estimator(
    method: FlowMethod, weights: str, device: torch.device
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of two frames ``[3, h, w]`` in [0, 1] to a flow ``[2, h, w]``."""
    if method in ("raft-large", "raft-small"):
        from vcr_defenses.diffusion.raft import load_raft

        return load_raft(method, weights, device)
    from vcr_defenses.diffusion.classical_flow import classical_flow

    return lambda first, second: classical_flow(method, _grey(first), _grey(second))


def _grey(frame: Tensor) -> Tensor:
    return (frame * frame.new_tensor(_GREY).view(3, 1, 1)).sum(dim=0)


def _working_size(height: int, width: int, longest: int, smallest: int) -> tuple[int, int]:
    """Return the size at which flow is estimated: not larger, and no side below ``smallest``."""
    scale = min(1.0, longest / max(height, width))
    scale = max(scale, smallest / min(height, width))
    return max(smallest, round(height * scale)), max(smallest, round(width * scale))


def _resized(frames: Tensor, size: tuple[int, int]) -> Tensor:
    if frames.shape[-2:] == size:
        return frames
    return interpolate(frames, size=size, mode="bilinear", align_corners=False).clamp(0, 1)
