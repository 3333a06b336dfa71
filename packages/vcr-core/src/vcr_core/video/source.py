"""One file (or folder of frames) of a dataset as a ``VideoSource``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.video.info import Clip, OnError, VideoReadError

if TYPE_CHECKING:
    from vcr_core.protocols import Sampler
    from vcr_core.video.counts import FrameCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """Where the frames of one video come from; nothing is opened before ``read``.

    Attributes:
        path: file or folder; need not exist yet.
        on_error: what a video that fails after some frames is.
        expected_frames: number of frames that a manifest states.
        expected_sha256: hash of the content that a manifest states.
        counts: memory of counts of earlier reads; ``dataclasses.replace`` sets it.
        thread_count: decoder threads, 0 for the library's choice.
    """

    path: Path
    on_error: OnError = "raise"
    expected_frames: int | None = None
    expected_sha256: str | None = None
    counts: FrameCounts | None = None
    thread_count: int = 0

    @property
    def name(self) -> str:
        """Full path, for messages."""
        return str(self.path.absolute())

    def read(self, sampler: Sampler) -> Clip:
        """Decode what the sampler's plan uses.

        Raises:
            VideoReadError: if the file is missing, damaged, or not the one of the manifest.
        """
        from vcr_core.video.reader import read

        if self.expected_sha256 is not None and self.path.exists():
            found = self.sha256()
            if found != self.expected_sha256:
                cause = f"its SHA-256 is {found}, the manifest states {self.expected_sha256}"
                raise VideoReadError(self.name, "open", cause)
        return read(
            self.path,
            sampler,
            on_error=self.on_error,
            thread_count=self.thread_count,
            expected_frames=self.expected_frames,
            counts=self.counts,
        )

    def sha256(self) -> str | None:
        """Return the content's SHA-256, or ``None`` where it cannot be read."""
        try:
            return content_hash(self.path)
        except (OSError, VideoReadError):
            return None


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of a folder's frames.

    Raises:
        OSError: if something cannot be read.
        VideoReadError: for a folder without frames.
    """
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    from vcr_core.video.frames_dir import frame_files

    digest = hashlib.sha256()
    for frame in frame_files(path):
        for part in (frame.name.encode("utf-8", "surrogateescape"), frame.read_bytes()):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
