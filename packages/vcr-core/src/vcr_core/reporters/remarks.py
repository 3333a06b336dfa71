"""What a reader should know before comparing the runs of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vcr_core.corruption import damaged_unlike
from vcr_core.manifest import planned_videos
from vcr_core.reporters.rows import Row
from vcr_core.reuse_store import REUSED

if TYPE_CHECKING:
    from vcr_core.summary import RunView


def remarks(ordered: Sequence[tuple[Row, RunView]]) -> list[str]:
    """Return sentences about runs that are unfinished, incomplete or not comparable."""
    found = []
    unfinished = sum(row.status != "done" for row, _ in ordered)
    if unfinished:
        found.append(
            f"{_runs(unfinished)} not finished; the numbers are over the videos done so far."
        )
    errors = sum(row.errors for row, _ in ordered)
    if errors:
        failing = sum(row.errors > 0 for row, _ in ordered)
        noun = "1 video" if errors == 1 else f"{errors} videos"
        found.append(
            f"{noun} failed, in {failing} of {len(ordered)} runs. They are listed with their "
            "reasons under each run and are not in the rates."
        )
    versions = {run.manifest.get("evaluation_version") for _, run in ordered}
    if len(versions) > 1:
        found.append(
            "The runs come from different evaluation versions ("
            + ", ".join(sorted(str(version) for version in versions))
            + "); their numbers must not be compared."
        )
    subsets: dict[str, set[tuple[str, ...]]] = {}
    for row, run in ordered:
        videos = tuple(sorted(planned_videos(run.manifest)))
        if videos:
            subsets.setdefault(row.dataset, set()).add(videos)
    for dataset, sets in sorted(subsets.items()):
        if len(sets) > 1:
            found.append(
                f"Runs on {dataset} use {len(sets)} different sets of videos, so differences "
                "between them are not paired."
            )
    unlike = damaged_unlike((run.manifest, run.summary) for _, run in ordered)
    if unlike:
        found.append(
            f"The same video was not damaged in the same way in all runs of {', '.join(unlike)}: "
            "another version of a codec or of the code. Their numbers must not be compared."
        )
    unaware = sum(row.adaptive is False for row, _ in ordered)
    if unaware:
        found.append(
            f"{_runs(unaware, 'has', 'have')} a defense that the attacker does not know of. Such "
            "numbers overstate what a defense achieves."
        )
    taken = sum(
        any(str(note).startswith(REUSED) for r in run.records for note in r.get("notes") or ())
        for _, run in ordered
    )
    if taken:
        found.append(
            f"{_runs(taken, 'judges', 'judge')} videos that the attack of another run made, the "
            "same bit for bit; the time of that attack is counted there."
        )
    return found


def _runs(count: int, one: str = "is", many: str = "are") -> str:
    return f"1 run {one}" if count == 1 else f"{count} runs {many}"
