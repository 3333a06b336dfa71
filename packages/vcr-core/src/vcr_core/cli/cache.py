"""``vcr cache``: what is kept to be taken over by other runs, and how to be rid of it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vcr_core.cli.output import emit_json, emit_table, json_option, note

if TYPE_CHECKING:
    from vcr_core.reuse_store import ShelfFacts

_COLUMNS = ("kind", "model", "of", "entries", "megabytes", "last used", "folder")

_where = click.option(
    "--cache",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder of caches.  [default: paths.cache, else VCR_CACHE_DIR or the user's]",
)


@click.group("cache")
def command() -> None:
    """Show or delete what runs keep for each other: clips, predictions, readings, decoded frames.

    An attack that knows no defense is computed once and judged against many; see runtime.reuse.
    What is deleted is computed again where it is needed; no number changes.

    \b
    Examples:
      vcr cache list
      vcr cache clear --yes
    """  # noqa: D301


@command.command("list")
@_where
@json_option
def list_(folder: Path | None, as_json: bool) -> None:
    """Show what is kept, the one used last first."""
    from vcr_core.reuse_store import shelves

    root = _root(folder)
    found = shelves(root)
    total = sum(shelf.size for shelf in found)
    if as_json:
        emit_json({
            "schema": 1,
            "folder": str(root),
            "bytes": total,
            "shelves": [
                {"about": dict(s.about), "folder": str(s.folder), "entries": s.entries,
                 "bytes": s.size, "used": _time(s)}
                for s in found
            ],
        })  # fmt: skip
        return
    emit_table(_COLUMNS, [_row(shelf) for shelf in found], styles={"kind": "bold"})
    note(f"{total / 1e6:.1f} MB in {root}" if found else f"nothing is kept in {root}")


@command.command("clear")
@_where
@click.option("--yes", is_flag=True, help="Do not ask.")
def clear(folder: Path | None, yes: bool) -> int:
    """Delete all that is kept; weights, artifacts and results stay."""
    from vcr_core.reuse_store import clear as delete
    from vcr_core.reuse_store import shelves

    root = _root(folder)
    total = sum(shelf.size for shelf in shelves(root))
    if not root.is_dir():
        note(f"nothing is kept in {root}")
        return 0
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(f"this deletes {root}; say --yes where nobody can be asked")
    if not yes and not click.confirm(f"delete {total / 1e6:.1f} MB in {root}?", err=True):
        return 1
    delete(root)
    note(f"deleted {total / 1e6:.1f} MB")
    return 0


def _root(folder: Path | None) -> Path:
    """Return the store's folder: the one that a run started here would use."""
    from vcr_core.config.local_files import local_paths
    from vcr_core.folders import cache_folder
    from vcr_core.reuse_store import FOLDER

    if folder is None:
        chosen = local_paths(Path.cwd()).cache
        folder = Path(chosen) if chosen else None
    return (folder or cache_folder()) / FOLDER


def _row(shelf: ShelfFacts) -> tuple[object, ...]:
    about = shelf.about
    return (
        about.get("kind", "?"),
        about.get("model", ""),
        about.get("attack") or about.get("dataset") or ", ".join(about.get("metrics") or ()),
        shelf.entries,
        f"{shelf.size / 1e6:.1f}",
        _time(shelf)[:16].replace("T", " "),
        shelf.folder.name,
    )


def _time(shelf: ShelfFacts) -> str:
    return datetime.fromtimestamp(shelf.used, UTC).isoformat(timespec="seconds")
