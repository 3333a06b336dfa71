"""An image network without weights: frames at a half, a quarter, an eighth and a sixteenth."""

from __future__ import annotations

from torch import nn

from vcr_core.image_models import ImageModel


def toy_image_model() -> ImageModel:
    """Return an image network whose features are the means of ever larger blocks.

    A frame and its features are alike in sign: the least similar frame has the other sign in every
    block, which is what fools :class:`~vcr_core.testing.toys.linear.LinearClassifier`.
    """
    network = nn.Sequential(*(nn.AvgPool2d(2, ceil_mode=True) for _ in range(4)))
    return ImageModel(network, ("0", "1", "2", "3"), mean=(0.5,) * 3, std=(0.25,) * 3)
