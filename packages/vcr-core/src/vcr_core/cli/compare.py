"""``vcr compare``: two runs, or two sweeps, on the same videos."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vcr_core.cli.output import emit_json, is_terminal, json_option, note
from vcr_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.gates import Gate, GateOn
    from vcr_core.reporters.comparison import Compared
    from vcr_core.summary import RunView

GATE_FAILED = 1
FORMATS = ("terminal", "md", "csv", "json")


@click.command("compare")
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Rate, metric or cost to compare; again for more. Default: the usual ones.",
)
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="GATE",
    help="Condition on B against A, as 'robust_accuracy>=-2pp'; again for more. Units: pp (points),"
    " % (of A), x (B divided by A), none (the metric's own). 'overall:' in front: the mean over"
    " all pairs.",
)
@click.option(
    "--gate-on",
    type=click.Choice(["value", "interval"]),
    default="value",
    show_default=True,
    help="What has to meet a gate: the observed change, or all of its 95 % interval.",
)
@click.option("--detect", metavar="POINTS", help="Say how many videos would find, say, 5pp.")
@click.option(
    "--vary",
    multiple=True,
    metavar="AXIS",
    help="In what the runs of a pair differ: model, defense, attack, threat, protocol, seed or"
    " dataset; again for more. Found by itself otherwise.",
)
@click.option(
    "--where-a",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only these runs of A: dataset, model, attack, defense or adaptive, as model=tiny-r3d.",
)
@click.option("--where-b", multiple=True, metavar="KEY=VALUE", help="Only these runs of B.")
@click.option(
    "--allow-missing",
    is_flag=True,
    help="Decide gates though videos of A have no result in B.",
)
@click.option(
    "--across-versions", is_flag=True, help="Compare runs of different evaluation versions."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the bootstrap.")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Default: terminal.")
@json_option
def command(
    a: Path,
    b: Path,
    metrics: tuple[str, ...],
    gates: tuple[str, ...],
    gate_on: GateOn,
    detect: str | None,
    vary: tuple[str, ...],
    where_a: tuple[str, ...],
    where_b: tuple[str, ...],
    allow_missing: bool,
    across_versions: bool,
    seed: int,
    format_: str | None,
    as_json: bool,
) -> int:
    """Compare B with the baseline A, video by video.

    A and B are run folders, or folders of runs: then each run of A is compared with the run of B
    that differs from it in one thing alone, such as the model. Only videos that both evaluated
    count. Exit code 1 means that a gate failed; a gate on a number that is missing has failed.

    \b
    Examples:
      vcr compare results/RUN-A results/RUN-B
      vcr compare old new --gate 'robust_accuracy>=-2pp' --gate 'forwards<=1.1x'
    """  # noqa: D301
    from vcr_core import comparing, quantities
    from vcr_core.gates import check_unit, judge_all, parse_gate, parse_points
    from vcr_core.reporters.comparison import Compared
    from vcr_core.run_pairs import match_runs

    if as_json and format_ not in (None, "json"):
        raise UsageError(f"--json and --format {format_} exclude each other")
    parsed = [parse_gate(text) for text in gates]
    points = None if detect is None else parse_points(detect)
    matching = match_runs(_load(a, where_a), _load(b, where_b), vary=vary)
    runs = [run for pair in matching.pairs for run in (pair.a, pair.b)]
    for gate in parsed:
        check_unit(gate, quantities.kind_of(gate.name, runs))
    names = _names(metrics, parsed, runs, few=len(matching.pairs) > 1)
    comparisons, tests = comparing.adjust([
        comparing.compare_runs(
            pair, names, detect=points, across_versions=across_versions, seed=seed
        )
        for pair in matching.pairs
    ])  # fmt: skip
    overall = comparing.pool(comparisons) if len(comparisons) > 1 else None
    verdicts = judge_all(parsed, comparisons, overall, on=gate_on, allow_missing=allow_missing)
    found = Compared(matching, comparisons, overall, tests, verdicts, gate_on, points, seed)
    _show(found, "json" if as_json else format_ or "terminal")
    return 0 if found.passed else GATE_FAILED


def _load(path: Path, where: Sequence[str]) -> list[RunView]:
    from vcr_core.run_pairs import select
    from vcr_core.summary import find_runs, load_run

    if not path.exists():
        raise UsageError(f"{path}: no such folder")
    folders = find_runs(path)
    if not folders:
        raise UsageError(f"{path}: there is no run in it; a run folder holds a run.json")
    runs = select([load_run(folder) for folder in folders], where)
    if not runs:
        raise UsageError(f"{path}: none of its {len(folders)} runs has {', '.join(where)}")
    for run in runs:
        if not run.records:
            note(f"{run.name} has no records yet and is left out")
    done = [run for run in runs if run.records]
    if not done:
        raise UsageError(f"{path}: no run has records yet")
    return done


def _names(
    metrics: Sequence[str], gates: Sequence[Gate], runs: Sequence[RunView], *, few: bool
) -> list[str]:
    """Return what to compare; what gates are about is always among it."""
    from vcr_core import quantities

    for name in metrics:
        quantities.kind_of(name, runs)
    chosen = metrics or quantities.usual_names(runs, few=few)
    return list(dict.fromkeys([*chosen, *(gate.name for gate in gates)]))


def _show(found: Compared, format_: str) -> None:
    from vcr_core.reporters import comparison, comparison_data

    if format_ == "json":
        emit_json(comparison_data.to_plain(found))
    elif format_ == "md":
        click.echo(comparison.to_markdown(found), nl=False)
    elif format_ == "csv":
        click.echo(comparison_data.to_delimited(found, ","), nl=False)
    elif is_terminal():
        from rich.console import Console

        from vcr_core.reporters.comparison_terminal import draw

        draw(found, Console(file=sys.stdout, highlight=False))
        return
    else:
        click.echo(comparison_data.to_delimited(found, "\t"), nl=False)
    if format_ != "md" and format_ != "json":
        for line in comparison.verdict_lines(found):
            note(line)
    elif not found.passed:
        failed = sum(not verdict.passed for verdict in found.verdicts)
        note(f"{failed} of {len(found.verdicts)} gates failed")
