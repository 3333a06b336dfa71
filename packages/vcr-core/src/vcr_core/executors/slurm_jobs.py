"""Lanes as tasks of a Slurm job array, submitted through submitit."""

from __future__ import annotations

import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.engine.stopping import graceful_stop
from vcr_core.errors import ComponentUnavailable
from vcr_core.executors.lane_job import LaneJob, read_board
from vcr_core.executors.lanes import INTERRUPTED, Lane, lanes_of
from vcr_core.executors.sbatch import sbatch_options
from vcr_core.executors.slurm_params import minutes
from vcr_core.executors.slurm_queue import SlurmQueue

if TYPE_CHECKING:
    from vcr_core.executors.slurm_params import SlurmParams
    from vcr_core.protocols import ShardStatus, ShardTask

logger = logging.getLogger(__name__)

POLL_S = 2.0
ABSENCES = 2
"""Looks at the queue that have to miss a job before it counts as ended: requeued jobs blink."""

MANY_TIMEOUTS = 10_000
"""Requeues that submitit may count; what counts here is whether records come."""


class SlurmExecutor:
    """Submits the lanes as a job array and waits for them.

    What Slurm says of a job decides nothing: a lane whose job is gone and that has something left
    is submitted again. Jobs go on when this process dies; running the command again joins in.
    """

    def __init__(self, params: SlurmParams) -> None:
        self.params = params

    def capacity(self) -> int:
        """Return 1: how many tasks a site has room for is not for a program to guess."""
        return 1

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a status as each shard ends.

        Raises:
            ComponentUnavailable: where there is no Slurm, or it refuses the job.
        """
        if shutil.which("sbatch") is None:
            raise ComponentUnavailable(
                "executor 'slurm': there is no sbatch on this machine; run this where jobs are "
                "submitted, or write a script with --emit-slurm"
            )
        folder = Path(shards[0].folder).parent / "slurm" / uuid.uuid4().hex[:8]
        folder.mkdir(parents=True)
        lanes = [
            _Submitted(Lane(tasks, starts=self.params.requeues + 1), folder)
            for tasks in lanes_of(shards)
        ]
        queue = SlurmQueue()
        try:
            with graceful_stop() as stop:
                self._submit(lanes, folder)
                told = False
                while any(lane.job for lane in lanes):
                    if stop.asked and not told:
                        told = True
                        queue.ask_to_stop(lane.job for lane in lanes if lane.job)
                    yield from self._look(lanes, queue, folder, stopping=stop.asked)
                    time.sleep(POLL_S)
        finally:
            queue.cancel(lane.job for lane in lanes if lane.job)

    def _look(
        self, lanes: Sequence[_Submitted], queue: SlurmQueue, folder: Path, *, stopping: bool
    ) -> Iterator[ShardStatus]:
        jobs = queue.jobs()
        for lane in lanes:
            yield from lane.posted()
        if jobs is None:
            return
        gone = [lane for lane in lanes if lane.has_ended(jobs)]
        for lane in gone:
            yield from lane.posted()
            if stopping:
                yield from lane.lane.settle_all(INTERRUPTED)
            elif lane.lane.left:
                yield from lane.lane.died("its Slurm job is gone", lane.last_words())
        again = [lane for lane in gone if lane.lane.left]
        if again:
            self._submit(again, folder)

    def _submit(self, lanes: Sequence[_Submitted], folder: Path) -> None:
        """Submit lanes together.

        Raises:
            ComponentUnavailable: with Slurm's words, if it refuses.
        """
        import submitit

        params = self.params
        options = sbatch_options(params)
        with _outside_a_job():
            executor = submitit.SlurmExecutor(folder=folder, max_num_timeout=MANY_TIMEOUTS)
            executor.update_parameters(
                job_name="vcr",
                time=minutes(params.time),
                cpus_per_task=params.cpus,
                array_parallelism=params.at_once or len(lanes),
                signal_delay_s=params.warning_s,
                stderr_to_stdout=True,
                setup=list(params.setup) or None,
                additional_parameters={"requeue": True, **options},
                srun_args=[f"--cpus-per-task={params.cpus}"],
            )
            jobs = [LaneJob(lane.lane.left, lane.board, patience=params.requeues) for lane in lanes]
            try:
                made = executor.map_array(_Call(), jobs)
            except submitit.core.utils.FailedJobError as error:
                raise ComponentUnavailable(
                    f"executor 'slurm': Slurm refused the job: {_reason(error)}"
                ) from error
        for lane, job in zip(lanes, made, strict=True):
            lane.job, lane.absences = str(job.job_id), 0
        logger.info("submitted %s", ", ".join(lane.job for lane in lanes))


class _Call:
    """What an array is submitted as: one function of each task's job."""

    def __call__(self, job: LaneJob) -> None:
        job()

    def checkpoint(self, job: LaneJob) -> Any:
        """Return what to queue again, when submitit asks because the time is up."""
        return job.checkpoint()


@dataclass(slots=True)
class _Submitted:
    """A lane and its job.

    Attributes:
        lane: the lane.
        folder: where job files are.
        job: id of the job that does it, ``""`` where there is none.
        absences: looks at the queue in a row that did not find it.
    """

    lane: Lane
    folder: Path
    job: str = ""
    absences: int = 0

    @property
    def board(self) -> Path:
        """Where its job posts statuses."""
        return self.folder / f"board-{self.lane.name}.jsonl"

    def posted(self) -> Iterator[ShardStatus]:
        """Yield what has been posted since the last look.

        A job that has posted everything is not waited for: Slurm may notice its end much later,
        such as after a restart of the controller.
        """
        for said in read_board(self.board):
            status = self.lane.settle(Path(said["folder"]), ok=said["ok"], message=said["message"])
            if status is not None:
                yield status
        if not self.lane.left:
            self.job = ""

    def has_ended(self, jobs: dict[str, str]) -> bool:
        """Return whether its job is gone for good; forget it then."""
        if not self.job:
            return False
        self.absences = 0 if self.job in jobs else self.absences + 1
        if self.absences < ABSENCES:
            return False
        self.job = ""
        return True

    def last_words(self) -> str:
        """Return the end of its newest log."""
        logs = sorted(self.folder.glob("*_log.out"), key=lambda path: path.stat().st_mtime)
        text = logs[-1].read_text(encoding="utf-8", errors="replace") if logs else ""
        return " | ".join(text.strip().splitlines()[-3:])


@contextmanager
def _outside_a_job() -> Iterator[None]:
    """Hide the job that this process may itself be in: its settings would go into the new one."""
    hidden = {k: os.environ.pop(k) for k in list(os.environ) if k.startswith("SLURM_CPU_BIND")}
    hidden |= {k: os.environ.pop(k) for k in ("SLURM_MEM_PER_NODE",) if k in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _reason(error: Exception) -> str:
    lines: list[Any] = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower()]
    return str((told or lines or ["no reason given"])[-1])
