"""How many workers a run gets, on which devices, with how many threads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from vcr_core.components import build
from vcr_core.config.experiment import Chosen
from vcr_core.plugins import registry
from vcr_core.protocols import ShardTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.run import Run
    from vcr_core.protocols import Executor
    from vcr_core.specs import ExecutorSpec


def planned_threads(experiment: Experiment) -> int:
    """Return the CPU threads of each worker, which a run keeps for good.

    Sums over threads depend on their number, so all shares of a run use the same one, whoever
    runs them: ``runtime.threads``, else ``executor.cpus`` where the executor has it, else the
    cores' share of one of the planned workers.
    """
    if experiment.runtime.threads:
        return experiment.runtime.threads
    config = experiment.executor
    if config.name == "inline":
        import torch

        return torch.get_num_threads()
    cpus = int(config.params.get("cpus") or 0)
    if cpus or _spec(experiment).remote:
        return max(1, cpus)
    workers = config.workers or _gpus(experiment) or _cores()
    return max(1, _cores() // workers)


def plan_tasks(runs: Sequence[Run], executor: Executor | None = None) -> list[ShardTask]:
    """Return the shares of runs that have something to do, in their order.

    Args:
        runs: runs of one executor; those of a sweep share their lanes.
        executor: who runs them; ``None`` for one lane in this process.
    """
    todo = [run for run in runs if run.pending]
    if not todo:
        return []
    first = todo[0].experiment
    longest = max(len(run.pending) for run in todo)
    count = 1 if executor is None else max(1, min(_room(first, executor), longest))
    gpus = 0 if executor is None or _spec(first).remote else _gpus(first)
    return [
        ShardTask(
            folder=run.folder.resolve(),
            index=index,
            count=count,
            device=f"cuda:{index % gpus}" if gpus and count > 1 else run.experiment.runtime.device,
            threads=int(run.manifest.get("threads") or 0),
            retry_below=run.retry_below,
        )
        for run in todo
        for index in range(count)
    ]


def build_executor(experiment: Experiment) -> Executor:
    """Return the executor that ``[executor]`` names.

    Raises:
        ComponentUnavailable: if what it needs is not installed.
    """
    config = experiment.executor
    entry, _ = registry().find("executor", config.name)
    executor: Executor = build(
        Chosen(
            spec=entry.spec,
            distribution=entry.distribution,
            version=entry.version,
            params=config.params,
        )
    )
    return executor


def _room(experiment: Experiment, executor: Executor) -> int:
    """Return how many workers there may be at once."""
    if experiment.executor.workers:
        return experiment.executor.workers
    capacity = getattr(executor, "capacity", None)
    if capacity is not None:
        return int(capacity())
    return _gpus(experiment) or _cores()


def _spec(experiment: Experiment) -> ExecutorSpec:
    entry, _ = registry().find("executor", experiment.executor.name)
    return cast("ExecutorSpec", entry.spec)


def _gpus(experiment: Experiment) -> int:
    if experiment.runtime.device != "auto":
        return 0
    import torch

    return torch.cuda.device_count()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
