"""``vcr weights``: what weight files there are, where they are, and getting them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.output import emit_json, emit_table, is_terminal, json_option, note
from vcr_core.errors import ComponentUnavailable, NotAvailable, UsageError
from vcr_core.plugins import registry
from vcr_core.specs import MetricSpec, ModelSpec, WeightSpec
from vcr_core.weights.places import (
    default_folder,
    digest,
    file_name,
    find,
    folders_of,
    is_bundled,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vcr_core.plugins import Entry, Registry

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of weight files.  [default: paths.weights, VCR_WEIGHTS_DIR, or in the cache]",
)
_refs = click.argument("refs", nargs=-1, metavar="[NAME[.VARIANT]]...")


@click.group("weights")
def command() -> None:
    """List, fetch and check weight files of models and metrics.

    Nothing is ever downloaded unless this command is asked to. VCR_OFFLINE=1 forbids it even then;
    folders given with --from still work.

    \b
    Examples:
      vcr weights list
      vcr weights fetch x3d.m-k400
      vcr weights fetch --from /mnt/share/weights tsm slowfast
      vcr weights verify
    """  # noqa: D301


@command.command("list")
@_refs
@_folder
@json_option
def list_(refs: tuple[str, ...], folder: Path | None, as_json: bool) -> None:
    """Show weight files: which are here, their size, licence and address."""
    folders = _folders(folder)
    rows = [_facts(ref, weights, folders) for ref, weights in _chosen(refs)]
    if as_json:
        emit_json({"schema": 1, "folder": str(folders[0]), "weights": rows})
        return
    shown = ("weights", "here", "megabytes", "accuracy", "license", "address")
    emit_table(shown, [[row[key] for key in shown] for row in rows], styles={"weights": "bold"})
    here = sum(row["here"] == "yes" for row in rows)
    note(f"{here} of {len(rows)} are here; vcr weights fetch puts them into {folders[0]}")


@command.command("fetch")
@_refs
@_folder
@click.option("--all", "every", is_flag=True, help="Fetch everything that has an address.")
@click.option(
    "--from", "sources", multiple=True, help="A folder or address to try first; repeatable."
)
def fetch_(refs: tuple[str, ...], folder: Path | None, every: bool, sources: Sequence[str]) -> int:
    """Get weight files, resuming what broke off; their licences are shown first."""
    from vcr_core.weights.fetching import fetch, free_bytes

    if bool(refs) == every:
        raise click.UsageError("name models, or say --all")
    target = _folders(folder)[0]
    wanted = [(ref, w) for ref, w in _chosen(refs) if not is_bundled(w) and file_name(w)]
    if not wanted:
        note("these weights come with their packages; there is nothing to fetch")
    missing = [w for _, w in wanted if find(w, (target,)) is None]
    needed = sum(w.bytes for w in missing)
    if needed > free_bytes(target):
        raise NotAvailable(
            f"{target} has {free_bytes(target) / 1e9:.1f} GB free and {needed / 1e9:.1f} GB are "
            "needed; choose another place with --folder"
        )
    failed = 0
    for ref, weights in wanted:
        note(f"{ref}: {file_name(weights)}, licence: {weights.license or 'none named'}")
        try:
            path = fetch(weights, target, sources=sources, progress=_progress(ref))
        except NotAvailable as error:
            failed += 1
            note(f"{ref}: {error}")
            continue
        click.echo(f"{ref}\t{path}\t{digest(path)}" if not is_terminal() else f"{ref}: {path}")
    return NotAvailable.exit_code if failed else 0


@command.command("verify")
@_refs
@_folder
@json_option
def verify_(refs: tuple[str, ...], folder: Path | None, as_json: bool) -> int:
    """Compare the files that are here with the published hashes."""
    folders = _folders(folder)
    rows = []
    for ref, weights in _chosen(refs):
        path = find(weights, folders)
        if path is None:
            if refs:
                rows.append({"weights": ref, "state": "not here", "sha256": "", "file": ""})
            continue
        row = {"weights": ref, "state": "ok", "sha256": digest(path), "file": str(path)}
        try:
            verify(weights, path)
        except ComponentUnavailable as error:
            row["state"] = f"wrong: {error}"
        else:
            if not weights.sha256:
                row["state"] = "ok (no hash is published; compared with the first download)"
        rows.append(row)
    if as_json:
        emit_json({"schema": 1, "weights": rows})
    else:
        columns = ("weights", "state", "sha256", "file")
        emit_table(columns, [[row[c] for c in columns] for row in rows])
    return 0 if all(row["state"].startswith("ok") for row in rows) else 1


@command.command("path")
@click.argument("ref", metavar="NAME[.VARIANT]")
@_folder
def path_(ref: str, folder: Path | None) -> None:
    """Print where the file of one set of weights is."""
    folders = _folders(folder)
    ((name, weights),) = _chosen((ref,), one=True)
    found = find(weights, folders)
    if found is None:
        raise NotAvailable(f"{name}: {file_name(weights) or 'no file'} is not on this machine")
    click.echo(found)


def _chosen(refs: Sequence[str], *, one: bool = False) -> Iterator[tuple[str, WeightSpec]]:
    """Yield references and weights: those that are named, all of a model, or all there are.

    Raises:
        UsageError: for a name that is no model and no metric, or no variant of it.
    """
    known = registry()
    if not refs:
        for entry in (*known.entries("model"), *known.entries("metric")):
            if isinstance(entry.spec, ModelSpec | MetricSpec):
                yield from _all(entry.spec)
        return
    for ref in refs:
        entry, variant = _find(known, ref)
        spec = entry.spec
        if not isinstance(spec, ModelSpec | MetricSpec) or not spec.weights:
            raise UsageError(f"{spec.kind} {ref} has no weight files")
        if not variant and not one:
            yield from _all(spec)
            continue
        named = [w for w in spec.weights if w.variant == variant] if variant else spec.weights[:1]
        if not named:
            names = ", ".join(w.variant for w in spec.weights if w.variant)
            raise UsageError(f"{spec.kind} {spec.name} has no weights {variant!r}; it has {names}")
        yield _ref(spec, named[0]), named[0]


def _find(known: Registry, ref: str) -> tuple[Entry, str]:
    try:
        return known.find("model", ref)
    except UsageError as no_model:
        try:
            return known.find("metric", ref)
        except UsageError:
            raise no_model from None


def _all(spec: ModelSpec | MetricSpec) -> Iterator[tuple[str, WeightSpec]]:
    return ((_ref(spec, weights), weights) for weights in spec.weights)


def _ref(spec: ModelSpec | MetricSpec, weights: WeightSpec) -> str:
    return f"{spec.name}.{weights.variant}" if weights.variant else spec.name


def _facts(ref: str, weights: WeightSpec, folders: Sequence[Path]) -> dict[str, Any]:
    path = find(weights, folders)
    size = path.stat().st_size if path is not None else weights.bytes
    accuracy = weights.clean_accuracy
    return {
        "weights": ref,
        "here": "bundled" if is_bundled(weights) and path else "yes" if path else "no",
        "megabytes": f"{size / 1e6:.1f}" if size else "",
        "accuracy": "" if accuracy is None else f"{accuracy:.1%}",
        "license": weights.license,
        "address": weights.url,
        "sha256": weights.sha256,
        "file": str(path) if path else None,
    }


def _folders(folder: Path | None) -> tuple[Path, ...]:
    """Return where to look, the place for new files first."""
    from vcr_core.config.local_files import local_paths

    if folder is not None:
        return (folder,)
    return (*folders_of(local_paths(Path.cwd())), default_folder())


def _progress(ref: str) -> Callable[[int, int], None]:
    """Return a line on stderr that is written over, on a terminal; nothing elsewhere."""

    def show(have: int, total: int) -> None:
        if sys.stderr.isatty():
            of = f" of {total / 1e6:.1f}" if total else ""
            click.echo(f"\r{ref}: {have / 1e6:.1f}{of} MB", err=True, nl=have == total)

    return show
