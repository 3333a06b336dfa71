"""``vcr new-plugin``: a distribution with one working component of each kind."""

from __future__ import annotations

from pathlib import Path

import click

from vcr_core.cli.output import note
from vcr_core.errors import UsageError
from vcr_core.refs import parse_kind
from vcr_core.scaffold import PLUGIN_KINDS, checked_name, write_plugin
from vcr_core.specs import Kind


def _kinds(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[Kind, ...]:
    words = [word for value in values for word in value.split(",") if word.strip()]
    kinds = tuple(dict.fromkeys(parse_kind(word) for word in words))
    other = [kind for kind in kinds if kind not in PLUGIN_KINDS]
    if other:
        raise UsageError(
            f"there is no template for a plugin with a {other[0]} "
            f"(kinds: {', '.join(PLUGIN_KINDS)})"
        )
    return kinds or PLUGIN_KINDS


@click.command(
    "new-plugin", epilog="Example: vcr new-plugin vcr-acme --kind attack,defense --output plugins"
)
@click.argument("name")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    callback=_kinds,
    metavar="KIND[,KIND...]",
    help="Kinds of components: attack, defense, model, metric, dataset; all by default.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder in which the plugin's folder is made; the current one by default.",
)
def command(name: str, kinds: tuple[Kind, ...], output: Path) -> None:
    """Write a plugin distribution called NAME, with one working component of each kind.

    Nothing is overwritten. The paths of the files go to stdout.
    """
    files = write_plugin(name, output, kinds)
    for path in files:
        click.echo(str(path))
    distribution = checked_name(name)
    if not distribution.startswith("vcr-"):
        note(f"plugins are usually called vcr-…, for example vcr-{distribution}")
    folder = output / distribution
    note(f"next: pip install -e '{folder}[test]' && pytest {folder}")
