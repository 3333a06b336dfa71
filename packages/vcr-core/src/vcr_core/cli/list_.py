"""``vcr list``: every installed component, from specs and metadata only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from vcr_core.availability import readiness
from vcr_core.cli.options import is_verbose
from vcr_core.cli.output import emit_json, emit_table, json_option, note
from vcr_core.plugins import registry
from vcr_core.refs import parse_kind
from vcr_core.specs import to_plain
from vcr_core.variants import variants

if TYPE_CHECKING:
    from vcr_core.failures import PluginFailure
    from vcr_core.plugins import Entry, Registry


@click.command("list", epilog="Example: vcr list attacks")
@click.argument("kind", required=False)
@json_option
def command(kind: str | None, as_json: bool) -> None:
    """Show every installed component, or those of one KIND.

    KIND is model, attack, defense, metric, dataset, executor or reporter; the plural works too.
    With -v also versions and where distributions are installed. In a pipe the columns are kind,
    name, variants, availability, distribution, summary, separated by tabs.
    """
    wanted = parse_kind(kind) if kind else None
    known = registry()
    entries = known.entries(wanted)
    names = variants(entries)
    if as_json:
        emit_json(
            {
                "schema": 1,
                "components": [_plain(known, entry, names[entry]) for entry in entries],
                "failures": [_plain_failure(failure) for failure in known.failures],
            }
        )
        return
    columns = ["kind", "name", "variants", "availability", "distribution", "summary"]
    rows = [_row(known, entry, names[entry]) for entry in entries]
    rows += [_failure_row(failure) for failure in known.failures]
    if is_verbose():
        columns += ["version", "location"]
        places = [(entry.version, entry.location) for entry in entries]
        places += [(failure.version, failure.location) for failure in known.failures]
        rows = [[*row, *place] for row, place in zip(rows, places, strict=True)]
    emit_table(columns, rows, styles={"name": "bold", "summary": "dim"})
    if not rows:
        note("nothing is installed" + (f" of kind {wanted}" if wanted else ""))


def _row(known: Registry, entry: Entry, names: list[str]) -> list[str]:
    name = entry.qualified if known.ambiguous(entry.kind, entry.name) else entry.name
    return [
        entry.kind,
        name,
        ", ".join(names),
        readiness(entry.spec).text,
        entry.distribution,
        entry.spec.summary,
    ]


def _failure_row(failure: PluginFailure) -> list[str]:
    reason = f"{failure.headline}: {failure.reason}"
    return ["broken", failure.value, "", reason, failure.distribution, "see 'vcr doctor'"]


def _plain(known: Registry, entry: Entry, names: list[str]) -> dict[str, Any]:
    state = readiness(entry.spec)
    return {
        **to_plain(entry.spec),
        "qualified": entry.qualified,
        "ambiguous": known.ambiguous(entry.kind, entry.name),
        "variants": names,
        "available": state.ok,
        "availability": state.text,
        "distribution": entry.distribution,
        "version": entry.version,
        "location": entry.location,
    }


def _plain_failure(failure: PluginFailure) -> dict[str, Any]:
    return {
        "distribution": failure.distribution,
        "version": failure.version,
        "location": failure.location,
        "entry_point": failure.value,
        "stage": failure.stage,
        "error": failure.reason,
    }
