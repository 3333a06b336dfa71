"""Workers as actors of a Ray cluster: an existing one, or one on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.errors import ComponentUnavailable
from vcr_core.executors.attendant import Attendant
from vcr_core.executors.attending import attend
from vcr_core.executors.lanes import INTERRUPTED, Lane, lanes_of
from vcr_core.protocols import ShardStatus

if TYPE_CHECKING:
    from vcr_core.executors.ray_params import RayParams
    from vcr_core.protocols import ShardTask

logger = logging.getLogger(__name__)

POLL_S = 0.5
OBJECT_STORE_BYTES = 80 << 20
"""Of a local cluster; nothing but words goes through it."""


class RayExecutor:
    """Gives each lane to an actor, which starts a worker process where Ray has placed it.

    The process is looked after by its actor, as on one machine; an actor that is lost, with its
    node or by itself, is placed anew and does what is left of its lane. All nodes need the same
    Python environment and see the same folders.
    """

    def __init__(self, params: RayParams) -> None:
        self.params = params

    def capacity(self) -> int:
        """Return how many workers the cluster has room for."""
        with _connected(self.params) as ray:
            total = ray.cluster_resources()
            rooms = [total.get("CPU", 0) // self.params.cpus]
            gpus = _gpus(self.params, total)
            if gpus:
                rooms.append(total.get("GPU", 0) // gpus)
            rooms += [total.get(k, 0) // v for k, v in self.params.resources.items() if v]
            return max(1, int(min(rooms)))

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a status as each shard ends.

        Raises:
            ComponentUnavailable: if there is no cluster at the address, or it can never place a
                worker.
        """
        with _connected(self.params) as ray:
            place = _placer(ray, self.params)
            workers = [
                _Placed(Lane(tasks, starts=self.params.retries + 1), place, ray)
                for tasks in lanes_of(shards)
            ]
            yield from attend(workers, POLL_S)


class LaneActor:
    """The actor of a lane: an attendant that is asked for news."""

    def __init__(self, tasks: Sequence[ShardTask], cwd: str) -> None:
        os.chdir(cwd)  # relative paths of the configuration mean those of the driver
        self._attendant = Attendant(Lane(tasks))
        self._attendant.start()
        self._stopping = False

    def news(self, stopping: bool) -> tuple[list[tuple[str, bool, str]], bool]:
        """Return what has been settled since the last call, and whether the worker is through.

        Args:
            stopping: whether to ask it to end after the batch in hand.
        """
        if stopping and not self._stopping:
            self._attendant.stop()
        self._stopping = stopping
        statuses = self._attendant.look_after(stopping=stopping)
        said = [(str(s.task.folder), s.ok, s.message) for s in statuses]
        return said, self._attendant.process is None


@dataclass(slots=True)
class _Placed:
    """An actor as the driver sees it."""

    lane: Lane
    place: Any
    ray: Any
    actor: Any = None
    _asked: Any = None

    @property
    def is_going_on(self) -> bool:
        """Whether there is an actor, or one to come."""
        return self.actor is not None

    def stop(self) -> None:
        """Do nothing: the next question for news says so."""

    def start(self) -> None:
        """Have Ray place the actor; it begins as soon as there is room."""
        self.actor = self.place(self.lane.left, str(Path.cwd()))
        self._asked = self.actor.news.remote(False)

    def look_after(self, *, stopping: bool) -> Iterator[ShardStatus]:
        """Yield what the worker has settled; place a lost one anew."""
        if self.actor is None:
            return
        ready, _ = self.ray.wait([self._asked], timeout=0)
        if not ready:
            return
        try:
            said, through = self.ray.get(self._asked)
        except self.ray.exceptions.RayActorError as error:
            yield from self._lost(error, stopping=stopping)
            return
        for folder, ok, message in said:
            status = self.lane.settle(Path(folder), ok=ok, message=message)
            if status is not None:
                yield status
        if through:
            self.kill()
            yield from self.lane.settle_all("its worker ended without a word")
        else:
            self._asked = self.actor.news.remote(stopping)

    def kill(self) -> None:
        """End the actor, and with it the worker process."""
        if self.actor is not None:
            self.ray.kill(self.actor, no_restart=True)
            self.actor = None

    def _lost(self, error: Exception, *, stopping: bool) -> Iterator[ShardStatus]:
        self.actor = None
        if stopping:
            yield from self.lane.settle_all(INTERRUPTED)
            return
        yield from self.lane.died("its actor was lost", str(error).strip().partition("\n")[0])
        if self.lane.left:
            self.start()


@contextmanager
def _connected(params: RayParams) -> Iterator[Any]:
    """Yield Ray, connected; leave it as it was found.

    Raises:
        ComponentUnavailable: if there is no cluster at the address.
    """
    import ray

    if ray.is_initialized():
        yield ray
        return
    settings: dict[str, Any] = {"address": "local", "include_dashboard": False}
    settings["object_store_memory"] = OBJECT_STORE_BYTES
    if params.address:
        # The nodes know nothing of this shell; a local cluster inherits it.
        passed_on = {name: text for name, text in os.environ.items() if name.startswith("VCR_")}
        settings = {"address": params.address, "runtime_env": {"env_vars": passed_on}}
    try:
        ray.init(logging_level=logging.WARNING, **settings)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ComponentUnavailable(
            f"executor.address = {params.address!r}: no Ray cluster answers there ({error}); start "
            "one with 'ray start --head', or leave the address out for one on this machine"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _placer(ray: Any, params: RayParams) -> Any:
    """Return what makes an actor for some tasks.

    Raises:
        ComponentUnavailable: if no node can ever hold a worker.
    """
    gpus = _gpus(params, ray.cluster_resources())
    wanted = {"CPU": params.cpus, "GPU": gpus, **params.resources}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(k, 0) >= v for k, v in wanted.items()) for node in nodes):
        asked = ", ".join(f"{v:g} {k}" for k, v in wanted.items() if v)
        raise ComponentUnavailable(
            f"executor: no node of the Ray cluster has {asked} for a worker; ask for less with "
            "executor.cpus, executor.gpus or executor.resources"
        )
    actor = ray.remote(LaneActor).options(
        num_cpus=params.cpus, num_gpus=gpus, resources=params.resources, max_restarts=0
    )
    return actor.remote


def _gpus(params: RayParams, total: dict[str, float]) -> float:
    if params.gpus is not None:
        return params.gpus
    return 1.0 if total.get("GPU") else 0.0
