"""The variants of components: sets of weights from specs, parameter sets from preset files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.preset_files import presets
from vcr_core.refs import normal_name
from vcr_core.specs import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.plugins import Entry
    from vcr_core.specs import Kind, WeightSpec


def variants(entries: Sequence[Entry]) -> dict[Entry, list[str]]:
    """Return the variants of each entry: its weights in their order, then presets by name.

    Folders of presets are listed once for all entries; no file is read.
    """
    by_kind: dict[Kind, dict[str, list[str]]] = {}
    found: dict[Entry, list[str]] = {}
    for entry in entries:
        if entry.kind not in by_kind:
            by_kind[entry.kind] = _presets(entry.kind)
        names = [w.variant for w in _weights(entry) if w.variant]
        names += by_kind[entry.kind].get(entry.name, [])
        found[entry] = list(dict.fromkeys(names))
    return found


def _weights(entry: Entry) -> tuple[WeightSpec, ...]:
    return entry.spec.weights if isinstance(entry.spec, ModelSpec) else ()


def _presets(kind: Kind) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for preset in presets(kind):
        name, _, variant = preset.name.partition(".")
        if variant:
            found.setdefault(normal_name(name), []).append(normal_name(variant))
    return found
