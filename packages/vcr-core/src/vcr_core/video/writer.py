"""Exact storage of clips: lossless RGB video or a compressed array, with a JSON sidecar."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import av
import numpy as np

from vcr_core.atomic import replacing, write_json
from vcr_core.errors import StoreError, UsageError
from vcr_core.video.reader import read
from vcr_core.video.sampling import whole_video

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from av.container import OutputContainer
    from numpy.typing import NDArray

_DEFAULT_FPS: Final = Fraction(25)
_LARGEST_TERM: Final = 100_000
_OWN_KEYS: Final = frozenset({"schema", "sha256", "shape", "fps", "encoding"})


@dataclass(frozen=True, slots=True, eq=False)
class StoredClip:
    """A clip as it was read back from an exact file.

    Attributes:
        frames: ``[T, H, W, 3]`` uint8 RGB.
        fps: frame rate of the file.
        sha256: hash of the frames' bytes, compared with the sidecar's.
        facts: what the writer was given to remember.
    """

    frames: NDArray[np.uint8]
    fps: Fraction
    sha256: str
    facts: dict[str, Any]


def frames_sha256(frames: NDArray[np.uint8]) -> str:
    """Return the SHA-256 of the bytes of ``[T, H, W, 3]`` uint8 in C order."""
    return hashlib.sha256(np.ascontiguousarray(frames).data).hexdigest()


def sidecar_path(path: Path) -> Path:
    """Return where the facts about an exact file are kept: its full name plus ``.json``."""
    return path.with_name(path.name + ".json")


def write_exact(
    path: Path,
    frames: NDArray[np.uint8],
    *,
    fps: Fraction | None = None,
    facts: Mapping[str, Any] | None = None,
    verify: bool = True,
) -> str:
    """Store a clip so that reading it back gives the same bytes, and return their SHA-256.

    Args:
        path: ``.mkv`` for FFV1 video, ``.npz`` for an array with the key ``frames``. Replaced
            atomically; the sidecar is written last.
        frames: ``[T, H, W, 3]`` uint8 RGB, any size, odd ones too.
        fps: frame rate; 25 where it does not matter.
        facts: plain data for the sidecar: video id, indices, budget, model, attack, seed.
        verify: whether to read the file back and compare.

    Raises:
        UsageError: for another suffix, type or shape, or a fact with a reserved name.
        StoreError: if the file does not read back to the same bytes; nothing is replaced then.
    """
    check_frames(frames)
    rate = checked_rate(fps)
    facts = dict(facts or {})
    if reserved := sorted(_OWN_KEYS & facts.keys()):
        raise UsageError(f"reserved in a sidecar: {', '.join(reserved)}")
    if path.suffix not in (".mkv", ".npz"):
        raise UsageError(f"exact files end in .mkv or .npz, not {path.suffix!r}")
    expected = frames_sha256(frames)
    with replacing(path) as temporary:
        if path.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(file, frames=frames)
        else:
            _write_ffv1(temporary, frames, rate)
        if verify and frames_sha256(_all_frames(temporary)) != expected:
            raise StoreError(f"{path}: does not read back to the frames that were written")
    encoding = "npz" if path.suffix == ".npz" else "ffv1 bgr0"
    sidecar = {
        "schema": 1,
        "sha256": expected,
        "shape": list(frames.shape),
        "fps": f"{rate.numerator}/{rate.denominator}",
        "encoding": encoding,
        **facts,
    }
    write_json(sidecar_path(path), sidecar)
    return expected


def read_exact(path: Path) -> StoredClip:
    """Return a clip written by :func:`write_exact`.

    Raises:
        StoreError: if the sidecar is missing or broken, or the frames are not the ones it names.
        VideoReadError: if the file itself cannot be read.
    """
    sidecar = sidecar_path(path)
    try:
        facts = json.loads(sidecar.read_text(encoding="utf-8"))
        expected, fps = str(facts["sha256"]), Fraction(facts["fps"])
    except (OSError, ValueError, TypeError, KeyError, ZeroDivisionError) as error:
        raise StoreError(
            f"{sidecar}: no usable sidecar ({type(error).__name__}: {error})"
        ) from error
    frames = _all_frames(path)
    found = frames_sha256(frames)
    if found != expected:
        raise StoreError(f"{path}: its frames have SHA-256 {found}, the sidecar states {expected}")
    rest = {key: value for key, value in facts.items() if key not in _OWN_KEYS}
    return StoredClip(frames, fps, found, rest)


def check_frames(frames: NDArray[np.uint8]) -> None:
    """Make sure that frames are a non-empty ``[T, H, W, 3]`` uint8 array.

    Raises:
        UsageError: saying what was found instead.
    """
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[-1] != 3 or not frames.size:
        shape = list(frames.shape)
        raise UsageError(f"frames must be uint8 [T, H, W, 3], found {frames.dtype} {shape}")


def checked_rate(fps: Fraction | None) -> Fraction:
    """Return a frame rate that containers can hold.

    Raises:
        UsageError: if it is not positive.
    """
    rate = _DEFAULT_FPS if fps is None else Fraction(fps).limit_denominator(_LARGEST_TERM)
    if rate <= 0:
        raise UsageError(f"the frame rate must be positive, got {fps}")
    return rate


def _write_ffv1(path: Path, frames: NDArray[np.uint8], rate: Fraction) -> None:
    with av.open(f"file:{path}", "w", format="matroska") as container:
        # bgr0 holds 8-bit RGB as it is; every YUV format would round it.
        encode(container, frames, rate, codec="ffv1", pix_fmt="bgr0", options={"level": "3"})


def encode(
    container: OutputContainer,
    frames: NDArray[np.uint8],
    rate: Fraction,
    *,
    codec: str,
    pix_fmt: str,
    options: dict[str, str],
) -> None:
    """Add one video stream with these frames to a container."""
    stream = container.add_stream(codec, rate=rate, options=options)
    if not isinstance(stream, av.VideoStream):
        raise UsageError(f"{codec} is no video codec")
    stream.height, stream.width = frames.shape[1:3]
    stream.pix_fmt = pix_fmt
    for picture in frames:
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def _all_frames(path: Path) -> NDArray[np.uint8]:
    return read(path, whole_video, autorotate=False).frames
