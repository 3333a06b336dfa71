"""Progress of a run, drawn from what the engine tells; the engine itself never prints.

On a terminal one live display: bar, time left, accuracy so far with its interval, errors, devices.
Otherwise one plain line every 30 seconds. Everything goes to stderr.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from vcr_core.closing import Closing

if TYPE_CHECKING:
    from rich.console import RenderableType

INTERVAL_S = 30.0


@dataclass(slots=True)
class Tally:
    """Counts of the videos seen so far.

    Attributes:
        defended: whether the accuracies are those of the defended model.
        counts_only: whether accuracies say nothing, because the videos are of several runs.
        total: videos of the run.
        before: videos that an earlier session had finished.
        judged: videos with status ``ok`` or ``ineligible``.
        clean: videos that the system got right before the attack (shares of draws add up).
        own_labels: whether what is right is what the bare model says of the clean videos.
        attacked: judged videos that have an attacked corner.
        robust: videos that it got right before and after the attack.
        errors: videos that failed.
        other: videos with any other status.
        devices: videos per device.
    """

    defended: bool = False
    counts_only: bool = False
    total: int = 0
    before: int = 0
    judged: int = 0
    clean: float = 0.0
    own_labels: bool = False
    attacked: int = 0
    robust: float = 0.0
    errors: int = 0
    other: int = 0
    devices: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        """Videos finished, those of earlier sessions included."""
        return self.before + self.judged + self.errors + self.other

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record."""
        if record.get("device"):
            self.devices[str(record["device"])] += 1
        status = record.get("status")
        if status == "error":
            self.errors += 1
        elif status in ("ok", "ineligible"):
            self._judge(record)
        else:
            self.other += 1

    def accuracies(self) -> str:
        """Return ``clean 75.0 % [50.5, 89.8], robust 25.0 % [10.2, 49.5]``, or nothing yet."""
        parts = []
        if self.counts_only:
            return ""
        if self.judged and not (self.own_labels and not self.defended):
            parts.append(f"clean {_share(self.clean, self.judged)}")
        if self.attacked:
            name = "unchanged" if self.own_labels else "robust"
            parts.append(f"{name} {_share(self.robust, self.attacked)}")
        return ("defended: " if parts and self.defended else "") + ", ".join(parts)

    def _judge(self, record: Mapping[str, Any]) -> None:
        from vcr_core import outcomes

        self.judged += 1
        self.own_labels = self.own_labels or outcomes.has_own_label(record)
        self.clean += outcomes.clean_right(record, defended=self.defended) or 0.0
        after = outcomes.stays_right(record, defended=self.defended)
        if after is not None:
            self.attacked += 1
            self.robust += after


class View(Protocol):
    """Where progress appears."""

    def show(self, tally: Tally) -> None:
        """Show the counts, now or when it is time."""
        ...

    def close(self, tally: Tally) -> None:
        """Show the last counts and leave the terminal as it was."""
        ...


class Progress(Closing):
    """Progress of one run, as a context manager.

    Call :meth:`started`, then :meth:`record` for every record and :meth:`batch` at the borders of
    batches, then :meth:`finished`.
    """

    def __init__(
        self,
        *,
        title: str = "",
        defended: bool = False,
        counts_only: bool = False,
        quiet: bool = False,
        stream: TextIO | None = None,
        interval_s: float = INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is shown before :meth:`started`.

        Args:
            title: what is running.
            defended: show the accuracies of the defended model (the headline of adaptive runs).
            counts_only: show no accuracies: the videos are of several runs.
            quiet: show nothing.
            stream: where to write; stderr by default.
            interval_s: seconds between plain lines.
            clock: a monotonic clock in seconds.
        """
        self.title = title
        self.tally = Tally(defended=defended, counts_only=counts_only)
        self._quiet = quiet
        self._stream = stream if stream is not None else sys.stderr
        self._interval_s = interval_s
        self._clock = clock
        self._view: View | None = None

    def started(self, total: int, done: int = 0) -> None:
        """Begin to show a run of ``total`` videos of which ``done`` were finished before."""
        self.tally.total, self.tally.before = total, done
        if self._quiet or self._view is not None:
            return
        if self._stream.isatty():
            self._view = LiveView(self.title, self._stream)
        else:
            self._view = LineView(self.title, self._stream, self._interval_s, self._clock)
        self._view.show(self.tally)

    def record(self, record: Mapping[str, Any]) -> None:
        """Count a record that was written."""
        self.tally.add(record)
        self._refresh()

    def batch(self, *_: Any, **__: Any) -> None:
        """Show that the engine is alive; called at the borders of batches."""
        self._refresh()

    def finished(self) -> None:
        """Show the last state and stop. Calling it again does nothing."""
        view, self._view = self._view, None
        if view is not None:
            view.close(self.tally)

    def close(self) -> None:
        """Show the last state and stop."""
        self.finished()

    def _refresh(self) -> None:
        if self._view is not None:
            self._view.show(self.tally)


class LineView:
    """One plain line every ``interval_s`` seconds, also while a batch takes longer than that."""

    def __init__(
        self, title: str, stream: TextIO, interval_s: float, clock: Callable[[], float]
    ) -> None:
        self._title = title
        self._stream = stream
        self._interval_s = interval_s
        self._clock = clock
        self._began = clock()
        self._due = self._began + interval_s
        self._tally = Tally()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        threading.Thread(target=self._watch, name="vcr-progress", daemon=True).start()

    def show(self, tally: Tally) -> None:
        """Remember the counts and print them if a line is due."""
        with self._lock:
            self._tally = tally
            if self._clock() >= self._due:
                self._print()

    def close(self, tally: Tally) -> None:
        """Print the last line."""
        self._stop.set()
        with self._lock:
            self._tally = tally
            self._print()

    def _watch(self) -> None:
        while not self._stop.wait(self._interval_s):
            with self._lock:
                if not self._stop.is_set() and self._clock() >= self._due:
                    self._print()

    def _print(self) -> None:
        now = self._clock()
        self._due = now + self._interval_s
        self._stream.write(status_line(self._title, self._tally, now - self._began) + "\n")
        self._stream.flush()


class LiveView:
    """One Rich display that redraws itself four times a second."""

    def __init__(self, title: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import (
            Progress as Bars,
        )

        console = Console(file=stream)
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            expand=True,
        )
        self._task = self._bars.add_task(title or "videos", total=None)
        self._tally = Tally()
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=4)
        self._live.start()

    def show(self, tally: Tally) -> None:
        """Update the bar."""
        self._tally = tally
        self._bars.update(self._task, total=tally.total, completed=tally.done)

    def close(self, tally: Tally) -> None:
        """Draw once more and release the terminal."""
        self.show(tally)
        self._live.stop()

    def _draw(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        tally = self._tally
        line = Text("  ")
        if not tally.counts_only:
            line.append(tally.accuracies() or "no result yet")
            line.append("   ")
        line.append(_errors(tally.errors), style="bold red" if tally.errors else "dim")
        parts: list[RenderableType] = [self._bars, line]
        if len(tally.devices) > 1:
            counts = ", ".join(f"{name} {n}" for name, n in sorted(tally.devices.items()))
            parts.append(Text(f"  {counts}", style="dim"))
        return Group(*parts)


def status_line(title: str, tally: Tally, elapsed_s: float) -> str:
    """Return one plain line about a run.

    Args:
        title: what is running.
        tally: counts so far.
        elapsed_s: seconds since this session began; the time left is estimated from the videos
            of this session only.
    """
    parts = [f"{tally.done}/{tally.total} videos"]
    if tally.accuracies():
        parts.append(tally.accuracies())
    parts.append(_errors(tally.errors))
    parts.append(f"{_duration(elapsed_s)} elapsed")
    fresh, left = tally.done - tally.before, tally.total - tally.done
    if fresh and left > 0:
        parts.append(f"about {_duration(elapsed_s / fresh * left)} left")
    return (f"{title}: " if title else "") + "; ".join(parts)


def _errors(count: int) -> str:
    return "1 error" if count == 1 else f"{count} errors"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _share(k: float, n: int) -> str:
    from vcr_core.stats import wilson

    low, high = wilson(min(k, n), n)
    return f"{100 * k / n:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
