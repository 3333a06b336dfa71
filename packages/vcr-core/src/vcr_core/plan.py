"""The planned cut of a run into batches, and who does which of them.

Batches are fixed in ``run.json``: batching changes last bits of logits, so what a video's
neighbours are must not depend on shards or interruptions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from vcr_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def plan_batches(ids_in_subset_order: Sequence[str], size: int) -> list[list[str]]:
    """Cut ids into consecutive batches of ``size``; the last one may be smaller.

    Example:
        >>> plan_batches(["a", "b", "c"], 2)
        [['a', 'b'], ['c']]

    Raises:
        UsageError: if ``size`` is below 1 or an id occurs twice.
    """
    if size < 1:
        raise UsageError(f"runtime.batch_videos is {size}, it must be at least 1")
    ids = list(ids_in_subset_order)
    twice = sorted(video for video, times in Counter(ids).items() if times > 1)
    if twice:
        raise UsageError(f"the subset lists videos twice: {', '.join(twice[:5])}")
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def shard_batches(n_batches: int, index: int, count: int) -> list[int]:
    """Return the batches of shard ``index`` of ``count``: no padding, none shared, none left.

    Example:
        >>> [shard_batches(4, k, 3) for k in range(3)]
        [[0, 3], [1], [2]]

    Raises:
        UsageError: unless ``0 <= index < count``.
    """
    if not 0 <= index < count:
        raise UsageError(f"shard {index}/{count} does not exist: 0 <= k < n is needed in k/n")
    return list(range(index, n_batches, count))


def pending_batches(
    batches: Sequence[Sequence[str]],
    records: Iterable[Mapping[str, Any]],
    *,
    retry_errors: bool = False,
) -> list[int]:
    """Return the batches that have to be done, whole, for the run to be complete.

    Args:
        batches: the plan.
        records: the last attempt of each video (:func:`vcr_core.records.read_records`).
        retry_errors: whether a batch with a failed video is done again.
    """
    status = {record["video"]: record.get("status") for record in records}

    def is_done(video: str) -> bool:
        return video in status and not (retry_errors and status[video] == "error")

    return [i for i, batch in enumerate(batches) if not all(is_done(video) for video in batch)]
