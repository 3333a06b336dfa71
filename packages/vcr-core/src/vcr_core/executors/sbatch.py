"""A plain sbatch script that does the shares of some runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vcr_core.executors.slurm_params import SlurmParams

if TYPE_CHECKING:
    from vcr_core.engine.run import Run

_SCRIPT = """\
#!/bin/bash
# Made by vcr; share K of N does batches K, K+N, ... of each run, in the order below.
# Submitting it again, or other copies of it at the same time, does nothing twice.
{directives}
set -u
{setup}
runs=(
{runs}
)

# USR1 comes before the time limit: the batch in hand is finished, and what is left is queued again.
# TERM comes when the job is cancelled, or pushed out by another one, when Slurm queues it again.
late=
trap 'late=1; kill -TERM "$worker"' USR1
trap 'kill -TERM "$worker"' TERM
{command} "${{runs[@]}}" --shard "$SLURM_ARRAY_TASK_ID/{count}"{retry} &
worker=$!
wait "$worker"
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; done  # a signal ends a wait, too
wait "$worker"
code=$?
if [ -n "$late" ] && [ "$code" -eq 130 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID" && exit 0
fi
exit "$code"
"""


def batch_script(runs: Sequence[Run]) -> str:
    """Return the script for runs that have something to do.

    What the job asks for is taken from the first run's ``[executor]`` where that is ``slurm``;
    otherwise it is one task with the defaults of :class:`SlurmParams`.
    """
    config = runs[0].experiment.executor
    params = SlurmParams()
    if config.name == "slurm":
        params = msgspec.convert(config.params, SlurmParams)
    longest = max(len(run.pending) for run in runs)
    count = max(1, min(config.workers or 1, longest))
    logs = runs[0].folder.resolve().parent / "slurm"
    logs.mkdir(exist_ok=True)
    below = max(run.retry_below for run in runs)
    command = [sys.executable, "-m", "vcr_core", "run"]
    return _SCRIPT.format(
        directives="\n".join(f"#SBATCH {line}" for line in _directives(params, count, logs)),
        setup="\n".join([f"export OMP_NUM_THREADS={_threads(runs)}", *params.setup]),
        runs="\n".join(f"    {shlex.quote(str(run.folder.resolve()))}" for run in runs),
        command=shlex.join(command),
        count=count,
        retry=f" --retry-below {below}" if below else "",
    )


def sbatch_options(params: SlurmParams) -> dict[str, str]:
    """Return the options of sbatch, by long name, that one array task asks for."""
    named = {
        "partition": params.partition,
        "account": params.account,
        "mem": params.memory,
        "gpus-per-node": str(params.gpus or ""),
    }
    return {**{name: value for name, value in named.items() if value}, **params.options}


def _directives(params: SlurmParams, count: int, logs: Path) -> list[str]:
    at_once = f"%{params.at_once}" if params.at_once else ""
    options = {
        "job-name": "vcr",
        "array": f"0-{count - 1}{at_once}",
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(params.cpus),
        "time": str(params.time),
        "signal": f"B:USR1@{params.warning_s}",
        "open-mode": "append",
        "output": str(logs / "%A_%a.log"),
        **sbatch_options(params),
    }
    return ["--requeue", *(f"--{name}={value}" for name, value in options.items())]


def _threads(runs: Sequence[Run]) -> int:
    return max(int(run.manifest.get("threads") or 1) for run in runs)
