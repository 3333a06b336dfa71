"""``read`` in a process of its own, for files that may hang or crash a decoder."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any

from vcr_core.errors import UsageError
from vcr_core.video.info import Clip, VideoReadError
from vcr_core.video.reader import Source, read

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from vcr_core.protocols import Sampler
    from vcr_core.video.info import OnError


def read_isolated(
    source: Source,
    sampler: Sampler,
    *,
    limit_s: float,
    max_frames: int | None = None,
    on_error: OnError = "raise",
    thread_count: int = 1,
) -> Clip:
    """Return the same as :func:`vcr_core.video.reader.read`, or give up after ``limit_s`` seconds.

    A decoder that hangs cannot be interrupted from Python, and one that crashes takes its process
    along; so it runs in a new process, which costs a few tenths of a second.

    Args:
        source: path or content.
        sampler: picklable, e.g. ``functools.partial(make_plan, frames=16)``.
        limit_s: seconds, start of the process included.
        max_frames: see ``read``.
        on_error: see ``read``.
        thread_count: see ``read``.

    Raises:
        VideoReadError: what ``read`` raised; or stage ``decode`` for a time-out or a crash.
        UsageError: if the sampler cannot be pickled.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    options = {"max_frames": max_frames, "on_error": on_error, "thread_count": thread_count}
    process = context.Process(target=_work, args=(sender, source, sampler, options), daemon=True)
    try:
        process.start()
    except (AttributeError, TypeError) as error:  # what pickling local functions raises
        raise UsageError(f"an isolated read needs a picklable sampler: {error}") from error
    sender.close()
    name = f"<{len(source)} bytes>" if isinstance(source, bytes) else str(source)
    try:
        if not receiver.poll(limit_s):
            raise VideoReadError(name, "decode", f"TimeoutError: not read within {limit_s:g} s")
        try:
            answer = receiver.recv()
        except EOFError as error:
            process.join(1)
            text = f"the decoding process died (exit code {process.exitcode})"
            raise VideoReadError(name, "decode", text) from error
    finally:
        process.kill()
        process.join()
        receiver.close()
    if isinstance(answer, VideoReadError):
        raise answer
    clip: Clip = answer
    return clip


def _work(sender: Connection, source: Source, sampler: Sampler, options: dict[str, Any]) -> None:
    try:
        sender.send(read(source, sampler, **options))
    except VideoReadError as error:
        sender.send(error)
