"""Every check of a submitted run folder."""

from __future__ import annotations

from pathlib import Path

from vcr_core.__about__ import __version__
from vcr_core.errors import StoreError
from vcr_core.leaderboard.checks import Check, Verification, failed, impossible, judged
from vcr_core.leaderboard.clips_check import check_clips
from vcr_core.leaderboard.content import content_of
from vcr_core.leaderboard.identity_checks import (
    check_configuration,
    check_identity,
    check_versions,
)
from vcr_core.leaderboard.manifest_check import check_manifest
from vcr_core.leaderboard.record_checks import (
    check_consistency,
    check_coverage,
    check_schema,
    check_threat,
)
from vcr_core.leaderboard.rerun import rerun as evaluate_again
from vcr_core.leaderboard.summary_check import check_summary
from vcr_core.manifest import read_manifest
from vcr_core.records import latest, raw_records
from vcr_core.summary import RunView, summarize


def verify_run(folder: Path, *, rerun: int = 0, seed: int = 0, device: str = "") -> Verification:
    """Check one run folder; nothing in it is changed.

    Args:
        folder: the run folder.
        rerun: evaluate at least so many of its videos again; needs the engine and the dataset.
        seed: which ones.
        device: where; as configured by default.

    Returns:
        All checks. What cannot be read is a failed check, not an exception.
    """
    content = content_of(folder)
    try:
        manifest = read_manifest(folder)
        raw = raw_records(folder)
    except StoreError as error:
        problem = str(error).replace(str(folder), folder.name)
        return _made(folder.name, content, [failed("files", problem)])
    name = str(manifest.get("run") or folder.name)
    form = [check_manifest(manifest), check_schema(raw, manifest)]
    if any(check.outcome == "failed" for check in form):
        # What does not have the form of a run has no numbers either.
        return _made(name, content, form)
    records = latest(raw)
    run = RunView(folder, manifest, records, summarize(manifest, records))
    bound = check_threat(records, manifest)
    checks = [
        _finished(run),
        *form,
        check_configuration(folder, manifest),
        check_identity(folder, manifest, records),
        check_coverage(raw, manifest),
        check_consistency(records, manifest),
        *([bound] if bound is not None else []),
        check_summary(folder, run.summary),
        check_clips(run),
        check_versions(manifest),
    ]
    done = 0
    if rerun:
        if any(check.outcome == "failed" for check in checks):
            checks.append(impossible("rerun", "not tried: another check failed"))
        else:
            again = evaluate_again(run, rerun, content, seed=seed, device=device)
            checks.append(again.check)
            done = again.videos
    return _made(name, content, checks, done)


def _made(run: str, content: str, checks: list[Check], rerun: int = 0) -> Verification:
    return Verification(
        run=run, content=content, checks=checks, rerun=rerun, checked_with=__version__
    )


def _finished(run: RunView) -> Check:
    """Check that the run is finished and lies in a folder of its own name."""
    problems = []
    if run.manifest.get("status") != "done":
        problems.append(f"the run is {run.manifest.get('status')!r}, not done")
    if run.manifest.get("run") != run.folder.resolve().name:
        problems.append(f"the folder of run {run.manifest.get('run')!r} has another name")
    return judged("files", problems, "run.json and records can be read; the run is done")
