"""From layers to one decided experiment, with every problem reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcr_core import compat
from vcr_core.config.assemble import assemble
from vcr_core.config.check import KeyPath, Problems, plain
from vcr_core.config.document import LOCAL_TABLES, assign, normalised
from vcr_core.config.experiment import Experiment
from vcr_core.config.identity import identity_of
from vcr_core.config.layered import Layered
from vcr_core.config.local_files import local_layers
from vcr_core.config.resolved_toml import as_run_file, resolved_document
from vcr_core.config.sources import Document, Source, read_source
from vcr_core.config.toml_text import parse_key_path, parse_value
from vcr_core.errors import ComponentUnavailable, ConfigError, IncompatibleComponents

OPTION_OF = {
    "model": "--model",
    "attack": "--attack",
    "defense": "--defense",
    "dataset": "--dataset",
    "limit": "--limit",
    "seed": "--seed",
    "threat.eps": "--eps",
}
_PATH_OF = {"limit": ("dataset", "limit")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An experiment and where it comes from.

    Attributes:
        experiment: what to do, every default made explicit.
        provenance: the layer that set each key, by dotted key path.
        identity: what the run's hash covers, without the ids of its videos; plain JSON data.
        toml: a run file that gives the same identity anywhere; holds nothing of this machine.
        values: the value of each key of ``provenance``.
        machine: the tables ``[paths]``, ``[runtime]`` and ``[executor]``.
        notes: what is worth saying and no mistake.
    """

    experiment: Experiment
    provenance: dict[str, str]
    identity: dict[str, Any]
    toml: str
    values: dict[str, Any]
    machine: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """One key that is set from outside a file."""

    path: KeyPath
    value: Any
    layer: str


@dataclass(slots=True)
class Request:
    """A document and what is set over it, before any component is looked up."""

    document: Document
    local: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def resolve_run(
    source: Source,
    *,
    overrides: Sequence[str] = (),
    shortcuts: Mapping[str, Any] | None = None,
    cwd: Path | None = None,
    require_available: bool = True,
) -> Resolved:
    """Return the experiment that a source, options and local files describe together.

    Layers, later wins: defaults, local files, component presets, the run file or run preset,
    ``shortcuts``, ``overrides``. Tables merge key by key; lists replace.

    Args:
        source: a TOML file, a run folder, the name of a run preset, a dict of tables, or nothing.
        overrides: ``key=value`` texts of ``--set``; the value is read as TOML, else as text.
        shortcuts: values of command line options by key path (``model``, ``attack``, ``defense``,
            ``dataset``, ``limit``, ``seed``, ``threat.eps``…); ``None`` means not given.
        cwd: where ``vcr.toml`` and relative paths are looked for; the current folder by default.
        require_available: whether a missing requirement of a component is an error.

    Raises:
        ConfigError: with every problem found, each with its key path.
        IncompatibleComponents: if the components cannot run together.
        ComponentUnavailable: if a component that is named cannot be used here.
    """
    where = cwd or Path.cwd()
    request = Request(read_source(source, "run", where))
    add_outside_settings(request, overrides, shortcuts or {})
    read_local(request, where)
    return resolve_request(request, require_available=require_available)


def read_local(request: Request, cwd: Path) -> None:
    """Read the local files into a request."""
    problems = Problems()
    request.local = local_layers(cwd, problems)
    request.problems += problems.found


def add_outside_settings(
    request: Request, overrides: Sequence[str], shortcuts: Mapping[str, Any]
) -> None:
    """Parse shortcuts and overrides into a request; problems are kept with it."""
    for key, value in shortcuts.items():
        if value is not None:
            path = _PATH_OF.get(key, tuple(key.split(".")))
            request.settings.append(Setting(path, value, OPTION_OF.get(key, f"--{key}")))
    for text in overrides:
        key, equals, value = text.partition("=")
        try:
            if not equals:
                raise ConfigError(f"--set: found {text!r}; allowed: key=value")
            path = parse_key_path(key.strip(), "--set")
            request.settings.append(Setting(path, parse_value(value.strip()), "--set"))
        except ConfigError as error:
            request.problems += error.problems


def resolve_request(request: Request, *, require_available: bool = True) -> Resolved:
    """Return the experiment of a request; see :func:`resolve_run`."""
    asked, problems = asked_tables(request)
    experiment, full = assemble(asked, request.local, problems)
    if problems.found:
        raise ConfigError([*problems.found, *problems.unavailable])
    if experiment is None or problems.unavailable:
        raise ComponentUnavailable("\n".join(problems.unavailable))
    misfits = compat.misfits(experiment)
    if misfits:
        label = request.document.label
        raise IncompatibleComponents("\n".join(f"{label}: {m}" if label else m for m in misfits))
    missing = compat.missing(experiment) if require_available else []
    if missing:
        raise ComponentUnavailable("\n".join(missing))
    document = resolved_document(experiment, full)
    machine = {name: plain(getattr(experiment, name)) for name in LOCAL_TABLES}
    values = dict(Layered({**document, **machine}).leaves())
    return Resolved(
        experiment=experiment,
        provenance={".".join(path): _layer(path, experiment, full) for path in values},
        identity=identity_of(experiment),
        toml=as_run_file(document),
        values={".".join(path): value for path, value in values.items()},
        machine=machine,
        notes=tuple(compat.notes(experiment)),
    )


def asked_tables(request: Request) -> tuple[Layered, Problems]:
    """Return the run file with everything from outside laid over it, and the problems so far."""
    tree = Layered()
    problems = Problems(layer_of=lambda _path: request.document.label)
    tree.merge(normalised(request.document.tables, problems), request.document.label)
    problems.layer_of = tree.nearest_layer
    problems.found[:0] = request.problems
    for setting in request.settings:
        try:
            assign(tree, setting.path, setting.value, setting.layer)
        except ConfigError as error:
            problems.found += [f"{setting.layer}: {text}" for text in error.problems]
    return tree, problems


def _layer(path: KeyPath, experiment: Experiment, full: Layered) -> str:
    is_one = path[0] == "defense" and len(experiment.defenses) == 1
    return full.layer_of(("defense", "0", *path[1:]) if is_one else path)
