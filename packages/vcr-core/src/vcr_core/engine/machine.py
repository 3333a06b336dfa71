"""The part of a configuration that belongs to this machine, kept beside a run for its workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vcr_core.atomic import write_text
from vcr_core.components import params_type
from vcr_core.config.toml_text import read_toml, to_toml
from vcr_core.config.wording import is_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vcr_core.config.experiment import Chosen, Experiment

MACHINE_FILE = "machine.toml"


def path_params(chosen: Chosen) -> dict[str, Any]:
    """Return the parameters of a component that are paths, made absolute."""
    struct = params_type(chosen.spec)
    if struct is None:
        return {}
    fields = msgspec.inspect.type_info(struct).fields  # type: ignore[attr-defined]
    names = [f.encode_name for f in fields if is_path(f.type)]
    given = {name: chosen.params.get(name) for name in names}
    return {name: str(Path(value).expanduser().resolve()) for name, value in given.items() if value}


def machine_tables(experiment: Experiment) -> dict[str, Any]:
    """Return the tables that never count towards an experiment's identity."""
    tables: dict[str, Any] = {
        "runtime": msgspec.to_builtins(experiment.runtime),
        "executor": experiment.executor.table,
        "output": msgspec.to_builtins(experiment.output),
        "paths": msgspec.to_builtins(experiment.paths),
    }
    for kind, chosen in (
        ("dataset", experiment.dataset),
        ("model", experiment.model),
        ("source", experiment.source),
        ("attack", experiment.attack),
    ):
        found = {} if chosen is None else path_params(chosen)
        if found:
            tables[kind] = found
    return tables


def write_machine(folder: Path, experiment: Experiment) -> None:
    """Write ``machine.toml``; it is not part of the results and may be deleted."""
    write_text(folder / MACHINE_FILE, to_toml(machine_tables(experiment)))


def run_document(folder: Path) -> dict[str, Any]:
    """Return ``resolved.toml`` of a run folder together with its ``machine.toml``, if any."""
    document = read_toml(folder / "resolved.toml", str(folder / "resolved.toml"))
    path = folder / MACHINE_FILE
    if path.is_file():
        merge(document, read_toml(path, str(path)))
    return document


def merge(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Merge tables key by key into ``base``; ``over`` wins."""
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = value
