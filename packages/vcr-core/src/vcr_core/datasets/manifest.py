"""Subset manifests: fixed lists of videos with content hashes, and the rules that make them.

A manifest is a CSV file with the columns ``id, path, label, sha256`` and, if known, ``n_frames,
width, height, fps``. Lines before the header that start with ``#`` say how it was made.
"""

from __future__ import annotations

import csv
import io
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from vcr_core.atomic import write_text
from vcr_core.datasets.tables import Row, read_table
from vcr_core.errors import ConfigError, UsageError
from vcr_core.seeding import subset_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from vcr_core.protocols import VideoDataset

Rule: TypeAlias = Literal["hash", "shuffle", "stratified", "list"]

_REQUIRED: Final = ("id", "path", "label", "sha256")
_OPTIONAL: Final = ("n_frames", "width", "height", "fps")
_HEX: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRow:
    """One video.

    Attributes:
        id: id in its dataset.
        path: path below the dataset's root, ``/`` as separator.
        label: class name.
        sha256: hash of the content, 64 hex digits; ``""`` where it is not known.
        n_frames: number of frames that decoding yields, if known.
        width: stored width in pixels, if known.
        height: stored height in pixels, if known.
        fps: nominal frame rate as a fraction, ``""`` if unknown.
    """

    id: str
    path: str
    label: str
    sha256: str = ""
    n_frames: int | None = None
    width: int | None = None
    height: int | None = None
    fps: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A subset.

    Attributes:
        rows: the videos in the subset's order.
        facts: how it was made: ``dataset``, ``rule``, ``seed``.
    """

    rows: tuple[ManifestRow, ...]
    facts: Mapping[str, str]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        ConfigError: naming file and line of every bad value, and of ids that occur twice.
    """
    table = read_table(path, _REQUIRED)
    problems: list[str] = []
    rows: list[ManifestRow] = []
    lines: dict[str, int] = {}
    for row in table.rows:
        place = f"{table.path}:{row.line}"
        try:
            parsed = _parse(row)
        except ValueError as error:
            problems.append(f"{place}: {error}")
            continue
        if parsed.id in lines:
            problems.append(f"{place}: id {parsed.id!r} is already in line {lines[parsed.id]}")
        lines.setdefault(parsed.id, row.line)
        rows.append(parsed)
    if problems:
        raise ConfigError(problems)
    pairs = (comment.partition(":") for comment in table.comments if ":" in comment)
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    return Manifest(rows=tuple(rows), facts=facts)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest; the file is replaced completely or not at all."""
    optional = [c for c in _OPTIONAL if any(getattr(row, c) for row in manifest.rows)]
    columns = [*_REQUIRED, *optional]
    text = io.StringIO(newline="")
    for key, value in manifest.facts.items():
        text.write(f"# {key}: {value}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in manifest.rows:
        values = (getattr(row, column) for column in columns)
        writer.writerow(["" if value is None else value for value in values])
    write_text(path, text.getvalue())


def make_manifest(
    dataset: VideoDataset, *, root: Path, name: str, rule: Rule, seed: int, limit: int | None = None
) -> Manifest:
    """Choose videos of a dataset of files by a rule and hash their contents.

    Args:
        dataset: its sources have a ``path`` (:class:`vcr_core.video.source.FileSource`).
        root: folder that the rows' paths are relative to.
        name: name of the dataset, for the record.
        rule: see :func:`order_ids`.
        seed: run seed of the rule.
        limit: number of videos; ``None`` for all.

    Raises:
        UsageError: if a video cannot be read, has no file, or lies outside ``root``.
    """
    from vcr_core.video.source import FileSource

    labels = {video: dataset.item(video).label for video in dataset.ids()}
    rows = []
    for video in order_ids(labels, labels, rule, seed)[:limit]:
        source = dataset.item(video).source
        if not isinstance(source, FileSource):
            raise UsageError(f"{name}: {video!r} has no file that a manifest could list")
        digest = source.sha256()
        if digest is None:
            raise UsageError(f"{source.name}: cannot be read, so it cannot be put in a manifest")
        try:
            relative = source.path.absolute().relative_to(root.absolute()).as_posix()
        except ValueError as error:
            raise UsageError(f"{source.name}: lies outside {root.absolute()}") from error
        label = dataset.labels.names[labels[video]]
        rows.append(ManifestRow(id=video, path=relative, label=label, sha256=digest))
    facts = {"dataset": name, "rule": rule, "seed": str(seed)}
    return Manifest(rows=tuple(rows), facts=facts)


def order_ids(ids: Iterable[str], labels: Mapping[str, int], rule: Rule, seed: int) -> list[str]:
    """Return ids in the order of a rule; a subset is a prefix of it.

    ``hash`` orders by a hash of seed and id, so that losing one video replaces only that one.
    ``stratified`` takes one video of each class in turn, in hash order. ``shuffle`` is Python's
    generator over the sorted ids, for comparison with other tools. ``list`` keeps the order.
    """
    if rule == "list":
        return list(ids)
    if rule == "shuffle":
        return shuffle_order(ids, seed)
    hashed = subset_order(ids, seed)
    return hashed if rule == "hash" else stratified_order(hashed, labels)


def shuffle_order(ids: Iterable[str], seed: int) -> list[str]:
    """Return the sorted ids as Python's own generator shuffles them."""
    ordered = sorted(ids)
    random.Random(seed).shuffle(ordered)  # noqa: S311 - reproduces other tools' choice
    return ordered


def stratified_order(ids: Sequence[str], labels: Mapping[str, int]) -> list[str]:
    """Return ids class by class in turn; within a class, and among classes, in the given order.

    Example:
        >>> stratified_order(["a", "b", "c", "d"], {"a": 1, "b": 1, "c": 0, "d": 1})
        ['a', 'c', 'b', 'd']
    """
    queues: dict[int, list[str]] = {}
    for video in ids:
        queues.setdefault(labels[video], []).append(video)
    rounds = max((len(queue) for queue in queues.values()), default=0)
    return [queue[i] for i in range(rounds) for queue in queues.values() if i < len(queue)]


def _parse(row: Row) -> ManifestRow:
    values = row.values
    for column in ("id", "path", "label"):
        if not values[column]:
            raise ValueError(f"no {column}")
    digest = values["sha256"].lower()
    if digest and (len(digest) != 64 or not set(digest) <= _HEX):
        raise ValueError(f"sha256 {values['sha256']!r} is not 64 hex digits")
    return ManifestRow(
        id=values["id"],
        path=values["path"],
        label=values["label"],
        sha256=digest,
        n_frames=_count(values, "n_frames"),
        width=_count(values, "width"),
        height=_count(values, "height"),
        fps=values.get("fps", ""),
    )


def _count(values: Mapping[str, str], column: str) -> int | None:
    text = values.get(column, "")
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{column} {text!r} is no whole number above 0")
    return int(text)
