"""Frames as a model samples them, kept between runs so that a video is decoded once.

What is kept of a video is its distinct frames of the plan, reduced to what the model asks for, and
what the decoder told. The key is the content of the video with everything that decides what is
taken of it. Generated videos are not kept: they are drawn as fast as they would be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vcr_core.atomic import to_json
from vcr_core.video.info import Clip, VideoInfo
from vcr_core.video.sampling import SamplingPlan

if TYPE_CHECKING:
    from vcr_core.reuse_store import Entry, ReuseStore, Shelf

SHARE = 0.5
"""Of the store's limit for the frames of a run: with less room they would only push out others."""


@dataclass(frozen=True, slots=True)
class FramesCache:
    """The shelf of a model's way to sample a dataset.

    Attributes:
        store: where it is.
        shelf: its name.
        keeps: whether what is decoded is kept.
        videos: how many videos the run has, all of whose frames have to fit.
    """

    store: ReuseStore
    shelf: Shelf
    keeps: bool
    videos: int

    def read(self, video: str, content: str, decode: Callable[[], Clip]) -> Clip:
        """Return the frames of a video: kept ones, or decoded ones, which may be kept.

        Args:
            video: its id.
            content: hash of its content.
            decode: what decodes it, and reduces its frames.

        Raises:
            VideoReadError: if it cannot be decoded.
        """
        text = to_json([content, video])
        key = hashlib.blake2b(text.encode(), digest_size=20, person=b"vcr-frames-v1").hexdigest()
        entry = self.store.load(self.shelf, key)
        if entry is not None:
            return _restored(entry)
        clip = decode()
        if self.keeps and clip.frames.nbytes * self.videos <= SHARE * self.store.limit:
            arrays: dict[str, Any] = {
                "frames": clip.frames,
                "indices": clip.indices,
                "pts_s": clip.pts_s,
            }
            self.store.save(self.shelf, key, arrays, _facts(clip))
        return clip


def _facts(clip: Clip) -> dict[str, Any]:
    info = {key: _plain(value) for key, value in asdict(clip.info).items()}
    return {
        "table": [list(row) for row in clip.plan.table],
        "policy": clip.plan.policy,
        "n_frames": clip.plan.n_frames,
        "fps": _plain(clip.fps),
        "n_decoded": clip.n_decoded,
        "pts_monotonic": clip.pts_monotonic,
        "info": info,
        "backend": clip.backend,
        "truncated": clip.truncated,
        "notes": list(clip.notes),
        "facts": dict(clip.facts),
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction) else value


def _restored(entry: Entry) -> Clip:
    facts = entry.facts
    info = VideoInfo(**facts["info"])
    fractions: dict[str, Any] = {
        name: Fraction(facts["info"][name])
        for name in ("nominal_fps", "sample_aspect")
        if facts["info"][name] is not None
    }
    table = tuple(tuple(row) for row in facts["table"])
    return Clip(
        frames=entry.arrays["frames"],
        plan=SamplingPlan(table, facts["policy"], facts["n_frames"]),
        indices=entry.arrays["indices"],
        pts_s=entry.arrays["pts_s"],
        fps=None if facts["fps"] is None else Fraction(facts["fps"]),
        n_decoded=facts["n_decoded"],
        pts_monotonic=facts["pts_monotonic"],
        info=replace(info, **fractions),
        backend=facts["backend"],
        truncated=facts["truncated"],
        notes=tuple(facts["notes"]),
        facts=facts["facts"],
    )
