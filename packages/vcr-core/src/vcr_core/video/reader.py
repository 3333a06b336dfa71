"""``probe`` and ``read``: the frames that a sampler asks for, whatever form the video has.

A header's frame count is a claim that is often wrong, so it never decides which frames are used. A
first read takes a *guess* of the count, keeps the frames that the sampler would want for it while
decoding to the end, and uses them only if the count that decoding yields is the guess; otherwise it
decodes again with the true one. So the usual file costs one pass, a lying one two, and the result
is the same. Where the count is known for certain (a cache entry, a manifest), the pass ends after
the last wanted frame.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from vcr_core.video import opening
from vcr_core.video.decoding import DecodePass, ThreadType, Wanted, decode_pass
from vcr_core.video.info import Clip, OnError, VideoInfo, VideoReadError
from vcr_core.video.planning import ask

if TYPE_CHECKING:
    import os

    from av.container import InputContainer
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    from vcr_core.protocols import Sampler
    from vcr_core.video.counts import FrameCounts
    from vcr_core.video.sampling import SamplingPlan

Source: TypeAlias = "str | os.PathLike[str] | bytes"

_log = logging.getLogger(__name__)

# A known count whose end is this close to the last wanted frame is checked by decoding to the end.
_CHECK_TAIL: Final = 16
_NOTHING: Final[NDArray[np.int64]] = np.empty(0, dtype=np.int64)
_ARRAYS: Final = frozenset({".npy", ".npz"})


def probe(source: Source, *, hash_content: bool = False) -> VideoInfo:
    """Return what the headers say, without decoding a frame.

    Args:
        source: path of a video, a folder of frames, an array file; or a video's content.
        hash_content: whether to read the whole file for its SHA-256.

    Raises:
        VideoReadError: if nothing readable is there.
    """
    media = _media(source)
    from vcr_core.video.webp import is_animated_webp, probe_webp

    if isinstance(media, bytes):
        info = probe_webp(media) if is_animated_webp(media) else _probe_container(media)
        return replace(info, sha256=hashlib.sha256(media).hexdigest()) if hash_content else info
    if is_animated_webp(media):
        info = probe_webp(media)
    elif media.is_dir():
        from vcr_core.video.frames_dir import probe_folder

        info = probe_folder(media)
    elif media.suffix.lower() in _ARRAYS:
        from vcr_core.video.arrays import probe_arrays

        info = probe_arrays(media)
    else:
        info = _probe_container(media)
    if hash_content:
        from vcr_core.video.source import content_hash

        info = replace(info, sha256=content_hash(media))
    return info


def read(
    source: Source,
    sampler: Sampler,
    *,
    max_frames: int | None = None,
    on_error: OnError = "raise",
    autorotate: bool = True,
    thread_count: int = 0,
    thread_type: ThreadType = "SLICE",
    expected_frames: int | None = None,
    counts: FrameCounts | None = None,
) -> Clip:
    """Return the distinct frames of the sampler's plan.

    Args:
        source: path of a video, GIF, WebP or APNG, of a folder of frames, of an ``.npy`` or
            ``.npz`` file (key ``frames``); or the content of a video file.
        sampler: from the number of frames to a plan; called once or twice, so it must be pure.
        max_frames: use the first so many frames only, as if the video ended there.
        on_error: what a video that fails after some frames is: an error, or (``truncate``) a
            shorter video whose clip says so.
        autorotate: whether to turn frames upright by the file's display matrix.
        thread_count: decoder threads, 0 for the library's choice, 1 inside data-loader workers.
        thread_type: how the decoder may use threads. ``SLICE`` costs least CPU time; ``FRAME`` or
            ``AUTO`` are faster on idle machines with many cores. Pixels do not depend on it.
        expected_frames: the number of frames according to a manifest; a contradiction is an error.
        counts: memory of counts of earlier reads.

    Raises:
        VideoReadError: with the path, the stage and what the library underneath said.
        ValueError: if ``max_frames`` or ``expected_frames`` is below 1.
    """
    for name, value in (("max_frames", max_frames), ("expected_frames", expected_frames)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    media = _media(source)
    if isinstance(media, Path):
        if media.is_dir():
            from vcr_core.video.frames_dir import read_folder

            return read_folder(media, sampler, max_frames, on_error, expected_frames)
        if media.suffix.lower() in _ARRAYS:
            from vcr_core.video.arrays import read_arrays

            return read_arrays(media, sampler, max_frames, expected_frames)
    from vcr_core.video.webp import is_animated_webp, read_webp

    if is_animated_webp(media):
        return read_webp(media, sampler, max_frames, expected_frames)
    reading = _Reading(media, sampler, max_frames, on_error, autorotate, thread_count, thread_type)
    return reading.read(expected_frames, counts)


def _media(source: Source) -> opening.Media:
    if isinstance(source, bytes):
        if not source:
            raise VideoReadError("<0 bytes>", "open", "the content is empty (0 bytes)")
        return source
    path = Path(source)
    opening.check_path(path)
    return path.absolute()


def _probe_container(media: opening.Media) -> VideoInfo:
    with opening.open_media(media) as container:
        return opening.describe(container, opening.video_stream(container, media), media)


class _Reading:
    """One call of :func:`read` on something that PyAV opens."""

    def __init__(
        self,
        media: opening.Media,
        sampler: Sampler,
        max_frames: int | None,
        on_error: OnError,
        autorotate: bool,
        thread_count: int,
        thread_type: ThreadType,
    ) -> None:
        self.media = media
        self.name = opening.display_name(media)
        self.sampler = sampler
        self.max_frames = max_frames
        self.on_error = on_error
        self.autorotate = autorotate
        self.thread_count = thread_count
        self.thread_type: ThreadType = thread_type
        self.backend = opening.backend_name()

    def read(self, expected: int | None, counts: FrameCounts | None) -> Clip:
        """Return the clip, by the shortest way that cannot give other frames."""
        if expected is not None:
            clip = self._with_known_count(expected)
            if clip is None:
                raise VideoReadError(
                    self.name, "decode", f"decodes to another number of frames than the {expected} "
                    "that the manifest states; was the file replaced or cut?",
                )  # fmt: skip
            return clip
        path = self.media if isinstance(self.media, Path) else None
        if counts is not None and path is not None:
            known = counts.get(path, self.backend)
            clip = self._with_known_count(known) if known is not None else None
            if clip is not None:
                return clip
            counts.forget(path, self.backend)
        clip, certain = self._with_unknown_count()
        if counts is not None and path is not None and certain is not None:
            counts.put(path, self.backend, certain)
        return clip

    def _with_known_count(self, known: int) -> Clip | None:
        """Return the clip in one pass, or ``None`` if the file contradicts the count."""
        used = known if self.max_frames is None else min(known, self.max_frames)
        plan = ask(self.sampler, used, self.name)
        last = int(plan.distinct[-1])
        check_end = known - 1 - last <= _CHECK_TAIL and used == known
        found = self._pass(plan.distinct, None if check_end else last)
        if found.error is not None:
            if self.on_error == "raise":
                raise VideoReadError(self.name, "decode", _failure(found))
            # A manifest may list a damaged file with the number of frames that it yields.
            return self._clip(found, plan, used, total=known) if found.count == known else None
        if found.count <= last or (check_end and found.count != known):
            return None
        return self._clip(found, plan, used, total=known)

    def _with_unknown_count(self) -> tuple[Clip, int | None]:
        """Return the clip, and the number of frames of the file if that is now certain."""
        stop_after = None if self.max_frames is None else self.max_frames - 1
        found = self._pass(self._likely_wanted, stop_after)
        if found.error is not None and (self.on_error == "raise" or found.count == 0):
            raise VideoReadError(self.name, "decode", _failure(found))
        if found.count == 0:
            raise VideoReadError(self.name, "empty", "its video stream holds no decodable frame")
        plan = ask(self.sampler, found.count, self.name)
        total = found.count if found.finished else None
        if not np.array_equal(plan.distinct, found.wanted):
            count, error = found.count, found.error
            # Damaged files run to the same point again, so that every thread setting agrees.
            found = self._pass(plan.distinct, None if error is not None else int(plan.distinct[-1]))
            if found.kept < len(plan.distinct) and found.first_resized is None:
                text = f"the decoder gave {count} frames at first and {found.count} the second time"
                raise VideoReadError(self.name, "decode", text)
            found.count, found.error = count, error
        return self._clip(found, plan, found.count, total=total), total

    def _likely_wanted(self, container: InputContainer, stream: VideoStream) -> NDArray[np.int64]:
        guess = opening.likely_count(container, stream, self.media)
        if guess is None:
            return _NOTHING
        if self.max_frames is not None:
            guess = min(guess, self.max_frames)
        try:
            return ask(self.sampler, guess, self.name).distinct
        except VideoReadError:
            # The guess may be a length that the sampler refuses while the true one is fine.
            return _NOTHING

    def _pass(self, wanted: Wanted, stop_after: int | None) -> DecodePass:
        thread_type = self.thread_type
        while True:
            found = decode_pass(
                self.media,
                wanted,
                stop_after=stop_after,
                autorotate=self.autorotate,
                thread_count=self.thread_count,
                thread_type=thread_type,
            )
            # Frame threads report damage late, and then how much comes out depends on their number.
            if found.error is None or thread_type in ("NONE", "SLICE"):
                return found
            thread_type = "SLICE"

    def _clip(self, found: DecodePass, plan: SamplingPlan, used: int, total: int | None) -> Clip:
        last = int(plan.distinct[-1])
        # Only what lies before the last used frame counts: passes end there or go on, depending on
        # what was known beforehand, and the result must not depend on that.
        if found.first_resized is not None and found.first_resized[0] <= last:
            cause = f"the picture size changes within the video: {found.first_resized[1]}"
            raise VideoReadError(self.name, "decode", cause)
        notes = list(found.notes)
        header = found.info.header_frames
        if header is not None and total is not None and header != total:
            notes.append(f"the header states {header} frames, {total} were decoded")
            _warn_once(self.name, header, total)
        if found.error is not None:
            notes.append(f"truncated: {_failure(found)}")
        if found.frames is None:
            raise VideoReadError(self.name, "decode", "the decoder gave no frame of the plan")
        return Clip(
            frames=found.frames,
            plan=plan,
            indices=plan.distinct,
            pts_s=found.pts_s,
            fps=found.info.nominal_fps,
            n_decoded=used,
            pts_monotonic=found.first_unordered is None or found.first_unordered > last,
            info=found.info,
            backend=self.backend,
            truncated=found.error is not None,
            notes=tuple(notes),
        )


@lru_cache(maxsize=4096)
def _warn_once(name: str, header: int, total: int) -> None:
    _log.warning("%s: the header states %d frames, %d were decoded", name, header, total)


def _failure(found: DecodePass) -> str:
    frames = "1 frame" if found.count == 1 else f"{found.count} frames"
    return f"decoding failed after {frames}: {found.error}"
