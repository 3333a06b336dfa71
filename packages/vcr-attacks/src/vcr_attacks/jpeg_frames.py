"""JPEG compression of frames."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def jpeg_frames(frames: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """Return frames ``[n, H, W, 3]`` as libjpeg leaves them at a quality of 1 to 100."""
    from PIL import Image

    decoded = []
    for frame in frames:
        with io.BytesIO() as buffer:
            Image.fromarray(frame).save(buffer, "JPEG", quality=quality)
            with Image.open(buffer) as image:
                decoded.append(np.asarray(image.convert("RGB")))
    return np.stack(decoded)
