"""Which videos two runs have in common, and whether they are the same videos at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core import outcomes
from vcr_core.errors import UsageError
from vcr_core.manifest import component_ref, planned_videos
from vcr_core.tables import label_name

if TYPE_CHECKING:
    from vcr_core.summary import RunView

FEW_VIDEOS = 20
"""With fewer, an interval from resampling is too narrow to be taken at its word."""


@dataclass(frozen=True, slots=True)
class Videos:
    """Which videos a comparison rests on.

    Attributes:
        common: ids that both runs evaluated, in the order of the first.
        lost: videos of the first run's plan or results that the second has no result for.
        extra: videos that only the second run has a result for.
    """

    common: tuple[str, ...]
    lost: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader has to know about them."""
        found = []
        if self.lost:
            found.append(
                f"{len(self.lost)} videos of A have no result in one of the runs and are left out"
            )
        if self.extra:
            found.append(f"{len(self.extra)} videos of B are not in A and are left out")
        if len(self.common) < FEW_VIDEOS:
            found.append(
                f"intervals over {len(self.common)} videos are rough: fewer than {FEW_VIDEOS}"
            )
        return tuple(found)


def check_comparable(a: RunView, b: RunView, *, across_versions: bool) -> list[str]:
    """Return what makes a comparison doubtful; refuse what makes it meaningless.

    Raises:
        UsageError: for other datasets, and for other evaluation versions unless these are allowed.
    """
    notes = []
    first, second = component_ref(a.manifest, "dataset"), component_ref(b.manifest, "dataset")
    if first != second:
        raise UsageError(
            f"{a.name} is on {first} and {b.name} on {second}: runs on different datasets cannot "
            "be paired"
        )
    versions = [run.manifest.get("evaluation_version") for run in (a, b)]
    if versions[0] != versions[1]:
        text = f"evaluation versions differ ({versions[0]} and {versions[1]})"
        if not across_versions:
            raise UsageError(
                f"{a.name}, {b.name}: {text}, so their numbers mean different things; evaluate "
                "one of them again, or say --across-versions"
            )
        notes.append(f"{text}: the change may come from the evaluation")
    notes += [
        f"{side} is {run.manifest.get('status')}: only the videos done so far are compared"
        for side, run in (("A", a), ("B", b))
        if run.manifest.get("status") != "done"
    ]
    return notes


def shared_videos(a: RunView, b: RunView) -> Videos:
    """Return the videos that both runs evaluated.

    Raises:
        UsageError: if there are none, or if a video has another label or content in the other run.
    """
    first, second = (
        {record["video"]: None for record in run.records if outcomes.is_evaluated(record)}
        for run in (a, b)
    )
    common = tuple(video for video in first if video in second)
    if not common:
        raise UsageError(
            f"{a.name} ({len(first)} videos) and {b.name} ({len(second)}) have no evaluated video "
            "in common"
        )
    wanted = dict.fromkeys([*planned_videos(a.manifest), *first])
    _check_content(a, b, common)
    lost = tuple(video for video in wanted if video not in second or video not in first)
    return Videos(common, lost, tuple(video for video in second if video not in wanted))


def _check_content(a: RunView, b: RunView, common: Sequence[str]) -> None:
    known, others = (
        {record["video"]: (_label(run, record), _hash(record)) for record in run.records}
        for run in (a, b)
    )
    for video in common:
        (label, content), (other_label, other_content) = known[video], others[video]
        if label != other_label:
            raise UsageError(
                f"{video} is {label} in {a.name} and {other_label} in {b.name}: the labels "
                "changed, so the runs cannot be paired"
            )
        if content and other_content and content != other_content:
            raise UsageError(
                f"{video} is another file in {b.name} than in {a.name} (sha256 "
                f"{other_content[:12]} and {content[:12]}), so the runs cannot be paired"
            )


def _label(run: RunView, record: Mapping[str, Any]) -> Any:
    """Return the name of a record's class, or its number where names are not known."""
    labels = (run.manifest.get("dataset") or {}).get("labels")
    number = record.get("label")
    return label_name(number, labels if isinstance(labels, list) else ()) or number


def _hash(record: Mapping[str, Any]) -> str:
    return str((record.get("input") or {}).get("sha256") or "")
