"""Where the frames of attacked videos come from: kept by the run, or made again."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import numpy as np

from vcr_core.errors import StoreError, UsageError
from vcr_core.leaderboard.checks import few
from vcr_core.leaderboard.rerun import differences
from vcr_core.reporters.clips import kept_clips

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.setup import Parts
    from vcr_core.summary import RunView

Origin: TypeAlias = Literal["kept", "made again"]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A video as it was and as the attack left it.

    Attributes:
        clean: ``[T, H, W, 3]`` uint8.
        adversarial: ``[T2, H, W, 3]`` uint8.
        origin: where the frames come from.
    """

    clean: NDArray[np.uint8]
    adversarial: NDArray[np.uint8]
    origin: Origin


def kept_files(run: RunView) -> dict[str, Path]:
    """Return the file of kept frames of every video that has one."""
    found = {}
    for entry in kept_clips(run):
        # A name with folders in it would lead elsewhere.
        name = Path(str(entry["file"]).replace("\\", "/")).name
        path = run.folder / "artifacts" / name
        if path.is_file():
            found[str(entry.get("video"))] = path
    return found


def load_pair(path: Path, origin: Origin) -> Pair:
    """Return the frames of one file.

    Raises:
        StoreError: if it is damaged.
    """
    try:
        # Of a damaged archive numpy would leave the file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            clean, adversarial = arrays["clean"], arrays["adversarial"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StoreError(
            f"{path}: cannot be read ({error}); delete it and use --recreate"
        ) from error
    for frames in (clean, adversarial):
        if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8 or not frames.size:
            raise StoreError(f"{path}: holds no 8-bit frames; delete it and use --recreate")
    return Pair(clean, adversarial, origin)


def choose_videos(run: RunView, only: Sequence[str]) -> list[str]:
    """Return videos that were evaluated, in the run's order.

    Args:
        run: the run.
        only: these; all if empty.

    Raises:
        UsageError: for a video that the run does not plan, or has not evaluated.
    """
    status = {record["video"]: str(record.get("status")) for record in run.records}
    planned = {video for batch in run.manifest.get("batches") or () for video in batch}
    for video in only:
        if video not in planned and video not in status:
            raise UsageError(f"{run.name} has no video {video!r}")
        if status.get(video) not in ("ok", "ineligible"):
            why = f"its status is {status[video]}" if video in status else "it has no record yet"
            raise UsageError(f"{run.name}: {video!r} was not evaluated, {why}")
    wanted = set(only) or {video for video, said in status.items() if said in ("ok", "ineligible")}
    return [record["video"] for record in run.records if record["video"] in wanted]


@contextmanager
def made_again(
    run: RunView, experiment: Experiment, videos: Sequence[str], parts: Parts | None = None
) -> Iterator[dict[str, Path]]:
    """Run the attack on videos again, and give files of their frames while the block lasts.

    Whole batches are done again, in the cut and with the number of threads of the run: what stands
    beside a video may change the last bits of a gradient. Nothing is taken from the cache.

    Args:
        run: the run.
        experiment: its experiment.
        videos: which videos.
        parts: in-memory components.

    Raises:
        StoreError: if the records come out otherwise than those of the run.
    """
    from vcr_core.engine.shard import run_shard
    from vcr_core.manifest import write_manifest
    from vcr_core.protocols import ShardTask
    from vcr_core.records import read_records
    from vcr_core.summary import load_run

    wanted = set(videos)
    batches = [list(b) for b in run.manifest.get("batches") or () if wanted & set(b)]
    again = replace(
        experiment,
        runtime=msgspec.structs.replace(experiment.runtime, reuse=False, max_errors=0.99),
        output=msgspec.structs.replace(experiment.output, keep_clips=sum(map(len, batches))),
    )
    with tempfile.TemporaryDirectory(prefix="vcr-again-") as name:
        folder = Path(name)
        write_manifest(folder, {**run.manifest, "batches": batches, "status": "running"})
        threads = int(run.manifest.get("threads") or 0)
        task = ShardTask(folder, 0, 1, again.runtime.device, threads)
        if run_shard(task, again, parts=parts).interrupted:
            raise KeyboardInterrupt
        _compare(run, {r["video"]: r for r in read_records(folder)}, videos)
        from vcr_core.engine.clips import write_index

        write_index(folder, videos)
        yield kept_files(load_run(folder))


def _compare(run: RunView, made: Mapping[str, Mapping[str, Any]], videos: Sequence[str]) -> None:
    theirs = {record["video"]: record for record in run.records}
    problems = []
    for video in videos:
        found = list(differences(theirs[video], made[video])) if video in made else ["not made"]
        if found:
            problems.append(f"{video}: {few(found, 2)}")
    if problems:
        raise StoreError(
            f"{run.name}: the attack made other videos this time, and nothing was written. Another "
            "machine, device or version than the run's changes last bits, which attacks amplify. "
            f"{few(problems)}"
        )
