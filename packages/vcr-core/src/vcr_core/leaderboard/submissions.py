"""Run folders as a leaderboard takes them: read, judged, admitted or left out with the reason."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core import definitions, outcomes
from vcr_core.__about__ import __version__
from vcr_core.errors import StoreError
from vcr_core.leaderboard.checks import Check, Verification
from vcr_core.leaderboard.content import content_of
from vcr_core.leaderboard.identity_checks import check_configuration, check_identity
from vcr_core.leaderboard.manifest_check import check_manifest
from vcr_core.leaderboard.record_checks import (
    check_consistency,
    check_coverage,
    check_schema,
    check_threat,
)
from vcr_core.manifest import component_ref, defense_refs, planned_videos, read_manifest
from vcr_core.records import latest, raw_records
from vcr_core.summary import RunView, find_runs, summarize

if TYPE_CHECKING:
    from vcr_core.stats import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a run has to be to be admitted.

    Attributes:
        max_errors: largest share of videos without a result.
        exclude_flags: health flags that keep a run out.
        verified: outcomes of ``vcr leaderboard verify``, by content hash.
        only_verified: whether a run without one is left out.
    """

    max_errors: float = 0.05
    exclude_flags: frozenset[str] = frozenset()
    verified: Mapping[str, Verification]
    only_verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """An admitted run.

    Attributes:
        run: the run; of its records only those of failed videos are kept.
        measure: the definition that it is ranked by: accuracy of the whole system, after the
            attack where there is one.
        holds: for every evaluated video, whether the system was right.
        verification: what was checked.
    """

    run: RunView
    measure: str
    holds: Mapping[str, bool]
    verification: Verification

    @property
    def value(self) -> float | None:
        """The accuracy that ranks it."""
        entry = self.run.summary["definitions"].get(self.measure) or {}
        value: float | None = entry.get("value")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A run folder that is not on the leaderboard.

    Attributes:
        run: its id, or the folder's name where that cannot be read.
        folder: where it lies, relative to what was given.
        reasons: why.
    """

    run: str
    folder: str
    reasons: tuple[str, ...]


def collect(paths: Sequence[Path], rules: Rules) -> tuple[list[Submission], list[LeftOut]]:
    """Read every run below ``paths``.

    Returns:
        Admitted runs, each experiment once, and the others; both sorted by run id.

    Raises:
        StoreError: if a path does not exist.
    """
    folders: dict[Path, str] = {}
    for path in paths:
        for folder in find_runs(path):
            folders.setdefault(folder.resolve(), _relative(folder, path))
    admitted: list[Submission] = []
    left_out: list[LeftOut] = []
    for folder, place in sorted(folders.items(), key=lambda item: (item[1], str(item[0]))):
        found = judge(folder, place, rules)
        if isinstance(found, LeftOut):
            left_out.append(found)
        else:
            admitted.append(found)
    kept, twice = _each_once(admitted)
    return kept, sorted([*left_out, *twice], key=lambda one: (one.run, one.folder))


def judge(folder: Path, place: str, rules: Rules) -> Submission | LeftOut:
    """Read one run folder and say whether it is admitted."""
    try:
        manifest = read_manifest(folder)
        raw = raw_records(folder)
    except StoreError as error:
        text = str(error).replace(str(folder), place)
        return LeftOut(run=folder.name, folder=place, reasons=(f"cannot be read: {text}",))
    name = str(manifest.get("run") or folder.name)
    for check in (check_manifest(manifest), check_schema(raw, manifest)):
        if check.outcome == "failed":
            reason = f"{check.name}: {check.detail}"
            return LeftOut(run=name, folder=place, reasons=(reason,))
    content = content_of(folder)
    records = latest(raw)
    checks = _checks(folder, manifest, raw, records)
    verification = rules.verified.get(content) or Verification(
        run=name, content=content, checks=checks, checked_with=__version__
    )
    reasons = _reasons(manifest, records, checks, rules)
    if verification.failed and not any(check.outcome == "failed" for check in checks):
        reasons += [f"{check.name}: {check.detail}" for check in verification.failed]
    if rules.only_verified and content not in rules.verified:
        reasons.append("it has not been verified as it is now")
    if reasons:
        return LeftOut(run=name, folder=place, reasons=tuple(reasons))
    measure = measure_of(manifest)
    summary = summarize(manifest, records)
    if (summary["definitions"].get(measure) or {}).get("value") is None:
        return LeftOut(run=name, folder=place, reasons=(f"{measure} has no value",))
    failed = [record for record in records if not outcomes.is_evaluated(record)]
    return Submission(
        run=RunView(folder, manifest, failed, summary),
        measure=measure,
        holds=_holds(definitions.terms(measure, records)),
        verification=verification,
    )


def measure_of(manifest: Mapping[str, Any]) -> str:
    """Return the definition that ranks a run: that of the whole system, defense included."""
    prefix = "defended_" if defense_refs(manifest) else ""
    return f"{prefix}{'robust' if component_ref(manifest, 'attack') else 'clean'}_accuracy"


def _holds(terms: Mapping[str, Term]) -> dict[str, bool]:
    return {video: 2 * term.num > term.den for video, term in terms.items() if term.den}


def _checks(
    folder: Path,
    manifest: Mapping[str, Any],
    raw: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
) -> list[Check]:
    """Return the checks that need nothing but the folder; ``vcr leaderboard verify`` has more."""
    bound = check_threat(records, manifest)
    return [
        check_configuration(folder, manifest),
        check_identity(folder, manifest, records),
        check_schema(raw, manifest),
        check_coverage(raw, manifest),
        check_consistency(records, manifest),
        *([bound] if bound is not None else []),
    ]


def _reasons(
    manifest: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    checks: Sequence[Check],
    rules: Rules,
) -> list[str]:
    reasons = []
    if manifest.get("status") != "done":
        done, planned = len(records), len(planned_videos(manifest))
        reasons.append(f"not finished: {manifest.get('status')}, {done} of {planned} videos")
    lost = sum(not outcomes.is_evaluated(record) for record in records)
    if records and lost > rules.max_errors * len(records):
        reasons.append(
            f"{lost} of {len(records)} videos have no result; {rules.max_errors:.0%} are allowed"
        )
    raised = {str(flag) for flag in manifest.get("flags") or ()}
    raised |= {str(flag) for record in records for flag in record.get("flags") or ()}
    reasons += [f"health flag {flag}" for flag in sorted(raised & rules.exclude_flags)]
    # That an unfinished run lacks videos has been said.
    silent = {"coverage"} if reasons and reasons[0].startswith("not finished") else set()
    reasons += [
        f"{check.name}: {check.detail}"
        for check in checks
        if check.outcome == "failed" and check.name not in silent
    ]
    return reasons


def _each_once(admitted: Sequence[Submission]) -> tuple[list[Submission], list[LeftOut]]:
    """Return every experiment once: submitted twice, the better checked and then the older one."""
    groups: dict[str, list[Submission]] = {}
    for one in admitted:
        groups.setdefault(str(one.run.manifest.get("experiment_hash")), []).append(one)
    kept, twice = [], []
    for group in groups.values():
        first, *others = sorted(
            group,
            key=lambda s: (
                -s.verification.rerun,
                str(s.run.manifest.get("ended")),
                s.verification.content,
            ),
        )
        kept.append(first)
        for other in others:
            apart = sum(first.holds.get(video) != right for video, right in other.holds.items())
            agree = f"{apart} of its videos have another outcome" if apart else "the same outcomes"
            twice.append(
                LeftOut(
                    run=other.run.name,
                    folder=other.run.folder.name,
                    reasons=(f"the same experiment was submitted before: {agree}",),
                )
            )
    return sorted(kept, key=lambda s: s.run.name), twice


def _relative(folder: Path, given: Path) -> str:
    base = given if given.is_dir() else given.parent
    place = os.path.relpath(folder, base.parent if folder == base else base)
    return Path(place).as_posix()
