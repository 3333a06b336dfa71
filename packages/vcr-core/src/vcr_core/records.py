"""Records on disk: append-only files of one JSON object a line, and how they are read."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from vcr_core.atomic import sync_folder, to_json
from vcr_core.closing import Closing
from vcr_core.errors import StoreError
from vcr_core.record_schema import RECORD_FIELDS, RECORD_SCHEMA
from vcr_core.storage import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_LINE_BYTES = 64 * 1024
"""Longest line, with its end."""

RECORDS_FOLDER = "records"

RecordT = TypeVar("RecordT", bound="Mapping[str, Any]")

_RANK = {name: position for position, name in enumerate(RECORD_FIELDS)}

_WHOLE = msgspec.json.Decoder().decode


def record_path(folder: Path | str, shard: int | str, worker: int | str) -> Path:
    """Return where a worker of a shard of the run in ``folder`` writes its records."""
    return Path(folder) / RECORDS_FOLDER / f"part-{shard}-{worker}.jsonl"


class RecordWriter(Closing):
    """Appends records to one file; one writer per file.

    The records of a call go out in one ``write``, so a batch is there as a whole or, after a
    crash, with a torn tail that readers drop. A file that ends in a torn tail is never written to
    again: the writer goes on in ``<name>_1.jsonl`` beside it, so nothing on disk is ever edited.

    Args:
        path: ``records/part-<shard>-<worker>.jsonl``; the folder is created.
        fsync_every: number of records after which the file is forced to the disk.

    Attributes:
        path: the file that is being written.
        count: records appended so far.
    """

    def __init__(self, path: Path | str, *, fsync_every: int = 20) -> None:
        self._asked = Path(path)
        self._fsync_every = fsync_every
        self._unsynced = 0
        self._handle: int | None = None
        self._closed = False
        self.path = self._asked
        self.count = 0
        self._open()

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Write ``records`` together, in this order.

        Raises:
            StoreError: if a record holds NaN, an infinity or something that is not plain data, or
                if its line is longer than 64 kB however it is shortened.
            StorageRefused: if the disk takes only a part. Nothing of the call is counted as
                written then.
        """
        if self._closed:
            raise StoreError(f"{self.path}: the record file is closed")
        if not records:
            return
        if self._handle is None:
            self._open()
        data = b"".join(encode_record(record) for record in records)
        with writing(self.path):
            self._write(data)
        self.count += len(records)
        self._unsynced += len(records)
        if self._unsynced >= self._fsync_every:
            self.sync()

    def sync(self) -> None:
        """Force what was written to the disk."""
        if self._handle is not None and self._unsynced:
            with writing(self.path):
                os.fsync(self._handle)
            self._unsynced = 0

    def close(self) -> None:
        """Sync and close; a second call does nothing."""
        self._closed = True
        if self._handle is not None:
            self.sync()
            os.close(self._handle)
            self._handle = None

    def _write(self, data: bytes) -> None:
        handle = self._handle
        if handle is None:
            raise AssertionError("append has looked")
        try:
            written = os.write(handle, data)
        except OSError:
            self._leave()
            raise
        if written != len(data):
            self._leave()
            raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes fitted on the disk")

    def _open(self) -> None:
        folder = self._asked.parent
        with writing(self._asked):
            folder.mkdir(parents=True, exist_ok=True)
        number = 0
        while _is_torn(self.path):
            number += 1
            # "_" sorts after ".", so the continuation is read after the file it continues.
            self.path = self._asked.with_name(f"{self._asked.stem}_{number}{self._asked.suffix}")
        with writing(self.path):
            self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        sync_folder(folder)

    def _leave(self) -> None:
        """Leave a file whose end is uncertain; the next record goes into another one."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self._unsynced = 0


def encode_record(record: Mapping[str, Any]) -> bytes:
    """Return one line: strict JSON in ASCII, fields in the order of the schema, then others.

    A record that is too long loses its trace, then the metrics' values of single frames, then the
    beginning of its traceback; its ``notes`` say so.

    Raises:
        StoreError: see :meth:`RecordWriter.append`.
    """
    plain = {name: record[name] for name in sorted(record, key=_field_order)}
    line = _line(plain)
    for shorten in (_without_trace, _without_frames, _without_traceback):
        if len(line) <= MAX_LINE_BYTES:
            return line
        plain = shorten(plain, len(line) - MAX_LINE_BYTES)
        line = _line(plain)
    if len(line) > MAX_LINE_BYTES:
        longest = max(plain, key=lambda name: len(to_json(plain[name])))
        raise StoreError(
            f"record of video {record.get('video')!r} takes {len(line)} bytes, {MAX_LINE_BYTES} "
            f"are allowed; its longest field is {longest!r}"
        )
    return line


def record_files(folder: Path | str) -> list[Path]:
    """Return the record files of the run in ``folder``, in reading order; none is no error.

    Raises:
        StoreError: if the folder of records may not be read.
    """
    inside = Path(folder) / RECORDS_FOLDER
    try:
        return sorted(path for path in inside.iterdir() if path.suffix == ".jsonl")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"{inside}: cannot be read: {error}") from error


def raw_records(folder: Path | str) -> list[dict[str, Any]]:
    """Return every complete record of a run: all attempts, file by file.

    Raises:
        StoreError: naming file and line, for a damaged line that is not the unfinished last one,
            or for a record written by a newer version; naming the file if it cannot be read.
    """
    return [record for path in record_files(folder) for record in read_file(path)]


def read_file(
    path: Path, decode: Callable[[memoryview], dict[str, Any]] = _WHOLE
) -> list[dict[str, Any]]:
    """Return every complete record of one file, in its order.

    Args:
        path: one of :func:`record_files`.
        decode: turns a line of ASCII into a record, or raises ``msgspec.MsgspecError``. What it
            raises on, and what it returns without an id or of another schema, is read once more
            with the standard library, which decides and whose errors name the place.

    Raises:
        StoreError: see :func:`raw_records`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error
    if not data.isascii():
        # Not written by us; whoever skips over fields would not see what is wrong with them.
        decode = _refuse
    records: list[dict[str, Any]] = []
    start = 0
    with memoryview(data) as view:
        # What follows the last newline is a line still being written, or torn by a crash.
        while (end := data.find(b"\n", start)) >= 0:
            records.append(_decode(view[start:end], path, len(records) + 1, decode))
            start = end + 1
    return records


def read_records(folder: Path | str, *, details: bool = True) -> list[dict[str, Any]]:
    """Return one record per video, its last attempt, ordered by batch and position in it.

    The order and the content do not depend on how the run was sharded or interrupted. Unknown
    fields are kept. Works while the run is going on.

    Args:
        folder: the run folder.
        details: whether to keep what grows with the length of videos and attacks: the trace, the
            metrics' values of single frames, seeds and tracebacks. They are most of a record.

    Raises:
        StoreError: see :func:`raw_records`.
    """
    records = newest(raw_records(folder))
    if not details:
        for record in records:
            _drop_details(record)
    return records


def latest(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return copies of the last attempt of every video of ``records``, in plan order.

    Of two records with the same attempt the later one counts.
    """
    return [dict(record) for record in newest(records)]


def newest(records: Iterable[RecordT]) -> list[RecordT]:
    """Return what :func:`latest` does, not copied."""
    chosen: dict[str, tuple[int, RecordT]] = {}
    for position, record in enumerate(records):
        video = record["video"]
        if video not in chosen or _attempt(record) >= _attempt(chosen[video][1]):
            chosen[video] = (position, record)
    ordered = sorted(chosen.values(), key=lambda found: (_batch(found[1]), found[0]))
    return [record for _, record in ordered]


def _drop_details(record: dict[str, Any]) -> None:
    record.pop("trace", None)
    record.pop("seeds", None)
    metrics, error = record.get("metrics"), record.get("error")
    for reading in metrics.values() if isinstance(metrics, dict) else ():
        if isinstance(reading, dict):
            reading.pop("per_frame", None)
    if isinstance(error, dict):
        error.pop("traceback", None)


def next_attempts(records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return, for every video that has a record, the number of its next attempt."""
    numbers: dict[str, int] = {}
    for record in records:
        video = record["video"]
        numbers[video] = max(numbers.get(video, 0), _attempt(record) + 1)
    return numbers


@dataclass(frozen=True, slots=True)
class Coverage:
    """How records cover a plan.

    Attributes:
        missing: planned ids without a record, in plan order.
        duplicates: ids recorded more than once as the same attempt: two shards did one video.
        unplanned: recorded ids that the plan does not have.
    """

    missing: tuple[str, ...]
    duplicates: tuple[str, ...]
    unplanned: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every planned video is there, once."""
        return not (self.missing or self.duplicates or self.unplanned)


def check_complete(
    records: Iterable[Mapping[str, Any]], batches: Sequence[Sequence[str]]
) -> Coverage:
    """Compare records, with all attempts (:func:`raw_records`), to the planned batches."""
    planned = [video for batch in batches for video in batch]
    seen: dict[tuple[str, int], int] = {}
    for record in records:
        key = (record["video"], _attempt(record))
        seen[key] = seen.get(key, 0) + 1
    found = {video for video, _ in seen}
    return Coverage(
        missing=tuple(video for video in planned if video not in found),
        duplicates=tuple(sorted({video for (video, _), times in seen.items() if times > 1})),
        unplanned=tuple(sorted(found.difference(planned))),
    )


def _decode(
    line: memoryview, path: Path, number: int, decode: Callable[[memoryview], dict[str, Any]]
) -> dict[str, Any]:
    try:
        record = decode(line)
        schema = record["schema"]
        if type(record["video"]) is str and type(schema) is int and schema <= RECORD_SCHEMA:
            return record
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError):
        pass
    return _decode_carefully(bytes(line), path, number)


def _refuse(_: memoryview) -> dict[str, Any]:
    raise msgspec.DecodeError("not in ASCII")


def _decode_carefully(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
        if not isinstance(record, dict) or not isinstance(record.get("video"), str):
            raise ValueError("not a record: an object with a text field 'video' is needed")
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{path}:{number}: damaged record ({error}). If the disk was full or the file was "
            "edited, remove this line and run again: the missing videos are done once more"
        ) from error
    schema = record.get("schema", RECORD_SCHEMA)
    if not isinstance(schema, int) or schema > RECORD_SCHEMA:
        raise StoreError(
            f"{path}:{number}: record schema {schema!r} is newer than this version of vcr-core "
            f"reads ({RECORD_SCHEMA}); upgrade vcr-core"
        )
    return record


def _refuse_constant(name: str) -> float:
    raise ValueError(f"bare {name} is not JSON")


def _line(plain: Mapping[str, Any]) -> bytes:
    try:
        return to_json(plain).encode("ascii") + b"\n"
    except StoreError as error:
        raise StoreError(f"record of video {plain.get('video')!r}: {error}") from error


def _field_order(name: str) -> tuple[int, str]:
    return _RANK.get(name, len(_RANK)), name


def _attempt(record: Mapping[str, Any]) -> int:
    return int(record.get("attempt") or 1)


def _batch(record: Mapping[str, Any]) -> float:
    batch = record.get("batch")
    return float("inf") if batch is None else float(batch)


def _without_trace(record: dict[str, Any], _excess: int) -> dict[str, Any]:
    if not record.get("trace"):
        return record
    return _noted({**record, "trace": []}, "trace", "left out: the record was too long")


def _without_frames(record: dict[str, Any], _excess: int) -> dict[str, Any]:
    metrics = record.get("metrics")
    if not isinstance(metrics, dict):
        return record
    kept = {
        name: {k: v for k, v in reading.items() if k != "per_frame"}
        if isinstance(reading, dict)
        else reading
        for name, reading in metrics.items()
    }
    if kept == metrics:
        return record
    shortened = {**record, "metrics": kept}
    return _noted(shortened, "metrics.per_frame", "left out: the record was too long")


def _without_traceback(record: dict[str, Any], excess: int) -> dict[str, Any]:
    error = record.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("traceback"), str):
        return record
    # The end of a traceback says most; the note about it needs room too.
    kept = error["traceback"]
    target = len(to_json(kept)) - excess - 200
    while kept and len(to_json(kept)) > target:
        kept = kept[len(kept) // 8 + 1 :]
    shortened = {**record, "error": {**error, "traceback": kept}}
    return _noted(shortened, "error.traceback", "beginning left out: the record was too long")


def _noted(record: dict[str, Any], field: str, text: str) -> dict[str, Any]:
    notes = record.get("notes") or {}
    if isinstance(notes, list):
        return {**record, "notes": [*notes, f"{field}: {text}"]}
    return {**record, "notes": {**notes, field: text}}


def _is_torn(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except FileNotFoundError:
        return False
