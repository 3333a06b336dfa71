"""What a run was made with, as far as its exported videos need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcr_core.config.command_text import LOCAL
from vcr_core.errors import UsageError
from vcr_core.manifest import component_ref

if TYPE_CHECKING:
    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.setup import Parts
    from vcr_core.summary import RunView


def experiment_of(run: RunView) -> Experiment:
    """Return what a run was made with; a missing requirement shows when it is needed.

    Raises:
        ConfigError: if it cannot be resolved here.
        UsageError: if objects from Python took part, which no file describes.
    """
    components = run.manifest.get("components") or ()
    own = [str(c.get("ref")) for c in components if c.get("distribution") == LOCAL]
    if own:
        raise UsageError(
            f"{run.name} was made in Python with objects that cannot be made again from its "
            f"files: {', '.join(own)}; use result.export_videos(folder) where they are"
        )
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.machine import run_document

    return resolve_run(run_document(run.folder), require_available=False).experiment


def refuse_another_source(run: RunView) -> None:
    """Refuse a run whose attack was computed on another model.

    Raises:
        UsageError: naming the run that has the same videos.
    """
    source = component_ref(run.manifest, "source")
    if source:
        raise UsageError(
            f"{run.name} judges videos that were made on {source}, in the frames that {source} "
            f"looks at; export them from the run of the same attack on {source} itself"
        )


def is_exact(experiment: Experiment) -> bool:
    """Return whether 8 bits hold the videos that the model was given."""
    return experiment.protocol.space == "source" and experiment.threat.quantize


def sampling_attack(experiment: Experiment, parts: Parts | None) -> Any:
    """Return the attack where it decides what is sampled, else ``None``."""
    from vcr_core.components import build

    if experiment.attack is None or getattr(experiment.attack.spec, "stage", "") != "plan":
        return None
    given = parts.attack if parts is not None else None
    return given if given is not None else build(experiment.attack)
