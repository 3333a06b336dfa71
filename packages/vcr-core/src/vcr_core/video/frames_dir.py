"""Videos kept as a folder of still images, one a frame, in natural order of the names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from vcr_core.video import opening
from vcr_core.video.decoding import DecodePass, decode_pass
from vcr_core.video.info import Clip, OnError, VideoInfo, VideoReadError
from vcr_core.video.planning import ask, untimed_clip, usable_count

if TYPE_CHECKING:
    from pathlib import Path

    from vcr_core.protocols import Sampler

_FIRST = np.zeros(1, dtype=np.int64)


def natural_key(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return a sort key that puts ``img2`` before ``img10``; equal only for equal names.

    Example:
        >>> sorted(["f10.png", "f2.png", "f1.png"], key=natural_key)
        ['f1.png', 'f2.png', 'f10.png']
    """
    parts = re.split(r"([0-9]+)", name)
    key = tuple((0, int(p), "") if p.isdecimal() else (1, 0, p.casefold()) for p in parts if p)
    return key, name


def frame_files(folder: Path) -> list[Path]:
    """Return the images of a folder in natural order; hidden and other files are left out.

    Raises:
        VideoReadError: if the folder cannot be listed or holds no image.
    """
    try:
        found = [
            path
            for path in folder.iterdir()
            if path.suffix.lower() in opening.IMAGE_SUFFIXES and not path.name.startswith(".")
        ]
    except OSError as error:
        raise VideoReadError(str(folder.absolute()), "open", error) from error
    if not found:
        kinds = " ".join(sorted(opening.IMAGE_SUFFIXES))
        raise VideoReadError(str(folder.absolute()), "empty", f"holds no image ({kinds})")
    return sorted(found, key=lambda path: natural_key(path.name))


def probe_folder(folder: Path) -> VideoInfo:
    """Return what the first image's header says and how many images there are.

    Raises:
        VideoReadError: if there is no image or the first one does not open.
    """
    files = frame_files(folder)
    with opening.open_media(files[0]) as container:
        stream = opening.video_stream(container, files[0])
        info = opening.describe(container, stream, files[0])
    return _folder_info(folder, info, len(files))


def read_folder(
    folder: Path,
    sampler: Sampler,
    max_frames: int | None,
    on_error: OnError,
    expected_frames: int | None,
) -> Clip:
    """Return the frames of the sampler's plan; only those images are opened.

    Args:
        folder: the folder.
        sampler: from the number of frames to a plan.
        max_frames: use the first so many images only.
        on_error: whether an image that does not decode is an error or ends the video there.
        expected_frames: number of images that a manifest states.

    Raises:
        VideoReadError: for a missing, unreadable or differently sized image, with its name.
    """
    name = str(folder.absolute())
    files = frame_files(folder)
    count = usable_count(name, len(files), max_frames, expected_frames)
    failure: VideoReadError | None = None
    while True:
        plan = ask(sampler, count, name)
        images: list[DecodePass] = []
        for index in plan.distinct.tolist():
            try:
                images.append(_image(files[index], name))
            except VideoReadError as error:
                if on_error == "raise" or index == 0:
                    raise
                failure, count = error, index
                break
        else:
            break
    frames = [image.frames for image in images if image.frames is not None]
    first = frames[0].shape[1:]
    for index, frame in zip(plan.distinct.tolist(), frames, strict=True):
        if frame.shape[1:] != first:
            sizes = f"{frame.shape[2]}x{frame.shape[1]}, others are {first[1]}x{first[0]}"
            text = f"the picture size changes within the video: {files[index].name} is {sizes}"
            raise VideoReadError(name, "decode", text)
    notes = () if failure is None else (f"truncated: {failure}",)
    return untimed_clip(
        np.concatenate(frames),
        plan,
        _folder_info(folder, images[0].info, len(files)),
        opening.backend_name(),
        truncated=failure is not None,
        notes=notes,
    )


def _image(path: Path, folder: str) -> DecodePass:
    try:
        found = decode_pass(path, _FIRST, stop_after=0)
    except VideoReadError as error:
        raise VideoReadError(folder, error.stage, f"{path.name}: {error.cause}") from error
    if found.error is not None or found.frames is None:
        cause = found.error or "no picture in the file"
        raise VideoReadError(folder, "decode", f"{path.name}: {cause}")
    return found


def _folder_info(folder: Path, first: VideoInfo, count: int) -> VideoInfo:
    return VideoInfo(
        path=str(folder.absolute()),
        width=first.width,
        height=first.height,
        codec=first.codec,
        container="folder of frames",
        rotation=first.rotation,
        pix_fmt=first.pix_fmt,
        header_frames=count,
        colorspace=first.colorspace,
        color_range=first.color_range,
    )
