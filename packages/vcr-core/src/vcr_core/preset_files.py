"""Presets that plugins ship: parameter sets of components, whole runs, whole sweeps.

A :class:`~vcr_core.specs.PresetSource` names a folder inside an import package::

    presets/attack/ifgsm.strong.toml     [params], optional [threat] and [protocol], summary
    presets/run/paper/ifgsm-x3d.toml     a run file, named ``paper/ifgsm-x3d``
    presets/sweep/demo.toml              a sweep file, named ``demo``
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from vcr_core import plugins
from vcr_core.config.toml_text import parse_toml
from vcr_core.errors import AmbiguousComponent, ConfigError
from vcr_core.refs import did_you_mean, normal_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from vcr_core.plugins import Entry

FileKind: TypeAlias = Literal["run", "sweep"]

COMPONENT_TABLES = ("summary", "weights", "params", "threat", "protocol")
"""What a preset of a component may hold; ``weights`` (a variant) for models only."""


@dataclass(frozen=True, slots=True)
class PresetFile:
    """One preset, not yet read.

    Attributes:
        kind: component kind, ``run`` or ``sweep``.
        name: ``ifgsm.strong`` or ``paper/table2``.
        distribution: who ships it.
        resource: the file.
    """

    kind: str
    name: str
    distribution: str
    resource: Traversable

    @property
    def shown(self) -> str:
        """The preset's name in messages and in provenance."""
        return f"preset {self.name}"

    def read(self) -> dict[str, Any]:
        """Return its content.

        Raises:
            ConfigError: if the file is not TOML.
        """
        text = self.resource.read_text(encoding="utf-8")
        return parse_toml(text, f"{self.shown} of {self.distribution}")


def presets(kind: str) -> list[PresetFile]:
    """Return the presets of a component kind, of ``run`` or of ``sweep``, sorted by name."""
    found = [
        PresetFile(kind, name, distribution, resource)
        for distribution, source in plugins.registry().preset_sources
        for name, resource in _files(_folder(source.package, source.folder, kind), "")
    ]
    return sorted(found, key=lambda preset: (preset.name, preset.distribution))


def component_presets(entry: Entry) -> dict[str, PresetFile]:
    """Return the presets of a component by variant; its own distribution's come first.

    Raises:
        AmbiguousComponent: if two other distributions ship a preset of the same name.
    """
    chosen: dict[str, PresetFile] = {}
    for preset in presets(entry.kind):
        name, _, variant = preset.name.partition(".")
        if normal_name(name) != entry.name or not variant:
            continue
        other = chosen.get(normal_name(variant))
        if other is not None and entry.distribution not in (
            preset.distribution,
            other.distribution,
        ):
            raise AmbiguousComponent(
                f"{entry.kind} preset {preset.name!r} is shipped by {other.distribution} "
                f"and by {preset.distribution}; disable one of them with VCR_DISABLE_PLUGINS"
            )
        if other is None or preset.distribution == entry.distribution:
            chosen[normal_name(variant)] = preset
    return chosen


def find_preset(kind: FileKind, name: str) -> PresetFile | None:
    """Return the run or sweep preset of that name, or ``None``.

    Raises:
        AmbiguousComponent: if several distributions ship it; ``dist:name`` names one of them.
    """
    distribution, colon, bare = name.rpartition(":")
    wanted = normal_name(bare)
    found = [
        preset
        for preset in presets(kind)
        if normal_name(preset.name) == wanted and (not colon or preset.distribution == distribution)
    ]
    if len(found) > 1:
        ways = ", ".join(f"{preset.distribution}:{preset.name}" for preset in found)
        raise AmbiguousComponent(f"{kind} preset {name!r} is ambiguous; write one of: {ways}")
    return found[0] if found else None


def no_such_file_or_preset(kind: FileKind, name: str) -> ConfigError:
    """Return the error for a name that is neither a file nor a preset."""
    known = [preset.name for preset in presets(kind)]
    shipped = f" ({kind} presets: {', '.join(known)})" if known else ""
    return ConfigError(
        f"{name}: no such file, and no {kind} preset of that name"
        f"{did_you_mean(name, known)}{shipped}"
    )


def _folder(package: str, folder: str, kind: str) -> Traversable:
    root = resources.files(package)
    for part in (*folder.split("/"), kind):
        root = root / part
    return root


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".toml"):
            yield f"{prefix}{entry.name.removesuffix('.toml')}", entry
