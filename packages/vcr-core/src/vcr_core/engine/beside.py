"""Measuring pairs of videos beside their judging: metrics that need neither device nor thread.

What an attack answered is judged by the model and measured against the clean video, and neither
needs the other. Metrics that declare :attr:`~vcr_core.specs.MetricSpec.concurrent` are begun in
threads of their own before the model judges, and are waited for where all metrics are measured. The
others are measured there, as ever: they would take the device from the model, and global random
generators are seeded for the main thread alone.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, cast

import torch

from vcr_core.closing import Closing
from vcr_core.engine.ahead import POLL_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from vcr_core.engine.setup import Setup
    from vcr_core.protocols import ClipInfo, Metric, Reading
    from vcr_core.specs import MetricSpec

AT_ONCE = 4
"""Most measurements at a time; no more than torch has threads, the run's share of the cores."""

PATIENCE_S = 10.0
"""How long the end of a group waits for what is still being measured after a failure."""


def concurrent_metrics(setup: Setup) -> list[int]:
    """Return the positions of the metrics that are measured beside the judging.

    With ``runtime.overlap_metrics = "auto"`` there are some on a GPU only: on a CPU a metric's
    process takes its time from the cores that the model works on.
    """
    asked = setup.experiment.runtime.overlap_metrics
    if not (setup.device.type == "cuda" if asked == "auto" else asked):
        return []
    specs = [cast("MetricSpec", chosen.spec) for chosen in setup.experiment.metrics]
    return [place for place, spec in enumerate(specs) if spec.concurrent]


@dataclass(frozen=True, slots=True)
class Pair:
    """What a metric is given.

    Attributes:
        reference: the clean video ``[T, C, H, W]``.
        test: the attacked one, of that shape.
        info: what metrics may know about them.
    """

    reference: Tensor
    test: Tensor
    info: ClipInfo


class Beside(Closing):
    """The metrics of one group of videos, some of them begun early; a context manager.

    When its block ends, nothing more is begun. What is being measured then, after a failure of
    something else, gets a moment to end; what hangs is left alone.

    The caller may be interrupted by a signal handler that raises. It holds no lock then: it shares
    queues with the threads, and nothing else.

    Args:
        setup: built components.
    """

    def __init__(self, setup: Setup) -> None:
        self._metrics = setup.metrics
        self._places = concurrent_metrics(setup)
        self._begun: dict[tuple[int, int], _Begun] = {}
        self._line: SimpleQueue[_Begun] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def close(self) -> None:
        """Begin nothing more."""
        while _next(self._line) is not None:
            pass
        until = time.perf_counter() + PATIENCE_S
        # Its answer would reach nobody, but it would compete with the next try for the cores.
        for thread in self._threads:
            thread.join(max(0.0, until - time.perf_counter()))
        self._begun.clear()

    @property
    def is_of_use(self) -> bool:
        """Whether there is any metric to begin early."""
        return bool(self._places)

    @property
    def unseen_s(self) -> float:
        """Seconds of measuring for which nobody waited."""
        return sum(one.seconds - one.waited for one in self._begun.values())

    def begin(self, pairs: Mapping[int, Pair]) -> None:
        """Let the metrics begin with pairs, given by each video's place in its group.

        They are handed over on the CPU: from a GPU they are copied here, before the model goes on;
        on a CPU they are shared with it.
        """
        for row, pair in pairs.items():
            here = Pair(pair.reference.cpu(), pair.test.cpu(), pair.info)
            for place in self._places:
                one = self._begun[row, place] = _Begun(self._metrics[place][2], here, self)
                self._line.put(one)
        # Only now: a thread ends once nothing stands in line.
        for _ in range(min(len(self._begun), AT_ONCE, torch.get_num_threads())):
            self._add_thread()

    def metrics(self, row: int) -> list[tuple[str, tuple[str, ...], Metric]]:
        """Return all metrics in their order; those begun early give what they have measured."""
        return [
            (name, keys, self._begun.get((row, place), metric))
            for place, (name, keys, metric) in enumerate(self._metrics)
        ]

    def give_up(self, thread: threading.Thread | None) -> None:
        """Leave alone a thread that hangs, and let another one do what it would have done."""
        if thread in self._threads:
            self._threads.remove(thread)
            self._add_thread()

    def _add_thread(self) -> None:
        # A daemon: a metric that hangs must not keep the process from ending.
        thread = threading.Thread(
            target=_serve, args=(self._line,), name="measure-beside", daemon=True
        )
        self._threads.append(thread)
        thread.start()


@dataclass(slots=True, eq=False)
class _Begun:
    """A metric that has been given its pair already; to who measures with it, a metric.

    Attributes:
        metric: the metric itself.
        pair: what it is given, until it has answered.
        group: what is told of threads that hang.
        answer: the place for what it measured or raised.
        thread: the thread that it is in.
        since: when it began.
        seconds: how long it took.
        waited: how long the caller waited for it.
    """

    metric: Metric
    pair: Pair | None
    group: Beside
    answer: SimpleQueue[Mapping[str, float | Reading | None] | BaseException] = field(
        default_factory=SimpleQueue
    )
    thread: threading.Thread | None = None
    since: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0

    def measure(
        self, reference: Tensor, test: Tensor, info: ClipInfo
    ) -> Mapping[str, float | Reading | None]:
        """Wait for what was measured; raise what was raised.

        The arguments are the pair that it was given when it began.
        """
        began = time.perf_counter()
        try:
            answer = self._wait()
        except BaseException:
            self.seconds = self.seconds or time.perf_counter() - (self.since or began)
            self.group.give_up(self.thread)
            raise
        finally:
            self.waited += time.perf_counter() - began
        try:
            if isinstance(answer, BaseException):
                raise answer
            return answer
        finally:
            del answer  # else an exception and this frame would keep each other alive

    def work(self) -> None:
        """Measure; called in a thread."""
        self.thread, self.since = threading.current_thread(), time.perf_counter()
        pair, self.pair = self.pair, None
        if pair is None:
            return
        try:
            with torch.no_grad():
                answer = self.metric.measure(pair.reference, pair.test, pair.info)
        # Raised again by whoever waits for it, inside the per-video boundary; an exit, too.
        except BaseException as error:  # noqa: BLE001
            self.seconds = time.perf_counter() - self.since
            self.answer.put(error)
        else:
            self.seconds = time.perf_counter() - self.since
            self.answer.put(answer)

    def _wait(self) -> Mapping[str, float | Reading | None] | BaseException:
        while True:
            try:
                return self.answer.get(timeout=POLL_S)
            except Empty:
                continue


def _serve(line: SimpleQueue[_Begun]) -> None:
    """Do what stands in line, then end."""
    while (one := _next(line)) is not None:
        one.work()
        del one


def _next(line: SimpleQueue[_Begun]) -> _Begun | None:
    try:
        return line.get_nowait()
    except Empty:
        return None
