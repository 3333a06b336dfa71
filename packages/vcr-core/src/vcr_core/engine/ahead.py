"""Decoding the videos of the next batches while the device works on this one.

What runs ahead is only what cannot change a number there. Plain decoding draws nothing, asks no
model and touches no gradient. Transforms of stage ``source`` and ``plan`` do not run ahead: they
are an attack's code, which may draw from the process-wide generators that
``isolated_random_state`` has just seeded for the main thread, and their time is a result. Neither
does ``protocol.space = "input"``, which asks the model to resize, and the main thread watches who
calls the model.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import torch

from vcr_core.config.command_text import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torch import Tensor

    from vcr_core.engine.decode import Decoded
    from vcr_core.engine.setup import Setup

PATIENCE_S = 10.0
"""How long the end of a share waits for the video that is being decoded."""

POLL_S = 0.5
"""How often a waiting caller looks up: some systems deliver a signal to another thread, and its
handler runs only when the main thread does."""


def batches_ahead(setup: Setup) -> int:
    """Return how many batches to decode ahead: ``runtime.prefetch``, where that is safe.

    ``auto`` is one batch on a GPU. On a CPU the decoder would take its time from the model's
    threads. It is none for a dataset from Python, which nobody promised to use from two threads.
    """
    asked, experiment = setup.experiment.runtime.prefetch, setup.experiment
    if setup.stage != "frames" or experiment.protocol.space == "input":
        return 0
    if asked == "auto":
        return int(setup.device.type == "cuda" and experiment.dataset.distribution != LOCAL)
    return asked


def pinned(decoded: Decoded, device: torch.device) -> Decoded:
    """Put the frames where a GPU can copy them from while the program goes on; elsewhere no-op."""
    if device.type == "cuda":
        # Without the block the thread would also open a context on the first GPU.
        with torch.cuda.device(device):
            decoded.frames = decoded.frames.pin_memory()
        if decoded.as_attacked is not None:
            decoded.as_attacked.frames = decoded.frames
    return decoded


def stacked(frames: Sequence[Tensor], device: torch.device) -> Tensor:
    """Return videos ``[T, C, H, W]`` of equal shape as ``[B, T, C, H, W]`` on the device.

    A GPU gets them one by one: stacked on the CPU they would be copied once more, into memory that
    is not pinned. The copies are ordered before whatever reads the result.
    """
    if device.type != "cuda":
        return torch.stack(list(frames)).to(device)
    first = frames[0]
    video = torch.empty((len(frames), *first.shape), dtype=first.dtype, device=device)
    for row, one in zip(video, frames, strict=True):
        row.copy_(one, non_blocking=one.is_pinned())
    return video


@dataclass(slots=True)
class _Job:
    """A video, and the place for what became of it."""

    video: str
    answer: SimpleQueue[Decoded | BaseException] = field(default_factory=SimpleQueue)

    def wait(self) -> Decoded | BaseException:
        while True:
            try:
                return self.answer.get(timeout=POLL_S)
            except Empty:
                continue


class DecodeAhead:
    """Decodes videos in the order in which they are asked for, in one thread of its own.

    All decoding of a share goes through that thread, so no two videos are decoded at once, and
    while the caller waits for a video the thread is at that video and at no other.

    The caller may be interrupted while it waits, by a signal handler that raises. A thread that it
    was waiting for then is left alone, since nothing can stop it, and a new one does the rest.
    The caller holds no lock at any time, which such a handler could leave locked: it shares with
    the thread queues only.

    Args:
        decode: from a video's id to its frames; called in the thread.
    """

    def __init__(self, decode: Callable[[str], Decoded]) -> None:
        self._decode = decode
        self._jobs: dict[str, _Job] = {}
        self._worker: _Worker | None = None

    def expect(self, videos: Iterable[str]) -> None:
        """Queue videos that will be taken in this order, unless they are queued already."""
        for video in videos:
            if video not in self._jobs:
                job = self._jobs[video] = _Job(video)
                if self._worker is None:
                    self._worker = _Worker(self._decode)
                self._worker.line.put(job)

    def take(self, video: str) -> Decoded:
        """Wait for a video; raise what its decoder raised, in this thread.

        Interrupted while it waits, it gives the video up and may be called for the next one.
        """
        self.expect([video])
        try:
            answer = self._jobs[video].wait()
        except BaseException:
            del self._jobs[video]
            self._replace_worker()
            raise
        del self._jobs[video]
        try:
            if isinstance(answer, BaseException):
                raise answer
            return answer
        finally:
            del answer  # else an exception and this frame would keep each other alive

    def close(self) -> None:
        """Drop what has not been taken and wait a moment for the thread to end."""
        self._jobs.clear()
        if self._worker is not None:
            self._worker.leave()
            # Torch and codecs do not like to be at work when the interpreter ends.
            self._worker.thread.join(PATIENCE_S)
            self._worker = None

    def _replace_worker(self) -> None:
        """Leave the thread alone and let another one do what it has not done."""
        if self._worker is not None:
            self._worker.leave()
            self._worker = None
        left = [video for video, job in self._jobs.items() if job.answer.empty()]
        for video in left:
            del self._jobs[video]
        self.expect(left)


class _Worker:
    """A thread that serves a line of jobs until it is left."""

    def __init__(self, decode: Callable[[str], Decoded]) -> None:
        self._decode = decode
        self._is_left = False
        self.line: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon: a decoder that hangs must not keep the process from ending.
        self.thread = threading.Thread(target=self._serve, name="decode-ahead", daemon=True)
        self.thread.start()

    def leave(self) -> None:
        self._is_left = True
        self.line.put(None)

    def _serve(self) -> None:
        while (job := self.line.get()) is not None and not self._is_left:
            try:
                answer: Decoded | BaseException = self._decode(job.video)
            # Raised again by whoever takes the video, inside the per-video boundary; an exit, too.
            except BaseException as error:  # noqa: BLE001
                answer = error
            job.answer.put(answer)
            del answer, job
