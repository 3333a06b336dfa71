"""Artifacts of offline steps: what determines one, where it is kept, and whether it is whole.

An artifact is a folder of the cache, named by the hash of everything that determines its content.
It is made in a folder ``….partial`` beside its place and renamed when it is complete, so that a
place is empty or holds a whole artifact. Its manifest lists the hash of every file; readers check
them. An artifact may be deleted at any time and made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vcr_core.atomic import sync_folder, to_json, write_json
from vcr_core.errors import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ARTIFACT_SCHEMA = 1
MANIFEST_FILE = "manifest.json"
SPENT_FILE = "spent.json"
"""What earlier calls of an unfinished step cost; only in unfinished folders."""

IN_PYTHON = "make it with vcr_core.prepare(…) and the arguments of vcr_core.evaluate"

_KEY_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an artifact has to be made for.

    Attributes:
        name: the attack or defense whose offline step makes it.
        model: reference of the model, or what stands for it where any model will do.
        made_for: everything that determines the content, plain JSON data.
        overlap: evaluated videos among the training videos.
        root: folder of all artifacts.
        command: the line that makes it.
    """

    name: str
    model: str
    made_for: Mapping[str, Any]
    overlap: tuple[str, ...]
    root: Path
    command: str = ""
    kind: Literal["attack", "defense"] = "attack"

    @property
    def owner(self) -> str:
        """Whose it is, for messages."""
        return f"{self.kind} {self.name}"

    @property
    def key(self) -> str:
        """Hash of ``made_for``: 64 hexadecimal digits."""
        text = to_json({"schema": ARTIFACT_SCHEMA, "made_for": _sorted(self.made_for)})
        return hashlib.blake2b(text.encode(), digest_size=32, person=b"vcr-prepare-v1").hexdigest()

    @property
    def folder(self) -> Path:
        """Where the artifact belongs."""
        return self.root / f"{_slug(self.name)}-{_slug(self.model)}-{self.key[:_KEY_DIGITS]}"

    @property
    def unfinished(self) -> Path:
        """Where it is being made."""
        return self.folder.with_name(self.folder.name + ".partial")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A complete artifact whose files are those that were written.

    Attributes:
        folder: where it is.
        sha256: hash over names and contents of its files, without the manifest.
        manifest: its ``manifest.json``.
        overlap: evaluated videos among those it was made from.
    """

    folder: Path
    sha256: str
    manifest: Mapping[str, Any]
    overlap: frozenset[str]


class ArtifactMissing(NotAvailable):
    """An offline step has not been run for this experiment."""


class ArtifactDamaged(NotAvailable):
    """An artifact's files are not those that its manifest lists."""


def find_artifact(wanted: Wanted) -> Artifact:
    """Return the artifact.

    Raises:
        ArtifactMissing: if there is none, with the command that makes it; where there is one of
            the same component for something else, the message says in what they differ.
        ArtifactDamaged: if it was changed since.
    """
    make = f"make it with:\n  {wanted.command}" if wanted.command else IN_PYTHON
    if not (wanted.folder / MANIFEST_FILE).is_file():
        why = _nearest(wanted)
        if wanted.unfinished.is_dir():
            why = "its offline step was stopped before it was done"
        raise ArtifactMissing(
            f"{wanted.owner} needs an artifact that is made once before the run, and {why}; {make}"
        )
    manifest = _read(wanted.folder)
    wrong = _damage(wanted, manifest)
    if wrong:
        raise ArtifactDamaged(
            f"the artifact {wanted.folder} of {wanted.owner} cannot be used: {wrong}; "
            f"delete the folder and {make}"
        )
    return Artifact(
        folder=wanted.folder,
        sha256=manifest["sha256"],
        manifest=manifest,
        overlap=frozenset(wanted.overlap),
    )


def finish_artifact(wanted: Wanted, facts: Mapping[str, Any]) -> Artifact:
    """Write the manifest of what lies in ``wanted.unfinished`` and move it to its place.

    Args:
        wanted: what it was made for.
        facts: further fields of the manifest.

    Raises:
        NotAvailable: if the offline step left no file.
    """
    making = wanted.unfinished
    (making / SPENT_FILE).unlink(missing_ok=True)
    files = dict(_hashes(making))
    if not files:
        raise NotAvailable(f"the offline step of {wanted.owner} wrote nothing")
    manifest = {
        "schema": ARTIFACT_SCHEMA,
        wanted.kind: wanted.name,
        "key": wanted.key,
        "sha256": _overall(files),
        "overlap": list(wanted.overlap),
        **facts,
        "files": files,
        "made_for": dict(wanted.made_for),
    }
    write_json(making / MANIFEST_FILE, manifest)
    if wanted.folder.exists():
        shutil.rmtree(wanted.folder)
    making.rename(wanted.folder)
    sync_folder(wanted.folder.parent)
    return find_artifact(wanted)


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _damage(wanted: Wanted, manifest: Mapping[str, Any]) -> str:
    if manifest.get("schema") != ARTIFACT_SCHEMA or "sha256" not in manifest:
        return f"its {MANIFEST_FILE} cannot be read"
    if manifest.get("key") != wanted.key:
        return "it was made for another experiment"
    listed, found = manifest.get("files"), dict(_hashes(wanted.folder))
    for name in sorted({*(listed or {}), *found}):
        if name not in found:
            return f"its file {name} is missing"
        if (listed or {}).get(name) != found[name]:
            return f"its file {name} is not the one that was written"
    return "" if manifest["sha256"] == _overall(found) else f"its {MANIFEST_FILE} was changed"


def _hashes(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != MANIFEST_FILE:
            name = path.relative_to(folder).as_posix()
            yield name, hashlib.sha256(path.read_bytes()).hexdigest()


def _overall(files: Mapping[str, str]) -> str:
    text = "".join(f"{name}\0{files[name]}\n" for name in sorted(files))
    return hashlib.sha256(text.encode()).hexdigest()


def _nearest(wanted: Wanted) -> str:
    """Return why no artifact fits; names the differences to the one that comes closest."""
    differences: list[list[str]] = []
    for folder in sorted(wanted.root.glob(f"{_slug(wanted.name)}-*")):
        made_for = _read(folder).get("made_for")
        if isinstance(made_for, dict):
            differences.append(list(_differences(made_for, _sorted(wanted.made_for))))
    if not differences:
        return "there is none yet"
    closest = min(differences, key=len)
    shown = ", ".join(closest[:3]) + (f" and {len(closest) - 3} more" if len(closest) > 3 else "")
    return f"there is only one made for something else ({shown})"


def _differences(have: Any, need: Any, place: str = "") -> Iterator[str]:
    if isinstance(have, dict) and isinstance(need, dict):
        for key in sorted({*have, *need}):
            inner = f"{place}.{key}" if place else str(key)
            yield from _differences(have.get(key), need.get(key), inner)
    elif have != need:
        long = isinstance(have, list) or isinstance(need, list)
        yield f"other {place}" if long else f"{place} is {_said(have)}, needed {_said(need)}"


def _said(value: Any) -> str:
    if isinstance(value, float):
        from vcr_core.config.fraction_text import short_text

        return str(short_text(value))
    return json.dumps(value)


def _sorted(data: Any) -> Any:
    """Return data as JSON gives it back, keys in order."""
    return json.loads(json.dumps(data, sort_keys=True))


def _slug(ref: str) -> str:
    name = ref.rpartition("/")[2].lower()
    return "".join(c if c.isalnum() or c == "." else "-" for c in name)[:40].strip("-.") or "any"
