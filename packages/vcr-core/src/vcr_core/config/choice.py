"""From a component's table to what is chosen: entry, variant, preset, validated parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core import plugins, preset_files
from vcr_core.components import params_type
from vcr_core.config.check import Problems, check_table, plain, unknown_key
from vcr_core.config.experiment import Chosen
from vcr_core.config.wording import found, hint
from vcr_core.errors import ConfigError, NotAvailable, UsageError
from vcr_core.specs import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vcr_core.config.check import KeyPath
    from vcr_core.plugins import Entry
    from vcr_core.preset_files import PresetFile
    from vcr_core.specs import Kind


@dataclass(frozen=True, slots=True)
class Named:
    """A component that a run names, before its parameters are known.

    Attributes:
        entry: the registry's entry.
        variant: weights of a model, preset of anything else, or ``""``.
        preset: label and tables of the preset that the reference names, if it names one.
    """

    entry: Entry
    variant: str = ""
    preset: tuple[str, dict[str, Any]] | None = None


def name_component(kind: Kind, ref: Any, path: KeyPath, problems: Problems) -> Named | None:
    """Look up a reference; add a problem and return ``None`` if it names nothing.

    A model's variant is a set of weights or a preset; any other component's is a preset.
    """
    if not isinstance(ref, str) or not ref.strip():
        problems.add(path, f"found {found(ref)}; allowed: a reference (vcr list {kind})")
        return None
    try:
        entry, variant = plugins.registry().find(kind, ref)
        shipped = preset_files.component_presets(entry) if variant else {}
        preset = _read_preset(shipped[variant]) if variant in shipped else None
    except NotAvailable as error:
        problems.add_unavailable(path, str(error))
        return None
    except ConfigError as error:
        problems.found.extend(error.problems)
        return None
    except UsageError as error:
        problems.add(path, f"found {ref!r}: {error}")
        return None
    if isinstance(entry.spec, ModelSpec):
        return _model(entry, entry.spec, variant, preset, ref, path, problems)
    if variant and preset is None:
        every = sorted(preset_files.component_presets(entry))
        problems.add(path, _no_variant(entry, ref, variant, every, "preset"))
        return None
    return Named(entry, variant, preset)


def _model(
    entry: Entry,
    spec: ModelSpec,
    variant: str,
    preset: tuple[str, dict[str, Any]] | None,
    ref: str,
    path: KeyPath,
    problems: Problems,
) -> Named | None:
    weights = [item.variant for item in spec.weights]
    if variant in weights:
        return Named(entry, variant, preset)
    default = weights[0] if weights else ""
    if variant and preset is None:
        shipped = sorted(preset_files.component_presets(entry))
        every = sorted({*filter(None, weights), *shipped})
        problems.add(path, _no_variant(entry, ref, variant, every, "set of weights and no preset"))
        return None
    if preset is not None:
        default = preset[1].get("weights", default)
        if default not in weights and default:
            problems.add(path, f"{preset[0]} names weights {default!r}, which {entry} has not")
            return None
    return Named(entry, default, preset)


def _no_variant(entry: Entry, ref: str, variant: str, every: list[str], what: str) -> str:
    allowed = ", ".join(f"{entry.name}.{name}" for name in every) or f"{entry.name} alone"
    return (
        f"found {ref!r}: {entry.name} has no {what} {variant!r}{hint(variant, every)} "
        f"(allowed: {allowed})"
    )


def _read_preset(preset: PresetFile) -> tuple[str, dict[str, Any]]:
    document = preset.read()
    problems = [
        f"{preset.shown} of {preset.distribution}: {key}: "
        f"{unknown_key(key, list(preset_files.COMPONENT_TABLES), 'a component preset')}"
        for key in document
        if key not in preset_files.COMPONENT_TABLES
    ]
    problems += [
        f"{preset.shown} of {preset.distribution}: {key}: found {found(document[key])}; "
        "allowed: a table"
        for key in ("params", "threat", "protocol")
        if not isinstance(document.get(key, {}), dict)
    ]
    if problems:
        raise ConfigError(problems)
    return preset.shown, document


def choose(
    named: Named, table: Mapping[str, Any], path: KeyPath, problems: Problems
) -> Chosen | None:
    """Return the component with its validated parameters, or ``None`` after adding problems.

    Args:
        named: the component.
        table: its parameters, without the core's own keys.
        path: key path of the table.
        problems: where problems go.
    """
    entry = named.entry
    try:
        struct = params_type(entry.spec)
    except NotAvailable as error:
        problems.add_unavailable(path, str(error))
        return None
    params: dict[str, Any] = {}
    if struct is None:
        for key in table:
            problems.add((*path, key), unknown_key(key, [], entry.name))
        if table:
            return None
    else:
        checked = check_table(struct, table, path, problems, entry.name)
        if checked is None:
            return None
        params = plain(checked)
    return Chosen(
        spec=entry.spec,
        distribution=entry.distribution,
        version=entry.version,
        variant=named.variant,
        params=params,
    )
