"""Making the site: a folder of plain files that any web server, or none, can show."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vcr_core.__about__ import __version__
from vcr_core.atomic import to_json
from vcr_core.errors import UsageError
from vcr_core.leaderboard.pages import ASSETS, Pages, asset
from vcr_core.leaderboard.rankings import make_rankings
from vcr_core.leaderboard.site_data import entry_file, entry_of, left_out_data, ranking_data
from vcr_core.leaderboard.site_schema import Leaderboard, encode, schemas
from vcr_core.leaderboard.submissions import LeftOut, Rules, collect

MARKER = "data/leaderboard.json"
"""A folder with this file was made here and may be made anew."""

TITLE = "Robustness leaderboard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site that was made.

    Attributes:
        folder: where it lies.
        entries: runs on it.
        rankings: rankings on it.
        files: files written.
        left_out: what is not on it.
    """

    folder: Path
    entries: int
    rankings: int
    files: int
    left_out: tuple[LeftOut, ...]


def build_site(
    paths: Sequence[Path],
    out: Path,
    rules: Rules,
    *,
    title: str = TITLE,
    built: str | None = None,
) -> Site:
    """Make the site of all runs below ``paths`` in the folder ``out``.

    The same runs give the same files, byte for byte. A site that is there already is replaced.

    Args:
        paths: run folders, or folders that contain some.
        out: the site's folder.
        rules: what is admitted.
        title: heading of the site.
        built: when, if the pages are to say so.

    Raises:
        UsageError: if ``out`` holds something else than a site.
        StoreError: if a path does not exist.
        ComponentUnavailable: if jinja2 is not installed.
    """
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MARKER).is_file())):
        raise UsageError(f"{out} is there and is no leaderboard; name another folder")
    submissions, left_out = collect(paths, rules)
    rankings = make_rankings(submissions)
    entries = {
        place.submission.run.name: entry_of(place, ranking)
        for ranking in rankings
        for place in ranking.places
    }
    pages = Pages(submissions, rankings, entries, left_out, title=title, built=built)
    board = Leaderboard(
        generator=f"vcr-core {__version__}",
        rankings=[ranking_data(ranking) for ranking in rankings],
        entries=[entries[name] for name in sorted(entries)],
        left_out=left_out_data(left_out),
        built=built,
    )
    fresh = out.with_name(f".{out.name}.new")
    _clear(fresh)
    written = 0
    for address, text in pages.all():
        written += _write(fresh, address, text.encode("utf-8"))
    for address in ASSETS:
        written += _write(fresh, address, asset(address).encode("utf-8"))
    for one in submissions:
        entry = entries[one.run.name]
        written += _write(fresh, entry.data, encode(entry_file(entry, one)))
    for name, schema in schemas().items():
        written += _write(fresh, f"data/{name}", (to_json(schema, indent=1) + "\n").encode())
    # GitHub Pages would run the files through Jekyll.
    written += _write(fresh, ".nojekyll", b"")
    written += _write(fresh, MARKER, encode(board))
    _clear(out)
    fresh.replace(out)
    return Site(
        folder=out,
        entries=len(entries),
        rankings=len(rankings),
        files=written,
        left_out=tuple(left_out),
    )


def _write(folder: Path, address: str, data: bytes) -> int:
    path = folder / address
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return 1


def _clear(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)
