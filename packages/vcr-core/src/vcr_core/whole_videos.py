"""Whole decoded videos: reading them, finding a donor, checking what a transform made of them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vcr_core.errors import ContractViolation, NotAvailable
from vcr_core.randomness import VideoRandom
from vcr_core.transforms import Transformed, WholeVideo
from vcr_core.video.info import VideoReadError
from vcr_core.video.sampling import whole_video

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vcr_core.protocols import VideoDataset, VideoItem
    from vcr_core.video.info import Clip

_DONORS_TRIED: Final = 8


def whole_of(item: VideoItem, clip: Clip) -> WholeVideo:
    """Return a video of which every frame has been read."""
    fps = None if clip.fps is None else Fraction(clip.fps)
    return WholeVideo(item.id, item.label, clip.frames, fps)


def donor(dataset: VideoDataset, item: VideoItem, seed: int, *, other_label: bool) -> WholeVideo:
    """Return another video, chosen by the seed; unreadable ones are passed over.

    Args:
        dataset: where donors come from.
        item: the video that needs one.
        seed: the only thing that the choice depends on, besides the ids.
        other_label: take one of another class where there is one.

    Raises:
        NotAvailable: if there is none.
    """
    others = [i for i in sorted(dataset.ids()) if i != item.id]
    if other_label:
        others = [i for i in others if dataset.item(i).label != item.label] or others
    if not others:
        raise NotAvailable(f"dataset has no video besides {item.id} to take frames from")
    random = VideoRandom([seed]).child("donor")
    failures: list[str] = []
    for _ in range(_DONORS_TRIED):
        chosen = dataset.item(others[int(random.integers(0, len(others)))])
        try:
            return whole_of(chosen, chosen.source.read(whole_video))
        except VideoReadError as error:
            failures.append(str(error))
    raise NotAvailable(f"no readable video to take frames from: {failures[-1]}")


def check_transformed(who: str, changed: Any, whole: WholeVideo) -> None:
    """Check that a transform kept size and type of the frames and says where they come from.

    Raises:
        ContractViolation: naming ``who`` and what is wrong.
    """
    if not isinstance(changed, Transformed):
        raise ContractViolation(f"{who} returned {type(changed).__name__}, not a Transformed")
    frames: NDArray[Any] = changed.frames
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[1:] != whole.frames.shape[1:]:
        raise ContractViolation(
            f"{who} returned frames {frames.dtype} {list(frames.shape)} for a video of uint8 "
            f"{list(whole.frames.shape)}"
        )
    if not len(frames):
        raise ContractViolation(f"{who} left no frame of {whole.id}")
    if len(changed.index_map) != len(frames):
        raise ContractViolation(
            f"{who} returned {len(frames)} frames and an index map of {len(changed.index_map)}"
        )
