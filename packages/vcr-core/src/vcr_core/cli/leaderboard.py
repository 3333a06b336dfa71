"""``vcr leaderboard``: a static site from run folders, and the checks of a submission."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vcr_core.cli.output import emit_json, emit_table, json_option, note
from vcr_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vcr_core.leaderboard.checks import Verification
    from vcr_core.leaderboard.submissions import LeftOut

NOT_AVAILABLE = 3


@click.group("leaderboard", epilog="Example: vcr leaderboard build results --output site")
def command() -> None:
    """Make a site from runs, and check submissions.

    A submission is a run folder: run.json, resolved.toml and records/.
    """


@command.command(
    "build",
    short_help="Make a static site of runs.",
    epilog="Example: vcr leaderboard build results --output site",
)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option(
    "--output", required=True, type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the site; a site that is there is replaced.",
)  # fmt: skip
@click.option("--title", help="Heading of the site.  [default: Robustness leaderboard]")
@click.option(
    "--max-errors", type=click.FloatRange(0, 1), default=0.05, show_default=True, metavar="SHARE",
    help="Largest share of videos without a result that a run may have.",
)  # fmt: skip
@click.option("--exclude-flag", "flags", multiple=True, metavar="FLAG",
              help="Leave out runs with this health flag; may be repeated.")  # fmt: skip
@click.option(
    "--verified", multiple=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="What 'vcr leaderboard verify --json' printed; may be repeated.",
)  # fmt: skip
@click.option("--only-verified", is_flag=True, help="Leave out runs that no such file is about.")
@click.option("--stamp", is_flag=True, help="Say on the pages when the site was made.")
@json_option
def build(
    paths: tuple[Path, ...],
    output: Path,
    title: str | None,
    max_errors: float,
    flags: tuple[str, ...],
    verified: tuple[Path, ...],
    only_verified: bool,
    stamp: bool,
    as_json: bool,
) -> None:
    """Make a static site of all runs below PATH: plain files for any web server, or none.

    Every number is computed from the records. Runs that are unfinished, fail a check or have too
    many errors are left out and listed with the reason. The same runs give the same files.
    """
    from vcr_core.leaderboard.build import TITLE, build_site
    from vcr_core.leaderboard.checks import read_verifications
    from vcr_core.leaderboard.submissions import Rules
    from vcr_core.manifest import utc_now

    _check_paths(paths)
    if only_verified and not verified:
        raise UsageError("--only-verified needs --verified FILE")
    rules = Rules(
        max_errors=max_errors,
        exclude_flags=frozenset(flags),
        verified=read_verifications(list(verified)),
        only_verified=only_verified,
    )
    site = build_site(
        paths, output, rules, title=title or TITLE, built=utc_now() if stamp else None
    )
    if as_json:
        emit_json({
            "schema": 1, "site": str(site.folder), "entries": site.entries,
            "rankings": site.rankings, "files": site.files, "left_out": _plain(site.left_out),
        })  # fmt: skip
        return
    click.echo(str(site.folder / "index.html"))
    note(f"{site.entries} runs in {site.rankings} rankings, {len(site.left_out)} left out")
    for one in site.left_out:
        note(f"left out: {one.folder}: {'; '.join(one.reasons)}")


@command.command(
    "verify",
    short_help="Check run folders before they are taken.",
    epilog="Example: vcr leaderboard verify results/RUN-ID --rerun 3",
)
@click.argument("paths", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--rerun", type=click.IntRange(min=0), default=0, metavar="K",
    help="Evaluate at least K videos of every run again, whole batches at a time.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Takes other videos.")
@click.option("--device", default="", help="Where to evaluate them; as configured by default.")
@json_option
@click.pass_context
def verify(
    ctx: click.Context,
    paths: tuple[Path, ...],
    rerun: int,
    seed: int,
    device: str,
    as_json: bool,
) -> None:
    """Check run folders: identity, records, numbers, threat model; nothing is changed.

    RUN is a run folder or a folder that contains some. In a pipe the columns are run, check,
    outcome (passed, failed, not possible) and detail. The exit code is 1 if a check failed, and 3
    if videos were to be evaluated again and cannot be here.
    """
    from vcr_core.leaderboard.checks import VERIFICATION_SCHEMA, to_plain

    found = list(_verified(paths, rerun, seed, device))
    if as_json:
        emit_json({"runs": [to_plain(one) for one in found], "schema": VERIFICATION_SCHEMA})
    else:
        rows = [
            (one.run, check.name, check.outcome, check.detail)
            for one in found
            for check in one.checks
        ]
        emit_table(("run", "check", "outcome", "detail"), rows, styles={"run": "bold"})
        failures = sum(bool(one.failed) for one in found)
        note(f"{len(found)} runs checked, {failures} with a failed check")
    if any(one.failed for one in found):
        ctx.exit(1)
    if rerun and any(not one.rerun for one in found):
        ctx.exit(NOT_AVAILABLE)


def _verified(paths: Sequence[Path], rerun: int, seed: int, device: str) -> Iterator[Verification]:
    from vcr_core.leaderboard.verify import verify_run
    from vcr_core.loading import quiet_stdout
    from vcr_core.summary import find_runs

    _check_paths(paths)
    folders = dict.fromkeys(folder for path in paths for folder in find_runs(path))
    if not folders:
        raise UsageError(f"{paths[0]}: there is no run in it; a run folder holds a run.json")
    for folder in folders:
        with quiet_stdout():
            found = verify_run(folder, rerun=rerun, seed=seed, device=device)
        yield found


def _check_paths(paths: Sequence[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such folder")


def _plain(left_out: Sequence[LeftOut]) -> list[dict[str, object]]:
    return [
        {"run": one.run, "folder": one.folder, "reasons": list(one.reasons)} for one in left_out
    ]
