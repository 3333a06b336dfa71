"""The few fields of records that tell how far a run is, read ten times as fast as whole records.

Fields that are not named here are skipped over. What is read is plain mappings, as records are, so
rates come from the same definitions as in a summary; a line that is not quite as expected is read
by :mod:`vcr_core.records`, with its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

import msgspec

from vcr_core.records import newest, read_file

if TYPE_CHECKING:
    from pathlib import Path


class _Corner(TypedDict, total=False):
    pred: Any
    rejected: Any
    abstained: Any


class _Failure(TypedDict, total=False):
    type: Any


class ScannedRecord(TypedDict, total=False):
    """What of a record is read; :class:`vcr_core.record_schema.Record` says what fields mean."""

    schema: Any
    video: Any
    batch: Any
    attempt: Any
    status: Any
    label: Any
    label_source: Any
    target: Any
    clean: _Corner | None
    clean_defended: _Corner | list[_Corner] | None
    certificate: Any
    attacked: _Corner | None
    attacked_defended: _Corner | list[_Corner] | None
    error: _Failure | None
    t_end: Any


@dataclass(frozen=True, slots=True)
class Scan:
    """Fields of the records of one run.

    Attributes:
        records: the last attempt of every video, in plan order, as
            :func:`vcr_core.records.read_records` has them.
        ends: the ``t_end`` of every attempt, one sequence a file, in the order of writing;
            ``None`` where a record has none.
    """

    records: Sequence[dict[str, Any]]
    ends: Sequence[Sequence[Any]]


def scan_records(files: Iterable[Path]) -> Scan:
    """Read what :class:`ScannedRecord` names of the records of a run.

    Args:
        files: its :func:`vcr_core.records.record_files`.

    Raises:
        StoreError: see :func:`vcr_core.records.raw_records`.
    """
    decode = cast("Callable[[memoryview], dict[str, Any]]", _DECODER.decode)
    read = [read_file(path, decode) for path in files]
    return Scan(
        records=newest(record for file in read for record in file),
        ends=[[record.get("t_end") for record in file] for file in read],
    )


_DECODER = msgspec.json.Decoder(ScannedRecord)
