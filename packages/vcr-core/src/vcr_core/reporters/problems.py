"""What went wrong in the runs: errors by kind, and health flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vcr_core.health_text import explain_flag
from vcr_core.reporters.rows import Row, flag_counts

if TYPE_CHECKING:
    from vcr_core.summary import RunView


@dataclass(slots=True)
class ErrorKind:
    """Errors of one type at one stage.

    Attributes:
        type: class of the exception.
        stage: where it happened.
        videos: how many videos failed so.
        runs: ids of the runs in which they did.
        example: the message of the first one.
        video: the video of the first one.
    """

    type: str
    stage: str
    videos: int = 0
    runs: dict[str, None] = field(default_factory=dict)
    example: str = ""
    video: str = ""


@dataclass(slots=True)
class Flag:
    """A health flag.

    Attributes:
        name: its id.
        text: what it means.
        runs: ids of the runs that have it.
        videos: how many videos have it; 0 where it is about whole runs.
    """

    name: str
    text: str
    runs: dict[str, None] = field(default_factory=dict)
    videos: int = 0


def error_kinds(ordered: Sequence[tuple[Row, RunView]]) -> list[ErrorKind]:
    """Return errors by type and stage, the most frequent first."""
    kinds: dict[tuple[str, str], ErrorKind] = {}
    for row, run in ordered:
        for record in run.records:
            if record.get("status") != "error":
                continue
            error = record.get("error") or {}
            key = (str(error.get("type") or "unknown"), str(error.get("stage") or "unknown"))
            kind = kinds.setdefault(key, ErrorKind(*key))
            if not kind.videos:
                kind.example = str(error.get("message") or "")
                kind.video = str(record.get("video", ""))
            kind.videos += 1
            kind.runs[row.run] = None
    return sorted(kinds.values(), key=lambda kind: (-kind.videos, kind.type, kind.stage))


def raised_flags(ordered: Sequence[tuple[Row, RunView]]) -> list[Flag]:
    """Return health flags, those of single runs and those that come from comparing them."""
    flags: dict[str, Flag] = {}
    for row, run in ordered:
        counts = flag_counts(run)
        for name in row.flags:
            flag = flags.setdefault(name, Flag(name, explain_flag(name)))
            flag.runs[row.run] = None
            flag.videos += counts.get(name) or 0
    return [flags[name] for name in sorted(flags)]
