"""Where weight files lie on this machine; nothing here needs torch or a network."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from vcr_core.errors import ComponentUnavailable
from vcr_core.folders import cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.config.schema import PathsConfig
    from vcr_core.specs import WeightSpec

PACKAGE: Final = "package:"
_BLOCK: Final = 1 << 20
_known: dict[tuple[str, int, int], str] = {}


def default_folder() -> Path:
    """Return where ``vcr weights fetch`` puts files: ``VCR_WEIGHTS_DIR``, else in the cache."""
    chosen = os.environ.get("VCR_WEIGHTS_DIR")
    return Path(chosen).expanduser() if chosen else cache_folder() / "weights"


def folders_of(paths: PathsConfig) -> tuple[Path, ...]:
    """Return the folder that an experiment names: ``[paths] weights``, else in its cache."""
    if paths.weights:
        return (Path(paths.weights).expanduser(),)
    return (Path(paths.cache) / "weights",) if paths.cache else ()


def torch_folder() -> Path:
    """Return where torch's hub keeps files that other programs have fetched."""
    home = os.environ.get("TORCH_HOME")
    root = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "torch"
    return root.expanduser() / "hub" / "checkpoints"


def file_name(weights: WeightSpec) -> str:
    """Return the name of a set of weights on disk; ``""`` where it has no file."""
    return weights.filename or PurePosixPath(unquote(urlsplit(weights.url).path)).name


def is_bundled(weights: WeightSpec) -> bool:
    """Return whether the file comes with an installed package."""
    return weights.url.startswith(PACKAGE)


def places(weights: WeightSpec, folders: Sequence[Path] = ()) -> list[Path]:
    """Return every path where the file may lie, in the order in which they are looked at.

    Args:
        weights: what is looked for.
        folders: looked at first; then :func:`default_folder` and torch's own cache.
    """
    if is_bundled(weights):
        package, _, rest = weights.url.removeprefix(PACKAGE).partition("/")
        found = importlib.util.find_spec(package)
        roots = list(found.submodule_search_locations or []) if found else []
        return [Path(root) / rest for root in roots]
    name = file_name(weights)
    every = [*folders, default_folder(), torch_folder()]
    return [folder / name for folder in dict.fromkeys(every)] if name else []


def find(weights: WeightSpec, folders: Sequence[Path] = ()) -> Path | None:
    """Return the file of a set of weights on this machine, unverified, or ``None``."""
    return next((place for place in places(weights, folders) if place.is_file()), None)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file; a file that did not change is read once a process."""
    state = path.stat()
    key = (str(path), state.st_size, state.st_mtime_ns)
    if key not in _known:
        with path.open("rb") as content:
            _known[key] = hashlib.file_digest(content, "sha256").hexdigest()
    return _known[key]


def verify(weights: WeightSpec, path: Path) -> str:
    """Return the SHA-256 of a file after comparing it with the published one.

    Where nothing is published, the hash that was noted when the file was fetched is what the file
    must have.

    Raises:
        ComponentUnavailable: if the file is another one.
    """
    found = digest(path)
    wanted, whose = weights.sha256, "the published one"
    if len(wanted) < 64:
        noted = noted_digest(path)
        if noted and noted.startswith(wanted):
            wanted, whose = noted, "the one that was fetched"
    if not found.startswith(wanted):
        raise ComponentUnavailable(
            f"{path} is another file than {whose}: its SHA-256 begins {found[:12]}, not "
            f"{wanted[:12]}; delete it and fetch it again"
        )
    return found


def note_of(path: Path) -> Path:
    """Return where the hash of a fetched file is noted."""
    return path.with_name(path.name + ".sha256")


def noted_digest(path: Path) -> str:
    """Return the hash that was noted at the first download, or ``""``."""
    note = note_of(path)
    return note.read_text(encoding="ascii").split()[0] if note.is_file() else ""


def located(weights: WeightSpec, folders: Sequence[Path] = ()) -> WeightSpec:
    """Return the weights with ``file`` set to where they lie; unchanged where there is no file.

    Raises:
        ComponentUnavailable: if the file that lies there is not the published one.
    """
    from dataclasses import replace

    path = find(weights, folders)
    if path is None:
        return weights
    verify(weights, path)
    return replace(weights, file=str(path))
