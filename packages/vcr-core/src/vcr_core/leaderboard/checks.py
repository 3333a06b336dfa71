"""The outcome of checking a run folder, one line a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from vcr_core.errors import StoreError

VERIFICATION_SCHEMA = 1

Outcome: TypeAlias = Literal["passed", "failed", "not possible"]


class Check(Struct, frozen=True, kw_only=True):
    """One check.

    Attributes:
        name: stable id, ``[a-z-]+``.
        outcome: ``passed``, ``failed``, or ``not possible`` where this machine cannot tell.
        detail: what was compared, what differs, or what is missing.
    """

    name: str
    outcome: Outcome
    detail: str


class Verification(Struct, frozen=True, kw_only=True):
    """Every check of one run folder.

    Attributes:
        run: run id.
        content: hash of what the checks are about; a folder with another one is another
            submission (:func:`vcr_core.leaderboard.content.content_of`).
        checks: in the order in which they were made.
        rerun: videos that were evaluated again, 0 if none.
        checked_with: version of vcr-core that made the checks.
    """

    run: str
    content: str
    checks: list[Check]
    rerun: int = 0
    checked_with: str = ""

    @property
    def failed(self) -> list[Check]:
        """The checks that failed."""
        return [check for check in self.checks if check.outcome == "failed"]

    @property
    def impossible(self) -> list[Check]:
        """The checks that this machine could not make."""
        return [check for check in self.checks if check.outcome == "not possible"]

    @property
    def state(self) -> str:
        """``failed``, ``re-run``, ``checked`` where no video was evaluated again, or ``partly``.

        The latter where the identity cannot be computed, as for components that are not installed.
        """
        if self.failed:
            return "failed"
        if any(check.name == "identity" for check in self.impossible):
            return "partly checked"
        return "re-run" if self.rerun else "checked"


class VerificationFile(Struct, frozen=True, kw_only=True):
    """What ``vcr leaderboard verify --json`` prints."""

    runs: list[Verification]
    schema: int = VERIFICATION_SCHEMA


def passed(name: str, detail: str) -> Check:
    """Return a check that passed."""
    return Check(name=name, outcome="passed", detail=detail)


def failed(name: str, detail: str) -> Check:
    """Return a check that failed."""
    return Check(name=name, outcome="failed", detail=detail)


def impossible(name: str, detail: str) -> Check:
    """Return a check that cannot be made here."""
    return Check(name=name, outcome="not possible", detail=detail)


def judged(name: str, problems: list[str], detail: str) -> Check:
    """Return a check that passes with ``detail`` unless there are problems; few are listed."""
    return failed(name, few(problems)) if problems else passed(name, detail)


def few(problems: list[str], limit: int = 3) -> str:
    """Return the first problems on one line, and how many more there are.

    Example:
        >>> few(["a", "b", "c", "d"], 2)
        'a; b; and 2 more'
    """
    shown = "; ".join(problems[:limit])
    more = len(problems) - limit
    return f"{shown}; and {more} more" if more > 0 else shown


def to_plain(verification: Verification) -> dict[str, Any]:
    """Return a verification as JSON has it."""
    plain: dict[str, Any] = msgspec.to_builtins(verification)
    return plain


def read_verifications(paths: list[Path]) -> dict[str, Verification]:
    """Return verifications by content hash, from files that ``verify --json`` wrote.

    Of two with the same hash the one that evaluated more videos again counts, and a failed one
    before all.

    Raises:
        StoreError: naming the file, if it cannot be read or is of a newer schema.
    """
    found: dict[str, Verification] = {}
    for path in paths:
        try:
            file = msgspec.json.decode(path.read_bytes(), type=VerificationFile)
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(
                f"{path}: not what 'vcr leaderboard verify --json' prints: {error}"
            ) from error
        if file.schema > VERIFICATION_SCHEMA:
            raise StoreError(
                f"{path}: schema {file.schema} is newer than this version of vcr-core reads "
                f"({VERIFICATION_SCHEMA}); upgrade vcr-core"
            )
        for one in file.runs:
            known = found.get(one.content)
            if known is None or (bool(one.failed), one.rerun) > (bool(known.failed), known.rerun):
                found[one.content] = one
    return found
