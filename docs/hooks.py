"""Pages that mkdocs generates from the code, so that they cannot drift from it.

``reference/commands.md`` from click, ``configuration.md`` and ``records.md`` from the structs,
``components.md`` from specs, and the tables of checks, rates and flags that other pages include
with ``<!-- generated: NAME -->``.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

_MARK = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that have no file."""
    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace ``<!-- generated: NAME -->`` by the table of that name."""

    def fill(found: re.Match[str]) -> str:
        make = TABLES.get(found[1])
        if make is None:
            raise PluginError(f"no generated table is called {found[1]!r}; see docs/hooks.py")
        return make()

    return _MARK.sub(fill, markdown)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines)


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split()).replace("|", "\\|")


def _code(value: object) -> str:
    return f"`{value}`" if value not in (None, "") else ""


def _words(text: str) -> str:
    """Return text whose brackets, as of a pattern, are not taken for a link."""
    return text.replace("[", "\\[")


# -- commands ----------------------------------------------------------------------------------


def commands_page() -> str:
    """Return the reference of every command, as ``--help`` tells it."""
    from vcr_core.cli.group import COMMANDS, LazyGroup

    group = LazyGroup(name="vcr")
    root = click.Context(group, info_name="vcr")
    parts = [
        "# Commands",
        "Generated from the commands themselves. Data goes to stdout, everything else to stderr. "
        "In a pipe, tables become tab-separated lines. Every command takes `-q`, `-v` and "
        "`--debug`.",
        table(
            ("exit code", "meaning"),
            [
                (0, "done"),
                (1, "finished, but more videos failed than allowed, or a gate failed"),
                (2, "wrong usage or configuration"),
                (3, "something named is not available: plugin, extra, weights"),
                (130, "interrupted; the last line says how to go on"),
            ],
        ),
    ]
    for name in COMMANDS:
        found = _command(group, root, name)
        if found is not None:
            parts.extend(_command_part(found, root, name))
    return "\n\n".join(parts) + "\n"


def _command(group: click.Group, root: click.Context, name: str) -> click.Command | None:
    try:
        return group.get_command(root, name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("vcr_core.cli."):
            return None
        raise


def _command_part(found: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(found, info_name=name, parent=parent)
    level = "##" if parent.parent is None else "###"
    yield f"{level} {context.command_path} {{ #{context.command_path.replace(' ', '-')} }}"
    yield f"```console\n{found.get_help(context)}\n```"
    if isinstance(found, click.Group):
        for child in found.commands:
            yield from _command_part(found.commands[child], context, child)


# -- configuration -----------------------------------------------------------------------------


def configuration_page() -> str:
    """Return every table of a run file with its keys."""
    from vcr_core.config import schema
    from vcr_core.parameters import parameters

    tables: list[tuple[str, type[msgspec.Struct], str]] = [
        ("dataset", schema.DatasetKeys, "All other keys are parameters of the dataset."),
        ("threat", schema.ThreatConfig, ""),
        ("protocol", schema.ProtocolConfig, ""),
        ("metrics", schema.MetricsConfig, "A table of a metric's name holds its parameters."),
        ("prepare", schema.PrepareConfig, "Read for attacks with an offline step only."),
        ("runtime", schema.RuntimeConfig, ""),
        ("executor", schema.ExecutorConfig, "All other keys are parameters of the executor."),
        ("output", schema.OutputConfig, ""),
        ("paths", schema.PathsConfig, ""),
    ]
    parts = [
        "# Configuration",
        _CONFIGURATION,
        "## `schema`, `seed`",
        "`schema` is 1. `seed` (default 42) decides the subset and every random draw.",
        "## `[model]`, `[source]`, `[attack]`, `[defense]`",
        "`name` is a [reference](components.md); all other keys are the component's parameters. "
        "Without `[attack]` a run is clean. `[[defense]]`, written several times, is a chain: the "
        "first one sees the clips first. `[source]` is a model, the one that the attack is "
        "computed on; without it that is `[model]` ([transfer](../guides/transfer.md)).",
    ]
    for name, struct, note in tables:
        keys = parameters(struct)
        parts.append(f"## `[{name}]`")
        parts.append(" ".join(text for text in (_summary(struct), note) if text))
        rows = [(_code(k.name), _words(k.allowed), _default(k), k.description) for k in keys]
        parts.append(table(("key", "allowed", "default", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _summary(struct: type) -> str:
    text = inspect.getdoc(struct) or ""
    first = re.sub(r"^``\[.*?\]``: ", "", text.partition("\n")[0]).replace("``", "`")
    return first[:1].upper() + first[1:]


def _default(key: Any) -> str:
    if key.required:
        return "required"
    if key.default is None:
        return ""
    return _code(json.dumps(key.default, ensure_ascii=False))


_CONFIGURATION = """\
Generated from the structs that check a run file. A run file is TOML; `vcr config show` prints it
with every default, `vcr config explain` says which layer set each key, and
`vcr config schema` prints a JSON Schema for editors.

Layers, later wins: defaults; local files (`config.toml` in the user's configuration folder or in
`VCR_CONFIG_DIR`, then `vcr.toml`, then `vcr.local.toml`); component presets such as `ifgsm.paper`;
the run file; options and `--set KEY=VALUE`. Tables merge key by key, lists replace. Local files may
hold `[paths]`, `[runtime]` and `[executor]` only, so that a machine cannot change what an
experiment means.

`[paths]`, `[runtime]`, `[executor]` and `[output]` are not part of an experiment's identity. All
other tables are: change one and the run gets another folder."""


# -- components --------------------------------------------------------------------------------


def components_page() -> str:
    """Return one section a component: facts and parameters, from specs alone."""
    from vcr_core.plugins import registry
    from vcr_core.specs import KINDS

    parts = [
        "# Components",
        "Generated from the specs of the first-party packages. `vcr list` shows what is installed "
        "where you are, `vcr info REF` one component. A reference is `name`, `name.variant` or "
        "`distribution/name.variant`; commands also take `kind/name`.",
    ]
    for kind in KINDS:
        entries = [e for e in registry().entries(kind) if e.distribution.startswith("vcr-")]
        if entries:
            parts.append(f"## {kind.capitalize()}s")
            parts.extend(part for entry in entries for part in _component(entry))
    return "\n\n".join(parts) + "\n"


def _component(entry: Any) -> Iterator[str]:
    from vcr_core.components import params_type
    from vcr_core.parameters import parameters
    from vcr_core.variants import variants

    spec = entry.spec
    yield f"### {spec.name} {{ #{spec.kind}-{spec.name} }}"
    yield f"{spec.summary}."
    names = variants([entry])[entry]
    facts = [
        ("distribution", entry.distribution),
        *_facts(spec),
        ("variants", ", ".join(_code(n) for n in names)),
        ("requires", ", ".join(_code(r) for r in spec.requires)),
        ("reference", f"<{spec.reference}>" if spec.reference else ""),
        ("licence", spec.license),
    ]
    yield table(("", ""), [(name, value) for name, value in facts if value not in ("", None)])
    keys = parameters(params_type(spec))
    if keys:
        rows = [(_code(k.name), _words(k.allowed), _default(k), k.description) for k in keys]
        yield table(("parameter", "allowed", "default", "meaning"), rows)
    if spec.example:
        yield f"```console\n{spec.example}\n```"


def _facts(spec: Any) -> list[tuple[str, object]]:
    from vcr_core.cli.info import _kind_facts
    from vcr_core.plugins import Entry

    return list(_kind_facts(Entry(spec, "", ""), ""))


# -- records -----------------------------------------------------------------------------------


def records_page() -> str:
    """Return the fields of a record, from the structs of ``vcr_core.record_schema``."""
    from vcr_core import record_schema

    structs = [
        value
        for value in vars(record_schema).values()
        if isinstance(value, type)
        and issubclass(value, msgspec.Struct)
        and value.__module__ == record_schema.__name__
    ]
    structs.sort(key=lambda s: s.__name__ != "Record")
    parts = ["# Records", _RECORDS]
    for struct in structs:
        text = inspect.getdoc(struct) or ""
        parts.append(f"## {struct.__name__}")
        parts.append(text.partition("\n")[0].replace("``", "`"))
        meanings = _attributes(text)
        fields = msgspec.structs.fields(struct)
        parts.append(
            table(
                ("field", "meaning"),
                [(_code(f.encode_name), meanings.get(f.name, "")) for f in fields],
            )
        )
    return "\n\n".join(parts) + "\n"


def _attributes(text: str) -> dict[str, str]:
    """Return the ``Attributes`` section of a Google docstring by name."""
    section = text.partition("Attributes:\n")[2]
    found: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(section).splitlines():
        start = re.match(r"(\w[\w, ]*): (.*)", line)
        if start:
            name = start[1]
            found |= dict.fromkeys(name.split(", "), start[2].replace("``", "`"))
        elif name and line.strip():
            for part in name.split(", "):
                found[part] += " " + line.strip().replace("``", "`")
    return found


_RECORDS = """\
Generated from `vcr_core.record_schema`. A record is one video in one run: one line of JSON in
`records/*.jsonl`, written once. Only `run.json`, `resolved.toml` and `records/` are truth;
`summary.json` and reports are derived and can be deleted.

Later attempts at the same video (`vcr run FOLDER --retry-errors`) append a line with a higher
`attempt`; the last one counts. Fields that do not apply are absent, values that could not be
computed are `null` with a reason. Unknown fields are kept when records are read."""


# -- tables in other pages ---------------------------------------------------------------------


def checks_table() -> str:
    """Return every check of the conformance kit."""
    from vcr_core.testing.catalog import CHECKS

    return table(("check", "what it asserts"), [(_code(c.id), c.claim) for c in CHECKS])


def rates_table() -> str:
    """Return every published rate with its formula."""
    from vcr_core.definitions import DEFINITIONS

    rows = [(_code(d.name), _code(d.formula)) for d in DEFINITIONS.values()]
    return table(("rate", "formula"), rows)


def flags_table() -> str:
    """Return every health flag."""
    from vcr_core.health_text import HEALTH_TEXT

    return table(("flag", "meaning"), [(_code(k), v) for k, v in HEALTH_TEXT.items()])


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/configuration.md": configuration_page,
    "reference/components.md": components_page,
    "reference/records.md": records_page,
}

TABLES: dict[str, Callable[[], str]] = {
    "checks": checks_table,
    "rates": rates_table,
    "flags": flags_table,
}
