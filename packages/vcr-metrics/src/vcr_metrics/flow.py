"""Optical flow by scikit-image or OpenCV, and what follows it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from vcr_core.errors import ComponentUnavailable

from vcr_metrics.backbones import release

if TYPE_CHECKING:
    from torch import Tensor

Method: TypeAlias = Literal["tvl1", "dis"]

SMALLEST = 16
"""Shorter side in pixels below which the methods run out of places."""

_LUMA = (0.299, 0.587, 0.114)


class Flow:
    """A method of optical flow without weights; on the CPU, repeatable within a release.

    Args:
        method: ``tvl1`` is scikit-image's, ``dis`` OpenCV's at its medium setting.
        metric: who asks, for the message.

    Attributes:
        by: library and version, for the record.

    Raises:
        ComponentUnavailable: if the library is not installed.
    """

    def __init__(self, method: Method, metric: str) -> None:
        module, install = {
            "tvl1": ("skimage", "pip install 'vcr-metrics[temporal]'"),
            "dis": ("cv2", "pip install opencv-python-headless, unless another OpenCV is there"),
        }[method]
        if find_spec(module) is None:
            raise ComponentUnavailable(
                f"metric {metric!r} with flow = {method!r} needs the module {module} ({install})"
            )
        self.method = method
        self._dis: Any = None

    @property
    def by(self) -> str:
        """Library and version, for the record."""
        if self.method == "tvl1":
            return f"{release('scikit-image')}, tvl1"
        return f"OpenCV {import_module('cv2').__version__}, DIS medium"

    def __call__(self, one: Tensor, other: Tensor) -> Tensor:
        """Return ``[2, H, W]``, pixels to the right and down, float64 on the CPU.

        What is at ``p`` in the first picture is at ``p + flow(p)`` in the second one.

        Args:
            one: ``[3, H, W]``, levels in 0..255.
            other: the same shape.
        """
        first, second = (_grey(picture) for picture in (one, other))
        if self.method == "tvl1":
            from skimage import registration

            estimate: Any = registration.optical_flow_tvl1
            down, right = estimate(*((p / 255).float().numpy() for p in (first, second)))
            return torch.stack([torch.from_numpy(right), torch.from_numpy(down)]).double()
        if self._dis is None:
            cv2: Any = import_module("cv2")
            self._dis = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        found = self._dis.calc(*(p.round().byte().numpy() for p in (first, second)), None)
        return torch.from_numpy(found).permute(2, 0, 1).double()


def _grey(picture: Tensor) -> Tensor:
    weights = torch.tensor(_LUMA, dtype=torch.float64).view(3, 1, 1)
    return (picture.detach().cpu().double() * weights).sum(dim=0)


def warped(picture: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a picture has where the flow leads, and which places it leads to inside.

    Args:
        picture: ``[C, H, W]``, floating point.
        flow: ``[2, H, W]``, pixels to the right and down, of the same dtype.

    Returns:
        ``[C, H, W]``, bilinear, and ``[H, W]`` bool.
    """
    height, width = flow.shape[-2:]
    down, right = torch.meshgrid(
        torch.arange(height, dtype=flow.dtype),
        torch.arange(width, dtype=flow.dtype),
        indexing="ij",
    )
    x, y = right + flow[0], down + flow[1]
    inside = (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], dim=-1)
    found = F.grid_sample(picture[None], grid[None], padding_mode="border", align_corners=True)
    return found[0], inside


def followed(forth: Tensor, back: Tensor) -> Tensor:
    """Return ``[H, W]`` bool: where going forth and back ends near the start, inside the frame.

    Sundaram, Brox, Keutzer, ECCV 2010, equation (5): the squared length of the sum is below a
    hundredth of both squared lengths plus a half.

    Args:
        forth: flow ``[2, H, W]`` from one frame to the next.
        back: flow from the next frame to the one.
    """
    returned, inside = warped(back, forth)
    gap = (forth + returned).square().sum(dim=0)
    lengths = forth.square().sum(dim=0) + returned.square().sum(dim=0)
    return inside & (gap < 0.01 * lengths + 0.5)
