"""Checks of a run's records: whole, of the schema, planned, and not at odds with themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from vcr_core import outcomes
from vcr_core.leaderboard.checks import Check, failed, judged
from vcr_core.manifest import component_ref, is_adaptive, planned_videos, table
from vcr_core.record_schema import validate_record
from vcr_core.records import check_complete
from vcr_core.reporters.rows import eps_of
from vcr_core.transformation import is_transformation

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOSE = 1e-6
"""Probabilities and radii are stored in full; this only forgives float32 arithmetic."""


def check_schema(raw: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]) -> Check:
    """Check every attempt of every video against the record schema and the run's id."""
    problems = []
    run = manifest.get("run")
    for record in raw:
        try:
            validate_record(record)
        except msgspec.ValidationError as error:
            problems.append(f"{record['video']}: {error}")
        if record.get("run") != run:
            problems.append(f"{record['video']}: a record of run {record.get('run')!r}")
    return judged("records-schema", problems, f"{len(raw)} records of schema 1")


def check_coverage(raw: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]) -> Check:
    """Check that every planned video has a record, and no other one has."""
    planned = planned_videos(manifest)
    if not planned:
        return failed("coverage", "run.json plans no videos")
    found = check_complete(raw, manifest.get("batches") or ())
    problems = [
        f"{len(videos)} {what} (first {videos[0]})"
        for videos, what in (
            (found.missing, "planned videos without a record"),
            (found.unplanned, "videos that were not planned"),
            (found.duplicates, "videos recorded twice as the same attempt"),
        )
        if videos
    ]
    size = (manifest.get("dataset") or {}).get("n")
    if size is not None and size != len(planned):
        problems.append(f"run.json says {size} videos and plans {len(planned)}")
    return judged("coverage", problems, f"one record for each of {len(planned)} planned videos")


def check_consistency(records: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]) -> Check:
    """Check that no record contradicts itself: predictions, probabilities, status, success."""
    judge = _Judge(manifest)
    problems = [
        f"{record['video']}: {problem}"
        for record in records
        if outcomes.is_evaluated(record)
        for problem in judge(record)
    ]
    return judged("consistency", problems, "predictions, status and success agree in every record")


def check_threat(records: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]) -> Check | None:
    """Check recorded sizes of perturbations against the threat model; ``None`` without a bound."""
    threat = table(manifest, "threat")
    norm, eps = str(threat.get("norm", "linf")), largest_eps(threat)
    if not component_ref(manifest, "attack") or norm not in _SIZE_OF or eps is None:
        return None
    key, slack = _SIZE_OF[norm]
    sizes = {
        record["video"]: record["perturbation"].get(key)
        for record in records
        if record.get("status") == "ok" and record.get("perturbation")
    }
    problems = [
        f"{video}: {norm} {size:.6g} is above {eps:.6g}"
        for video, size in sizes.items()
        if isinstance(size, int | float) and size > eps + slack * (1 + eps)
    ]
    return judged("threat", problems, f"{norm} ≤ {eps:.6g} in {len(sizes)} attacked videos")


def largest_eps(threat: Mapping[str, Any]) -> float | None:
    """Return the radius that no frame of a video may exceed."""
    frames = [eps_of({"eps": value}) for value in threat.get("per_frame_eps") or ()]
    known = [value for value in frames if value is not None]
    return max(known) if known else eps_of(threat)


_SIZE_OF: Mapping[str, tuple[str, float]] = {"linf": ("linf", 1e-6), "l2": ("l2", 1e-5)}
"""The recorded size that each norm bounds, and what rounding errors explain."""


class _Judge:
    """Finds what a record says against itself."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._classes = len((manifest.get("dataset") or {}).get("labels") or ())
        self._attacked = bool(component_ref(manifest, "attack"))
        # Who asks nothing of a model finds no video ineligible and is no attacker.
        self._aims = self._attacked and not is_transformation(manifest)
        self._defended = is_adaptive(manifest)
        self._transferred = bool(component_ref(manifest, "source"))

    def __call__(self, record: Mapping[str, Any]) -> Iterator[str]:
        label = record.get("label")
        if not isinstance(label, int) or (self._classes and not 0 <= label < self._classes):
            yield f"label {label!r} is none of the {self._classes} classes"
            return
        for name, corners in self._corners(record):
            for corner in corners:
                yield from _corner_problems(name, corner, label, bare=not name.endswith("defended"))
        if not self._aims:
            return
        if record["status"] == "ok" and not outcomes.attacked_corners(record, defended=False):
            yield "attacked, but without a prediction on the attacked video"
        yield from self._eligibility(record)
        yield from self._success(record, label)

    def _corners(
        self, record: Mapping[str, Any]
    ) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
        for name in ("clean", "clean_defended", "attacked", "attacked_defended"):
            found = record.get(name)
            if isinstance(found, Mapping):
                yield name, [found]
            elif found:
                yield name, found

    def _eligibility(self, record: Mapping[str, Any]) -> Iterator[str]:
        if self._transferred:
            yield from _source_problems(record)
            return
        # Behind a defense the attack may have looked through other parameters, or other draws.
        if self._defended or not record.get("clean"):
            return
        right = outcomes.is_right(record, record["clean"])
        if record["status"] == "ok" and not right:
            yield "attacked although the model was wrong before"
        if record["status"] == "ineligible" and right:
            yield "called ineligible although the model was right before"

    def _success(self, record: Mapping[str, Any], label: int) -> Iterator[str]:
        success = record.get("success")
        if record["status"] != "ok" or not isinstance(success, Mapping):
            return
        corners = outcomes.attacked_corners(record, defended=self._defended)
        wins: Callable[[Mapping[str, Any]], bool]
        if record.get("target") is not None:
            goal, wins = "target", lambda corner: corner.get("pred") == record["target"]
        else:
            goal, wins = "changed", lambda corner: corner.get("pred") not in (label, None)
        n = sum(map(wins, corners))
        said = (success.get("n"), success.get("of"), success.get(goal))
        if corners and said != (n, len(corners), 2 * n > len(corners)):
            yield (
                f"success is given as {said[0]} of {said[1]} draws; its predictions say {n} of "
                f"{len(corners)}"
            )


def _source_problems(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a record says against itself about the model that the attack was computed on."""
    right, lost = outcomes.source_right(record), outcomes.source_lost(record)
    if right is None:
        yield "attacked on another model, without a prediction of that model"
    elif record["status"] == "ok" and not right:
        yield "attacked although the source was wrong before"
    elif record["status"] == "ineligible" and right:
        yield "called ineligible although the source was right before"
    elif record["status"] == "ok":
        said = (record["source"].get("success") or {}).get("changed")
        if bool(said) != bool(lost):
            yield f"success on the source is given as {said}; its predictions say {bool(lost)}"


def _corner_problems(
    name: str, corner: Mapping[str, Any], label: int, *, bare: bool
) -> Iterator[str]:
    pred, p_label, p_pred = corner.get("pred"), corner.get("p_label"), corner.get("p_pred")
    if pred is None:
        return
    if pred == label and abs((p_label or 0.0) - (p_pred or 0.0)) > _CLOSE:
        yield f"{name}: the true label has two probabilities, {p_label} and {p_pred}"
    if not bare:
        return
    # A vote or an abstention may go against probabilities; a bare model's prediction cannot.
    if corner.get("top5") and corner["top5"][0] != pred:
        yield f"{name}: predicts {pred} and lists {corner['top5'][0]} as the most probable"
    margin = corner.get("margin")
    if margin is not None and (margin < -_CLOSE if pred == label else margin > _CLOSE):
        yield f"{name}: predicts {pred} with a margin of {margin:.4g} of the true label {label}"


def error_share(records: Sequence[Mapping[str, Any]]) -> float:
    """Return the share of recorded videos that have no result."""
    lost = sum(not outcomes.is_evaluated(record) for record in records)
    return lost / len(records) if records else 0.0
