"""Getting weight files: resumed where they broke off, checked, and moved to their place whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen

from vcr_core.atomic import sync_folder, write_text
from vcr_core.errors import NotAvailable
from vcr_core.weights.places import digest, file_name, find, is_bundled, note_of, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from vcr_core.specs import WeightSpec

    Progress = Callable[[int, int], None]
    """Called with bytes that are there and bytes in all (0 = unknown)."""

OFFLINE: Final = "VCR_OFFLINE"
_BLOCK: Final = 1 << 20
_TIMEOUT_S: Final = 60.0
_SCHEMES: Final = ("http", "https", "file")
_PAGES: Final = ("drive.google.com",)
"""Hosts that answer with a page for a browser where a file is asked for."""


class FetchFailed(NotAvailable):
    """A weight file could not be brought here; what arrived is kept and resumed next time."""


def is_offline() -> bool:
    """Return whether ``VCR_OFFLINE`` forbids downloads."""
    return os.environ.get(OFFLINE, "").lower() not in ("", "0", "false", "no")


def fetch(
    weights: WeightSpec,
    folder: Path,
    *,
    sources: Sequence[str] = (),
    progress: Progress | None = None,
) -> Path:
    """Bring a weight file into ``folder`` and return its path; nothing happens if it is there.

    Args:
        weights: what to fetch.
        folder: where to put it; made if it does not exist.
        sources: folders or addresses to try first: a folder or a base address is searched for the
            file's name, anything that ends with that name is the file.
        progress: called after every block.

    Raises:
        FetchFailed: if no source gives the file, naming each and why.
        ComponentUnavailable: if the file that arrived is not the published one; it is deleted.
    """
    present = find(weights, (folder,))
    if present is not None:
        verify(weights, present)
        return present
    name = file_name(weights)
    if is_bundled(weights) or not name:
        raise FetchFailed(f"{weights.url or 'these weights'}: there is no file to fetch")
    target = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    reasons = []
    for source in [*(_in(s, name) for s in sources), weights.url, *weights.mirrors]:
        try:
            _bring(source, target.with_name(name + ".part"), progress)
        except (OSError, ValueError) as error:
            reasons.append(f"{source}: {_reason(error)}")
            continue
        return _settle(weights, target)
    raise FetchFailed(
        f"{name} could not be fetched\n  " + "\n  ".join(reasons) + f"\n  Put it into {folder}, or "
        "name a folder or an address that has it with --from."
    )


def _in(source: str, name: str) -> str:
    if urlsplit(source).scheme in _SCHEMES:
        return source if source.endswith(name) else f"{source.rstrip('/')}/{name}"
    path = Path(source).expanduser()
    return str((path / name if path.is_dir() else path).absolute())


def _settle(weights: WeightSpec, target: Path) -> Path:
    part = target.with_name(target.name + ".part")
    try:
        verify(weights, part)
    except NotAvailable:
        part.unlink()
        raise
    write_text(note_of(target), f"{digest(part)}  {target.name}\n")
    part.replace(target)
    sync_folder(target.parent)
    return target


def _bring(source: str, part: Path, progress: Progress | None) -> None:
    scheme = urlsplit(source).scheme
    if scheme in ("", "file"):
        path = Path(url2pathname(urlsplit(source).path)) if scheme else Path(source)
        with path.open("rb") as content, part.open("wb") as out:
            _copy(content, out, 0, path.stat().st_size, progress)
        return
    if scheme not in _SCHEMES:
        raise ValueError(f"an address of kind {scheme!r} cannot be fetched")
    if urlsplit(source).hostname in _PAGES:
        raise ValueError("a page and no file; download it with a browser, then say --from FILE")
    if is_offline():
        raise OSError(f"{OFFLINE} is set")
    have = part.stat().st_size if part.is_file() else 0
    request = Request(source, headers={"User-Agent": "vcr", "Accept-Encoding": "identity"})  # noqa: S310
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
    except HTTPError as error:
        if error.code != 416 or not have:
            raise
        # The part is as long as the file, or longer: begin anew rather than trust it.
        part.unlink()
        _bring(source, part, progress)
        return
    with answer:
        resumed = answer.status == 206
        length = int(answer.headers.get("Content-Length") or 0)
        total = length + (have if resumed else 0) if length else 0
        with part.open("ab" if resumed else "wb") as out:
            _copy(answer, out, have if resumed else 0, total, progress)
    if total and part.stat().st_size != total:
        raise OSError(f"the connection ended after {part.stat().st_size} of {total} bytes")


def _copy(
    content: IO[bytes], out: IO[bytes], have: int, total: int, progress: Progress | None
) -> None:
    while block := content.read(_BLOCK):
        out.write(block)
        have += len(block)
        if progress is not None:
            progress(have, total)
    out.flush()
    os.fsync(out.fileno())


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, URLError):
        return f"no connection ({error.reason})"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return str(error)


def free_bytes(folder: Path) -> int:
    """Return the free space of the file system of ``folder`` or of its nearest existing parent."""
    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    return shutil.disk_usage(place).free
