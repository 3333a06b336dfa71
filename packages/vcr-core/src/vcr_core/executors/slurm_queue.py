"""Asking Slurm which jobs it still has, and taking jobs back."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterable

logger = logging.getLogger(__name__)

ANSWER_S = 60.0


class SlurmQueue:
    """The user's jobs, as ``squeue`` tells: no accounting is needed.

    Attributes:
        silent: whether the last question went unanswered, as while a controller restarts.
    """

    def __init__(self) -> None:
        self.silent = False

    def jobs(self) -> dict[str, str] | None:
        """Return the states of the jobs that Slurm has by id; ``None`` if it does not answer.

        A task of an array has the id ``<job>_<task>``.
        """
        command = ["squeue", "--me", "--array", "--noheader", "--format=%i|%T"]
        try:
            answer = subprocess.run(
                command, capture_output=True, text=True, timeout=ANSWER_S, check=True
            )
        except (subprocess.SubprocessError, OSError) as error:
            if not self.silent:
                logger.warning("Slurm does not answer (%s); jobs are waited for", _words(error))
            self.silent = True
            return None
        if self.silent:
            logger.warning("Slurm answers again")
        self.silent = False
        lines = (line.strip().partition("|") for line in answer.stdout.splitlines())
        return {job: state for job, _, state in lines if state}

    def ask_to_stop(self, jobs: Iterable[str]) -> None:
        """Take waiting jobs back, and ask running ones to finish the batch in hand."""
        names = list(jobs)
        if names:
            self._cancel(["--state=PENDING", *names])
            self._cancel(["--signal=TERM", *names])

    def cancel(self, jobs: Iterable[str]) -> None:
        """End jobs now."""
        names = list(jobs)
        if names:
            self._cancel(names)

    def _cancel(self, arguments: list[str]) -> None:
        command = ["scancel", "--quiet", *arguments]
        try:
            # It also fails for jobs that have just ended.
            subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
        except (subprocess.SubprocessError, OSError) as error:
            logger.warning("scancel %s failed: %s", " ".join(arguments), _words(error))


def _words(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return str(said).strip().partition("\n")[0]
