"""Options of every command that takes an experiment: run, sweep, config."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_KEYS = {
    "model": "model",
    "attack": "attack",
    "defense": "defense",
    "dataset": "dataset",
    "limit": "limit",
    "seed": "seed",
    "eps": "threat.eps",
}

_OPTIONS = (
    click.option("--model", metavar="REF", help="Model, as name or name.variant."),
    click.option("--attack", metavar="REF", help="Attack, or none for a clean run."),
    click.option("--defense", metavar="REF", help="Defense, a chain as a+b, or none."),
    click.option("--dataset", metavar="REF", help="Dataset."),
    click.option("--limit", type=click.IntRange(min=1), help="Number of videos."),
    click.option("--seed", type=click.IntRange(min=0), help="Seed of the run."),
    click.option("--eps", metavar="RADIUS", help="Radius of the attack, such as 8/255."),
    click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help="Set any key, such as attack.steps=50; the value is TOML, else text. Repeatable.",
    ),
)


def experiment_options(function: F) -> F:
    """Add the options that say what to run.

    The function gets ``shortcuts``, the options given by key path, and ``overrides``, the texts of
    ``--set``: both as :func:`vcr_core.config.resolve.resolve_run` takes them.
    """

    @functools.wraps(function)
    def collect(*args: Any, **options: Any) -> Any:
        given = {key: options.pop(name) for name, key in _KEYS.items()}
        shortcuts = {key: value for key, value in given.items() if value is not None}
        return function(*args, shortcuts=shortcuts, **options)

    command: Callable[..., Any] = collect
    for option in reversed(_OPTIONS):
        command = option(command)
    return cast("F", command)


def worker_overrides(workers: int | None) -> list[str]:
    """Return what ``--workers`` sets: that many worker processes, or nothing if not given."""
    if workers is None:
        return []
    return ['executor.name="process"', f"executor.workers={workers}"]
