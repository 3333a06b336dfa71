"""The per-video boundary: a planned batch becomes records, whatever happens inside."""

from __future__ import annotations

import datetime as dt
import gc
import logging
import platform
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.closing import Closing
from vcr_core.datasets.labels import UNKNOWN
from vcr_core.engine.ahead import DecodeAhead, batches_ahead, pinned
from vcr_core.engine.contest import Contest, Result
from vcr_core.engine.decode import Decoded, decode, stackable
from vcr_core.engine.fitting import fitted_chunk
from vcr_core.engine.memory import is_out_of_memory
from vcr_core.engine.transfer import TransferContest
from vcr_core.engine.transform_contest import TransformContest
from vcr_core.errors import ModelChanged, VideoSkipped

if TYPE_CHECKING:
    from types import FrameType

    from vcr_core.engine.setup import Setup
    from vcr_core.engine.suspects import Care

logger = logging.getLogger(__name__)

APART = "done apart from its batch, which kills its process when it is done together"


class VideoTimeLimit(Exception):
    """A video took longer than ``runtime.video_time_limit_s``."""


class WorkerDied(Exception):
    """A process died at this video more than once."""


class BatchRunner(Closing):
    """Runs planned batches of one run; a context manager, which ends its decoding thread.

    Args:
        setup: built components.
        run: run id.
        shard: name of the share, e.g. ``0/1``.
        on_stage: told ``(stage, video ids)`` as work goes on.
        on_result: given each result with its frames, to keep some clips.
    """

    def __init__(
        self,
        setup: Setup,
        run: str,
        shard: str,
        *,
        on_stage: Callable[[str, Sequence[str]], None] = lambda _stage, _ids: None,
        on_result: Callable[[str, Result], None] = lambda _id, _result: None,
    ) -> None:
        self.setup = setup
        self._run = run
        self._shard = shard
        self._on_stage = on_stage
        self._on_result = on_result
        self._stage = "decode"
        self._limit = setup.experiment.runtime.video_time_limit_s
        # Attacks are shared between runs of equal chunks, so those of the attacked model count.
        attacked = setup.source or setup
        self._chunk = fitted_chunk(attacked.experiment, attacked.model, attacked.device)
        self.ahead = batches_ahead(setup)
        self._decoding = DecodeAhead(self._decoded_ahead) if self.ahead else None
        self._expected: list[str] = []

    def close(self) -> None:
        """Stop decoding ahead."""
        self._decode_here()

    def expect(self, batches: Iterable[Sequence[str]]) -> None:
        """Say which batches follow the one that is run next; ``ahead`` of them are of use."""
        self._expected = [video for batch in batches for video in batch]

    def run(
        self,
        number: int,
        ids: Sequence[str],
        attempt: int,
        *,
        care: Care = "",
        blamed: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Return one record a video, in the planned order.

        Args:
            number: number of the batch.
            ids: its videos.
            attempt: how often it has been tried, this time included.
            care: whether to do its videos one at a time, before or instead of together.
            blamed: videos that killed a worker process, with the reason; they are not tried.
        """
        records: dict[str, dict[str, Any]] = {}
        decoded: list[Decoded] = []
        if care:
            # A decoder that kills the process must be caught at its own video, so from the first
            # suspect on this process decodes nothing before its time.
            self._decode_here()
        for video in ids:
            if blamed and video in blamed:
                fields = error_fields(WorkerDied(blamed[video]), "worker")
                records[video] = {**fields, **self._known(video)}
                continue
            outcome = self._guarded([video], partial(self._decoded, video), "decode")
            if isinstance(outcome, dict):
                records[video] = {**outcome, **self._known(video)}
            else:
                decoded.append(outcome)
        if self._decoding is not None:
            # Not earlier: all that is held is this batch and those that were decoded ahead.
            self._decoding.expect(v for v in self._expected if v not in (blamed or ()))
        if care:
            records.update(self._one_by_one(decoded))
        if care == "apart":
            for one in decoded:
                records[one.id].setdefault("notes", []).append(APART)
        else:
            for group in stackable(decoded):
                records.update(self._contest(group))
        stamp = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        return [
            {
                "schema": 1,
                "run": self._run,
                "video": video,
                "batch": number,
                "shard": self._shard,
                "attempt": attempt,
                **records[video],
                "host": platform.node(),
                "device": str(self.setup.device),
                "t_end": stamp,
            }
            for video in ids
        ]

    def _decoded(self, video: str) -> Decoded:
        if self._decoding is not None:
            return self._decoding.take(video)
        return decode(self.setup, video)

    def _decoded_ahead(self, video: str) -> Decoded:
        return pinned(decode(self.setup, video), self.setup.device)

    def _decode_here(self) -> None:
        if self._decoding is not None:
            self._decoding.close()
            self._decoding = None

    def _known(self, video: str) -> dict[str, Any]:
        """Return what a record says of a video that was not decoded."""
        item = self.setup.dataset.item(video)
        known: dict[str, Any] = {"label": _recorded(self.setup.label_map[item.label])}
        return {**known, "sample": item.sample} if item.sample else known

    def _contest(self, group: list[Decoded]) -> dict[str, dict[str, Any]]:
        """Return fields by id; a group that fails is done one by one, so one fault costs one."""
        ids = [v.id for v in group]
        outcome = self._guarded(ids, lambda: self._attempt(group, self._chunk), "clean")
        if isinstance(outcome, dict) and outcome.get("error", {}).get("oom"):
            outcome = self._with_smaller_chunk(group)
        if not isinstance(outcome, dict):
            return self._kept(ids, outcome)
        if len(group) == 1:
            known = {"label": _recorded(group[0].label), "input": group[0].facts}
            if group[0].sample:
                known["sample"] = group[0].sample
            return {ids[0]: {**outcome, **known}}
        return self._one_by_one(group)

    def _one_by_one(self, group: Sequence[Decoded]) -> dict[str, dict[str, Any]]:
        alone: dict[str, dict[str, Any]] = {}
        for video in group:
            alone.update(self._contest([video]))
        return alone

    def _kept(self, ids: Sequence[str], results: Sequence[Result]) -> dict[str, dict[str, Any]]:
        for video, result in zip(ids, results, strict=True):
            self._on_result(video, result)
        return {v: r.fields for v, r in zip(ids, results, strict=True)}

    def _attempt(self, group: list[Decoded], chunk: int | None) -> list[Result]:
        enter = self._enter([v.id for v in group])
        if self.setup.source is not None:
            return TransferContest(self.setup, group, chunk, enter).run()
        kind = Contest if self.setup.stage == "frames" else TransformContest
        return kind(self.setup, group, chunk, enter).run()

    def _with_smaller_chunk(self, group: list[Decoded]) -> Any:
        """Try once more with half the clips at a time, after everything else was let go."""
        gc.collect()
        if self.setup.device.type == "cuda":
            torch.cuda.empty_cache()
        clips = len(group) * int(group[0].gather.shape[0])
        chunk = max(1, min(self._chunk or clips, clips) // 2)
        ids = [v.id for v in group]
        logger.warning("out of memory on %s; trying again with chunk_clips = %d", ids, chunk)
        outcome = self._guarded(ids, lambda: self._attempt(group, chunk), "clean")
        if not isinstance(outcome, dict):
            for result in outcome:
                result.fields["flags"] = sorted({*result.fields["flags"], "smaller-chunk"})
        return outcome

    def _enter(self, ids: Sequence[str]) -> Callable[[str], None]:
        def stage(name: str) -> None:
            self._stage = name
            self._on_stage(name, ids)

        return stage

    def _guarded(self, ids: Sequence[str], work: Callable[[], Any], stage: str) -> Any:
        """Return the work's result, or the fields of an error record."""
        self._enter(ids)(stage)
        limit = None if self._limit is None else self._limit * len(ids)
        try:
            with time_limit(limit):
                return work()
        except VideoSkipped as reason:
            return {"status": "skipped", "notes": [str(reason)]}
        # The per-video boundary: one video's failure is one record.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            fields = error_fields(error, self._stage)
            changed = isinstance(error, ModelChanged)
        if changed:
            self.setup.replace_model()
        # Outside of the handler the exception, its frames and their tensors are gone.
        logger.warning("%s failed in %s: %s", ids, self._stage, fields["error"]["message"])
        return fields


def _recorded(label: int) -> int | None:
    return None if label == UNKNOWN else label


def error_fields(error: BaseException, stage: str) -> dict[str, Any]:
    """Return the fields of an ``error`` record."""
    text = str(error)
    return {
        "status": "error",
        "label": None,
        "error": {
            "stage": stage,
            "type": type(error).__name__,
            "message": text,
            "traceback": "".join(traceback.format_exception(error)),
            "oom": is_out_of_memory(error),
        },
    }


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise :class:`VideoTimeLimit` inside the block when it takes too long.

    Works in the main thread of a process on systems with interval timers. Native code that never
    returns to Python is not interrupted; the executor's parent notices that.
    """
    usable = (
        seconds is not None
        and hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
    )
    if not usable or seconds is None:
        yield
        return

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise VideoTimeLimit(f"took longer than runtime.video_time_limit_s allows ({seconds:g} s)")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
