"""Every hook of `vcr`, in one file. Component hooks return specs; observers return nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import click

    from vcr_core.specs import (
        AttackSpec,
        DatasetSpec,
        DefenseSpec,
        ExecutorSpec,
        MetricSpec,
        ModelSpec,
        PresetSource,
        ReporterSpec,
    )

hookspec = pluggy.HookspecMarker("vcr")
hookimpl = pluggy.HookimplMarker("vcr")


@hookspec
def vcr_register_models() -> Iterable[ModelSpec]:  # type: ignore[empty-body]
    """Describe the classifiers that this distribution provides. Import nothing heavy."""


@hookspec
def vcr_register_attacks() -> Iterable[AttackSpec]:  # type: ignore[empty-body]
    """Describe the attacks that this distribution provides. Import nothing heavy."""


@hookspec
def vcr_register_defenses() -> Iterable[DefenseSpec]:  # type: ignore[empty-body]
    """Describe the defenses that this distribution provides. Import nothing heavy."""


@hookspec
def vcr_register_metrics() -> Iterable[MetricSpec]:  # type: ignore[empty-body]
    """Describe the metrics that this distribution provides. Import nothing heavy."""


@hookspec
def vcr_register_datasets() -> Iterable[DatasetSpec]:  # type: ignore[empty-body]
    """Describe the datasets that this distribution provides. Import nothing heavy."""


@hookspec
def vcr_register_executors() -> Iterable[ExecutorSpec]:  # type: ignore[empty-body]
    """Describe ways to run shards. Import nothing heavy."""


@hookspec
def vcr_register_reporters() -> Iterable[ReporterSpec]:  # type: ignore[empty-body]
    """Describe ways to show runs. Import nothing heavy."""


@hookspec
def vcr_register_presets() -> Iterable[PresetSource]:  # type: ignore[empty-body]
    """Name packages and folders that hold preset TOML files."""


@hookspec
def vcr_register_commands(cli: click.Group) -> None:
    """Add commands to the ``vcr`` group; called only when the command line is built.

    Args:
        cli: the root command group.
    """


@hookspec
def vcr_run_started(run: Mapping[str, Any]) -> None:
    """Observe that a run starts, in the controlling process.

    Args:
        run: the run's manifest (``run.json``) as read-only data.
    """


@hookspec
def vcr_record_written(run: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Observe a record, in the process that wrote it. An observer cannot change a number.

    Args:
        run: the run's manifest.
        record: the record as written.
    """


@hookspec
def vcr_run_finished(run: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Observe that a run finished, in the controlling process.

    Args:
        run: the run's manifest.
        summary: the derived summary.
    """
