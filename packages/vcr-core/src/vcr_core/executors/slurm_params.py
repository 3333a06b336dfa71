"""Parameters of the Slurm executor."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

_MINUTES = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")


class SlurmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a Slurm job asks for. ``executor.workers`` is the number of array tasks."""

    partition: Annotated[str, Meta(description="partition; empty for the site's default")] = ""
    account: Annotated[str, Meta(description="account to charge; empty for the default")] = ""
    time: Annotated[
        Annotated[int, Meta(ge=1)] | str,
        Meta(description="time limit of a task: minutes, H:MM:SS or D-H:MM:SS"),
    ] = "4:00:00"
    cpus: Annotated[int, Meta(ge=1, description="CPU cores of a task, and its threads")] = 1
    gpus: Annotated[int, Meta(ge=0, description="GPUs of a task")] = 0
    memory: Annotated[str, Meta(description="memory of a task, such as 16G; empty = default")] = ""
    at_once: Annotated[
        int, Meta(ge=0, description="array tasks that may run at once; 0 = all of them")
    ] = 0
    setup: Annotated[
        list[str], Meta(description="shell lines before the work, such as 'module load cuda'")
    ] = []
    options: Annotated[
        dict[str, str], Meta(description="further options of sbatch by name, such as qos")
    ] = {}
    warning_s: Annotated[
        int,
        Meta(ge=10, description="seconds before the time limit at which a task ends and requeues"),
    ] = 60
    requeues: Annotated[
        int, Meta(ge=0, description="times that a lane is submitted again without a new record")
    ] = 3

    def __post_init__(self) -> None:
        """Refuse what Slurm would refuse later.

        Raises:
            ValueError: naming the key.
        """
        if minutes(self.time) * 60 <= self.warning_s:
            raise ValueError(
                f"time = {self.time!r} leaves nothing before warning_s = {self.warning_s}"
            )
        for name in self.options:
            if not re.fullmatch(r"[a-z][a-z-]*", name):
                raise ValueError(f"options: {name!r} is no long option of sbatch, such as 'qos'")


def minutes(time: int | str) -> int:
    """Return a time limit of Slurm in whole minutes, rounded up.

    Example:
        >>> minutes(90), minutes("1:30:00"), minutes("2-00:00:00"), minutes("0:00:30")
        (90, 90, 2880, 1)

    Raises:
        ValueError: if it is none.
    """
    found = _MINUTES.fullmatch(str(time).strip())
    if found is None:
        raise ValueError(f"time = {time!r}: minutes, H:MM:SS or D-H:MM:SS are needed")
    parts = [int(part) for part in found["clock"].split(":")]
    days = int(found["days"] or 0)
    if len(parts) == 1:
        seconds = parts[0] * (3600 if found["days"] else 60)
    elif len(parts) == 2:
        hours_first = bool(found["days"])
        seconds = parts[0] * (3600 if hours_first else 60) + parts[1] * (60 if hours_first else 1)
    else:
        seconds = parts[0] * 3600 + parts[1] * 60 + parts[2]
    return -(-(days * 86400 + seconds) // 60)
