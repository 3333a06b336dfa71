"""Errors a user can meet, each with the exit code its command ends with."""

from __future__ import annotations


class VcrError(Exception):
    """Base of every error that is the user's to act on; printed without a traceback."""

    exit_code: int = 1


class UsageError(VcrError):
    """Wrong usage or configuration: exit code 2."""

    exit_code = 2


class ConfigError(UsageError):
    """One or more problems in a configuration, each with file and key path.

    Args:
        problems: one message per problem, ready to print.
    """

    def __init__(self, problems: list[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class UnknownComponent(UsageError):
    """A name that no installed distribution provides."""


class AmbiguousComponent(UsageError):
    """A bare name that several distributions provide."""


class NotAvailable(VcrError):
    """Something named is not available here: exit code 3."""

    exit_code = 3


class ComponentUnavailable(NotAvailable):
    """A component's requirement, extra, weights or plugin is missing or broken."""


class IncompatibleComponents(UsageError):
    """A combination that cannot run, found from specs before anything loads."""


class ContractViolation(VcrError):
    """A component broke its contract; the message names the component and the rule."""


class ModelChanged(ContractViolation):
    """A component changed the model; what comes after would be measured on another one."""


class NotDifferentiable(VcrError):
    """A gradient was asked of something that has none."""


class StoreError(VcrError):
    """A results folder cannot be used as asked; nothing in it was changed."""


class VideoSkipped(VcrError):
    """A video is left out for a reason that is no failure; the record says why."""


class BudgetExhausted(VcrError):
    """No video of the call has budget left; the best points so far are the answer."""
