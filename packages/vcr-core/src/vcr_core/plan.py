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


def batch_is_done(
    batch: Sequence[str], last: Mapping[str, Mapping[str, Any]], *, retry_below: int = 0
) -> bool:
    """Return whether every video of a batch has a record that counts.

    Args:
        batch: ids of its videos.
        last: the last attempt of each video that has a record, by id.
        retry_below: errors of attempts below this number do not count; see :func:`retry_limit`.
    """
    return all(
        video in last
        and not (
            last[video].get("status") == "error"
            and int(last[video].get("attempt") or 1) < retry_below
        )
        for video in batch
    )


def pending_batches(
    batches: Sequence[Sequence[str]],
    records: Iterable[Mapping[str, Any]],
    *,
    retry_below: int = 0,
) -> list[int]:
    """Return the batches that have to be done, whole, for the run to be complete.

    Args:
        batches: the plan.
        records: the last attempt of each video (:func:`vcr_core.records.read_records`).
        retry_below: errors of attempts below this number do not count; see :func:`retry_limit`.
    """
    last = {record["video"]: record for record in records}
    return [
        i
        for i, batch in enumerate(batches)
        if not batch_is_done(batch, last, retry_below=retry_below)
    ]


def retry_limit(records: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of the attempt that does all failed videos again.

    It is above that of every error there is. A process that is started again in the middle of
    doing them again knows by it which ones have been done.
    """
    failed = (int(r.get("attempt") or 1) for r in records if r.get("status") == "error")
    return 1 + max(failed, default=0)
