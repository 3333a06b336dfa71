"""Which kept clips the HTML report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.reporters.clips import KeptClip, kept_clips, load_clip
from vcr_core.reporters.players import Player, make_player
from vcr_core.reporters.strips import Strip, choose_frames, make_strip

if TYPE_CHECKING:
    from vcr_core.summary import RunView

MAX_CLIPS = 12
MAX_BYTES = 12_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One clip on show: a video where it could be encoded, and always a strip of frames."""

    run: str
    video: str
    label: str
    threat: str
    strip: Strip
    player: Player | None

    @property
    def bytes(self) -> int:
        """What it adds to the page."""
        return self.strip.bytes + (len(self.player.uri) if self.player else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Clips that are shown, and how many were kept in all."""

    exhibits: tuple[Exhibit, ...]
    kept: int


def make_gallery(runs: Sequence[RunView], limit: int = MAX_CLIPS) -> Gallery:
    """Return kept clips: the first of every run, then the second, up to ``limit``.

    Where a turn has more runs than there is room for, evenly spaced ones are taken. The choice
    depends on the order of runs and clips only, never on how an attack fared. It ends early when
    the page would get too large.
    """
    clips = [[(run, entry) for entry in kept_clips(run)] for run in runs]
    exhibits: list[Exhibit] = []
    size = 0
    for turn in range(max((len(found) for found in clips), default=0)):
        offered = [found[turn] for found in clips if turn < len(found)]
        for index in choose_frames(len(offered), limit - len(exhibits)):
            clip = load_clip(*offered[index]) if size < MAX_BYTES else None
            if clip is not None:
                exhibits.append(_exhibit(clip))
                size += exhibits[-1].bytes
    return Gallery(exhibits=tuple(exhibits), kept=sum(map(len, clips)))


def _exhibit(clip: KeptClip) -> Exhibit:
    return Exhibit(
        run=clip.run,
        video=clip.video,
        label=clip.label,
        threat=clip.threat,
        strip=make_strip(clip),
        player=make_player(clip),
    )
