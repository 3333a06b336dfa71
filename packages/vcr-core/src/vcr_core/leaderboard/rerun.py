"""Evaluating a few videos of a finished run again, and comparing the records.

Whole batches are done again, in the cut and with the number of threads that ``run.json`` names:
what stands beside a video in its batch may change the last bits of its numbers. Nothing is taken
from the cache of other runs.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core import outcomes
from vcr_core.errors import UsageError, VcrError
from vcr_core.leaderboard.checks import Check, failed, few, impossible, passed
from vcr_core.leaderboard.content import RESOLVED_FILE
from vcr_core.leaderboard.wording import first_line
from vcr_core.record_schema import stable_part

if TYPE_CHECKING:
    from vcr_core.config.experiment import Experiment
    from vcr_core.summary import RunView

TOLERANCE = 1e-3
"""Relative and absolute difference of measured numbers that another machine may explain."""

_EXACT = (
    "status", "label", "target", "target_policy", "seeds", "artifact", "defense_artifacts",
    "transform", "error",
)  # fmt: skip
_DISCRETE = frozenset({
    "pred", "abstained", "rejected", "changed", "target", "n", "of", "any_query", "forwards",
    "backwards", "surrogate_forwards", "iterations", "budget_exhausted",
    "queries_to_first_success", "frames_touched", "projected", "quantised", "sha256", "indices",
    "frames_decoded", "plan", "class", "count", "n0",
})  # fmt: skip
_NOT_COMPARED = frozenset({"batch", "notes", "flags", "trace", "top5", "chunk", "decoder"})


@dataclass(frozen=True, slots=True)
class Rerun:
    """A check and how many videos it is about."""

    check: Check
    videos: int


def rerun(run: RunView, videos: int, content: str, *, seed: int = 0, device: str = "") -> Rerun:
    """Evaluate at least ``videos`` videos of a run again in a temporary folder.

    Args:
        run: a finished run.
        videos: how many; whole batches are taken until there are as many.
        content: hash of the submission. Which batches are taken depends on it, so that nobody
            knows them before the records are fixed.
        seed: another one takes other batches.
        device: where to run; that of the local configuration by default.
    """
    batches = choose_batches(run.manifest.get("batches") or [], videos, content, seed)
    ids = [video for batch in batches for video in batch]
    if not ids:
        return Rerun(impossible("rerun", "run.json plans no videos"), 0)
    try:
        made = _evaluate(run, batches, device)
    except VcrError as error:
        return Rerun(impossible("rerun", first_line(error, run.folder)), 0)
    except ModuleNotFoundError as error:
        return Rerun(impossible("rerun", f"{error.name} is not installed"), 0)
    return Rerun(_compare(run, ids, made), len(ids))


def choose_batches(
    batches: Sequence[Sequence[str]], videos: int, content: str, seed: int
) -> list[list[str]]:
    """Return batches, in an order that the submission and the seed fix, with enough videos."""

    def place(number: int) -> bytes:
        text = f"{content}\0{seed}\0{number}"
        return hashlib.blake2b(text.encode(), digest_size=8, person=b"vcr-rerun").digest()

    chosen: list[list[str]] = []
    for number in sorted(range(len(batches)), key=place):
        if sum(map(len, chosen)) >= videos:
            break
        chosen.append(list(batches[number]))
    return chosen


def _evaluate(run: RunView, batches: Sequence[Sequence[str]], device: str) -> list[dict[str, Any]]:
    """Return fresh records of ``batches``.

    Raises:
        VcrError: if the experiment cannot be run here.
        ModuleNotFoundError: if the engine's requirements are not installed.
    """
    from vcr_core.atomic import write_text
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.shard import run_shard
    from vcr_core.manifest import write_manifest
    from vcr_core.protocols import ShardTask
    from vcr_core.records import read_records

    document = run.folder / RESOLVED_FILE
    if not document.is_file():
        raise UsageError(f"{RESOLVED_FILE} is missing")
    experiment = _as_asked(resolve_run(document).experiment, device)
    with tempfile.TemporaryDirectory(prefix="vcr-rerun-") as name:
        folder = Path(name)
        write_text(folder / RESOLVED_FILE, document.read_text(encoding="utf-8"))
        manifest = {**run.manifest, "batches": [list(b) for b in batches], "status": "running"}
        write_manifest(folder, manifest)
        threads = int(run.manifest.get("threads") or 0)
        outcome = run_shard(ShardTask(folder, 0, 1, experiment.runtime.device, threads), experiment)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return read_records(folder)


def _as_asked(experiment: Experiment, device: str) -> Experiment:
    import msgspec

    runtime = msgspec.structs.replace(
        experiment.runtime,
        reuse=False,
        max_errors=0.99,
        **({"device": device} if device else {}),
    )
    output = msgspec.structs.replace(experiment.output, keep_clips=0)
    return replace(experiment, runtime=runtime, output=output)


def _compare(run: RunView, ids: Sequence[str], made: Sequence[Mapping[str, Any]]) -> Check:
    theirs = {record["video"]: record for record in run.records}
    ours = {record["video"]: record for record in made}
    problems, exact = [], 0
    for video in ids:
        if video not in theirs or video not in ours:
            where = "the run" if video not in theirs else "the repetition"
            problems.append(f"{video}: {where} has no record of it")
            continue
        problems += [f"{video}: {text}" for text in differences(theirs[video], ours[video])]
        exact += _same_bits(theirs[video], ours[video])
    count = f"{len(ids)} videos"
    machine = _other_machine(run, made)
    if problems:
        return failed("rerun", few(problems) + (f" ({machine})" if machine else ""))
    if exact == len(ids):
        return passed("rerun", f"{count} give the same records, bit for bit")
    return passed(
        "rerun", f"{count} give the same outcomes; in {len(ids) - exact} of them numbers differ by "
        f"less than {TOLERANCE:g}" + (f" ({machine})" if machine else ""),
    )  # fmt: skip


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """Yield what two records of a video disagree about.

    Predictions, outcomes, counts, seeds and what was decoded must be equal; measured numbers may
    differ by :data:`TOLERANCE`; times, memory and where it happened are not compared. A field that
    an older version did not write cannot disagree.
    """
    if not outcomes.is_evaluated(theirs) and not outcomes.is_evaluated(ours):
        yield from _unequal("status", theirs.get("status"), ours.get("status"), exact=True)
        return
    one, other = stable_part(theirs), stable_part(ours)
    if not outcomes.is_evaluated(ours):
        error = other.get("error") or {}
        yield f"could not be evaluated here: {error.get('type')}: {error.get('message')}"
        return
    for key in sorted(one.keys() - _NOT_COMPARED):
        yield from _unequal(key, one[key], other.get(key), exact=key in _EXACT)


def _unequal(place: str, one: Any, other: Any, *, exact: bool) -> Iterator[str]:
    key = place.rpartition(".")[2].partition("[")[0]
    exact = exact or key in _DISCRETE
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for inner in sorted(one.keys() - _NOT_COMPARED):
            yield from _unequal(f"{place}.{inner}", one[inner], other.get(inner), exact=exact)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _unequal(f"{place}[{index}]", a, b, exact=exact)
    elif not (one == other or (not exact and _near(one, other))):
        yield f"{place} is {_short(one)} there, {_short(other)} here"


def _near(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    if not (isinstance(one, int | float) and isinstance(other, int | float)):
        return False
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _same_bits(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Return whether two records agree to the last bit in all that they both measured."""
    return all(
        not list(_unequal(key, value, ours.get(key), exact=True))
        for key, value in stable_part(theirs).items()
        if key not in _NOT_COMPARED
    )


def _other_machine(run: RunView, made: Sequence[Mapping[str, Any]]) -> str:
    """Return how this machine differs from the run's in what may change last bits, or nothing."""
    from vcr_core.environment import environment

    there, here = run.manifest.get("environment") or {}, environment(with_torch=True)
    pairs = {
        "machine": (there.get("machine"), here["machine"]),
        "Python": (there.get("python"), here["python"]),
        "torch": ((there.get("torch") or {}).get("version"), (here["torch"] or {}).get("version")),
        "device": (_devices(run.records), _devices(made)),
    }
    found = [f"{name} {a} there, {b} here" for name, (a, b) in pairs.items() if a != b]
    if not found:
        return ""
    return f"another machine may differ in the last bits, which attacks amplify: {', '.join(found)}"


def _devices(records: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(sorted({str(record.get("device")) for record in records}))


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
