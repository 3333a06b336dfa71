"""What image networks see of a video."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn.functional import interpolate

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.image_models import CountedImageModel


def frame_features(
    network: CountedImageModel, video: Tensor, row: Tensor, depth: int, size: int
) -> Tensor:
    """Return the features of each frame, ``[T, ...]``, with a graph to ``video``.

    Args:
        network: the image network.
        video: one video, ``[1, T, 3, H, W]`` in [0, 1].
        row: ``[1]``, its place in the batch.
        depth: layer of the network, from 1 at the pixels.
        size: short side to which larger frames are resized; networks are trained on small pictures.
    """
    height, width = video.shape[-2:]
    short = min(height, width)
    if short > size:
        smaller = (round(height * size / short), round(width * size / short))
        frames = interpolate(
            video[0], smaller, mode="bilinear", align_corners=False, antialias=True
        )
        video = frames.unsqueeze(0)
    return network.features(video, row, depth)[0]
