"""Optical flow without learned weights, by optional libraries on the CPU."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from torch import Tensor


def classical_flow(method: str, first: Tensor, second: Tensor) -> Tensor:
    """Return the flow ``[2, h, w]`` from one grey frame into another, x before y, in pixels.

    Args:
        method: ``ilk`` (Le Besnerais & Champagnat, ICIP 2005), ``dis`` (Kroeger et al., ECCV 2016)
            or ``farneback`` (Farnebäck, SCIA 2003).
        first: ``[h, w]`` in [0, 1].
        second: the same shape.

    Raises:
        ComponentUnavailable: if the library is not installed.
    """
    frames = [f.detach().cpu() for f in (first, second)]
    if method == "ilk":
        registration = library(method)
        rows, columns = registration.optical_flow_ilk(frames[0].numpy(), frames[1].numpy())
        return torch.stack([torch.from_numpy(columns), torch.from_numpy(rows)]).float()
    cv2 = library(method)
    grey = [(f.clamp(0, 1) * 255).round().to(torch.uint8).numpy() for f in frames]
    if method == "dis":
        estimator = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        flow = estimator.calc(grey[0], grey[1], None)
    else:
        flow = cv2.calcOpticalFlowFarneback(
            grey[0], grey[1], None, pyr_scale=0.5, levels=3, winsize=15,
            iterations=3, poly_n=5, poly_sigma=1.2, flags=0,
        )  # fmt: skip
    return torch.from_numpy(flow).permute(2, 0, 1).float()


def library(method: str) -> Any:
    """Return the module that has a method.

    Raises:
        ComponentUnavailable: if it is not installed.
    """
    of_skimage = method == "ilk"
    distribution = "scikit-image" if of_skimage else "opencv-python-headless"
    try:
        return import_module("skimage.registration" if of_skimage else "cv2")
    except ImportError as error:
        raise ComponentUnavailable(
            f"flow {method!r} needs {distribution}: pip install {distribution}, "
            "or set defense.flow = 'zero', which needs nothing"
        ) from error
