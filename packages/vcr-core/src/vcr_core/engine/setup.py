"""Everything a shard needs, built once from a resolved experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import torch

from vcr_core.components import build
from vcr_core.datasets.labels import UNKNOWN, UNLABELLED
from vcr_core.engine.artifact import required_artifact, restore_defenses
from vcr_core.engine.defending import build_links, defended_model
from vcr_core.engine.memory import keep_freed_memory
from vcr_core.engine.model_shelf import ModelShelf
from vcr_core.engine.models import guarded_model
from vcr_core.engine.surrogates import SurrogatePool
from vcr_core.errors import ComponentUnavailable, ConfigError, ModelChanged, UsageError
from vcr_core.image_models import ImagePool
from vcr_core.specs import AttackSpec, MetricSpec
from vcr_core.threat import ThreatModel, frame_positions
from vcr_core.victim import Rules
from vcr_core.weights.places import default_folder, folders_of

if TYPE_CHECKING:
    from pathlib import Path

    from vcr_core.adaptive import DefenseLink
    from vcr_core.artifacts import Artifact
    from vcr_core.config.experiment import Chosen, Experiment
    from vcr_core.engine.reuse import Reuse
    from vcr_core.metering import GuardedModel
    from vcr_core.protocols import Attack, Defense, Metric, VideoClassifier, VideoDataset


@dataclass(slots=True)
class Parts:
    """In-memory components that stand in for those an experiment names (Python API)."""

    model: VideoClassifier | None = None
    attack: Attack | None = None
    defenses: Sequence[Defense] | None = None
    metrics: Sequence[Metric] | None = None
    dataset: VideoDataset | None = None
    source: VideoClassifier | None = None

    def of_source(self) -> Parts:
        """Return those that take part in an attack on the source model."""
        return Parts(
            model=self.source, attack=self.attack, metrics=self.metrics, dataset=self.dataset
        )


@dataclass(slots=True)
class Setup:
    """Built components of one experiment.

    Attributes:
        experiment: what was asked.
        model: the classifier behind a guard that sees unmetered calls.
        dataset: the videos.
        label_map: index in the dataset's label space to index in the model's; ``UNKNOWN`` where
            the clean prediction is to be the label.
        attack: the attack or ``None``.
        links: the defense chain.
        attack_links: the chain that an adaptive attack sees.
        defended: the classifier behind the chain; ``model`` unless a defense replaces it.
        metrics: reference, keys and component of each metric.
        threat: the threat model; frame counts are resolved per video group.
        rules: budgets and stop rule.
        device: where tensors live.
        probabilities: whether the model was seen to give probabilities instead of logits.
        is_own_model: whether the model is an object from Python.
        images: image networks for attacks.
        surrogates: models for attacks with access ``transfer``.
        artifact: what the attack's offline step left.
        defense_artifacts: what the defenses' offline steps left.
        reuse: what is taken over from other runs and kept for them.
        shelf: the loaded models.
        source: the white-box contest in which the videos are attacked, where that is not the one
            on the evaluated model.
    """

    experiment: Experiment
    model: GuardedModel
    dataset: VideoDataset
    label_map: Sequence[int]
    attack: Attack | None
    links: tuple[DefenseLink, ...]
    attack_links: tuple[DefenseLink, ...]
    defended: GuardedModel
    metrics: tuple[tuple[str, tuple[str, ...], Metric], ...]
    device: torch.device
    images: ImagePool
    rules: Rules = field(default_factory=Rules)
    probabilities: bool | None = None
    is_own_model: bool = False
    surrogates: SurrogatePool | None = None
    artifact: Artifact | None = None
    defense_artifacts: tuple[Artifact, ...] = ()
    reuse: Reuse | None = None
    shelf: ModelShelf = field(default_factory=ModelShelf)
    source: Setup | None = None

    def replace_model(self) -> None:
        """Build the model that a component works on anew after something changed it.

        Raises:
            ModelChanged: if the model is an object from Python, which cannot be built again.
        """
        if self.source is not None:
            self.source.replace_model()
            return
        if self.is_own_model:
            raise ModelChanged(
                "the model that was given from Python has been changed by a component; nothing "
                "after this would be measured on the same model"
            )
        self.shelf.clear()
        again = self.shelf.model(self.experiment.model, folders_of(self.experiment.paths))
        self.model.model = guarded_model(again, self.experiment, self.device).model
        self.defended = defended_model(self.experiment, self.links, self.model, self.device)

    @property
    def models(self) -> tuple[GuardedModel, ...]:
        """The classifiers that a contest asks: one, or two where a defense replaces the model."""
        same = self.defended is self.model
        return (self.model,) if same else (self.model, self.defended)

    @property
    def stage(self) -> str:
        """Where the attack acts: ``frames``, ``source`` or ``plan``."""
        attack = self.experiment.attack
        return cast("AttackSpec", attack.spec).stage if attack is not None else "frames"

    def threat(self, frames: int) -> ThreatModel:
        """Return the threat model for videos of this many frames."""
        asked = self.experiment.threat
        return ThreatModel(
            norm=asked.norm,
            eps=asked.eps,
            frames=frame_positions(asked.frames, frames),
            per_frame_eps=tuple(asked.per_frame_eps) if asked.per_frame_eps else None,
            region=cast("Any", tuple(asked.region)) if asked.region else None,
            quantize=asked.quantize,
        )


def build_setup(
    experiment: Experiment,
    parts: Parts | None = None,
    *,
    prepared: bool = True,
    restored: bool = True,
    shelf: ModelShelf | None = None,
) -> Setup:
    """Import and construct what the experiment names; ``parts`` take precedence.

    Args:
        experiment: what to build.
        parts: in-memory components.
        prepared: whether an attack with an offline step must find its artifact.
        restored: whether defenses with an offline step must find theirs.
        shelf: models that are loaded already.

    Raises:
        ArtifactMissing: if an offline step has not been run for this experiment.
        ComponentUnavailable: if something cannot be built here.
        ConfigError: if labels of dataset and model do not meet.
    """
    from vcr_core.engine.transfer import target_classes

    parts = parts or Parts()
    device = choose_device(experiment.runtime.device)
    if device.type == "cpu":
        keep_freed_memory()
    dataset = parts.dataset if parts.dataset is not None else build_dataset(experiment)
    folders = folders_of(experiment.paths)
    shelf = shelf or ModelShelf()
    source = None
    if experiment.source is not None:
        own = replace(parts.of_source(), dataset=dataset)
        source = build_setup(experiment.attack_run, own, prepared=prepared, shelf=shelf)
    artifact = required_artifact(experiment, dataset, parts) if prepared else None
    model = parts.model if parts.model is not None else shelf.model(experiment.model, folders)
    guarded = guarded_model(model, experiment, device)
    links, attack_links = build_links(experiment, parts.defenses)
    defense_artifacts: tuple[Artifact, ...] = ()
    if restored:
        defense_artifacts = restore_defenses(experiment, dataset, (links, attack_links), parts)
    attack = parts.attack if source is None else source.attack
    if attack is None and experiment.attack is not None:
        attack = build(experiment.attack)
    images = ImagePool(device, (*folders, default_folder()))
    for name in getattr(attack, "image_models", ()) if source is None else ():
        images.model(name)  # what is missing ends a run before its first video
    setup = Setup(
        experiment=experiment,
        model=guarded,
        dataset=dataset,
        label_map=match_labels(dataset, guarded, experiment),
        attack=attack,
        links=links,
        attack_links=attack_links,
        defended=defended_model(experiment, links, guarded, device),
        metrics=_metrics(experiment, parts, folders),
        device=device,
        images=images,
        rules=_rules(experiment),
        is_own_model=parts.model is not None,
        surrogates=SurrogatePool(guarded.labels, device, experiment.protocol, folders),
        artifact=artifact,
        defense_artifacts=defense_artifacts,
        shelf=shelf,
        source=source,
    )
    if source is not None:
        target_classes(setup, source)  # what does not fit ends a run before its first video
    return setup


def build_dataset(experiment: Experiment) -> VideoDataset:
    """Build the dataset, with roots from ``[paths.datasets]`` where the run gives none."""
    chosen = experiment.dataset
    params = rooted(chosen.spec.name, chosen.params, experiment.paths.datasets)
    dataset: VideoDataset = build(replace(chosen, params=params))
    return dataset


def rooted(name: str, params: Mapping[str, Any], roots: Mapping[str, str]) -> dict[str, Any]:
    """Return a dataset's parameters with its root filled in, and that of a dataset it wraps.

    Args:
        name: name or reference of the dataset.
        params: its parameters; ``base``, where it is there, is a reference or a table of one with
            its ``name`` and parameters.
        roots: folders by dataset.
    """
    filled = dict(params)
    root = roots.get(name.rpartition("/")[2].partition(".")[0])
    if root is not None and filled.get("root") in (None, ""):
        filled["root"] = root
    base = filled.get("base")
    table = {"name": base} if isinstance(base, str) else base
    if isinstance(table, dict) and isinstance(table.get("name"), str):
        found = rooted(table["name"], table, roots)
        filled["base"] = base if found == table else found
    return filled


def choose_device(asked: str) -> torch.device:
    """Return the device; ``auto`` takes the first GPU, else the CPU.

    Raises:
        UsageError: for a device that is not here.
    """
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
    except RuntimeError as error:
        raise UsageError(
            f"runtime.device = {asked!r} is no device; use 'auto', 'cpu' or 'cuda:0'"
        ) from error
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise ComponentUnavailable(
                f"runtime.device = {asked!r}: this machine shows {count} CUDA devices"
            )
    return device


def match_labels(
    dataset: VideoDataset, model: VideoClassifier | GuardedModel, experiment: Experiment
) -> list[int]:
    """Return the model's class index of each dataset class, matched by name.

    Where the labels are the clean predictions, every index is ``UNKNOWN`` until there is one.

    Raises:
        ConfigError: listing the dataset's classes that the model does not know, or if the dataset
            has none.
    """
    ours, theirs = dataset.labels, model.labels
    if experiment.own_labels:
        return [UNKNOWN] * len(ours)
    if ours == UNLABELLED:
        raise ConfigError(
            f"dataset {experiment.dataset.ref!r} has no labels: its videos lie in no folder of a "
            "class; set protocol.labels = 'clean-prediction' to ask whether an attack changes what "
            "the model says of each clean video, or sort the videos into one folder per class"
        )
    if ours.names == theirs.names:
        return list(range(len(ours)))
    from vcr_core.datasets import labels

    try:
        index = labels.match_labels(ours.names, theirs.names, f"dataset {experiment.dataset.ref!r}")
    except ConfigError as error:
        some = ", ".join(theirs.names[:8]) + (", …" if len(theirs.names) > 8 else "")
        raise ConfigError(
            f"{error}\n"
            f"  the {len(theirs.names)} classes of model {experiment.model.ref!r}: {some}\n"
            "  rename the classes, name the videos to use in a subset manifest, or use a model "
            "that was trained on these classes"
        ) from error
    return [index[name] for name in ours.names]


def _metrics(
    experiment: Experiment, parts: Parts, folders: Sequence[Path]
) -> tuple[tuple[str, tuple[str, ...], Metric], ...]:
    built = parts.metrics or [build(chosen, folders) for chosen in experiment.metrics]
    return tuple(
        (chosen.ref, metric_keys(chosen), metric)
        for chosen, metric in zip(experiment.metrics, built, strict=True)
    )


def metric_keys(chosen: Chosen) -> tuple[str, ...]:
    """Return the keys a metric reports under."""
    spec = cast("MetricSpec", chosen.spec)
    return spec.keys or (spec.name,)


def _rules(experiment: Experiment) -> Rules:
    protocol, threat = experiment.protocol, experiment.threat
    if experiment.attack is None:
        return Rules(access="none")
    return Rules(
        access=cast("AttackSpec", experiment.attack.spec).access,
        stop=protocol.stop,
        confidence=protocol.confidence,
        confirm=protocol.confirm,
        # Without a defense in its view there is nothing to average over.
        eot=protocol.eot if experiment.adaptive else 1,
        max_forwards=threat.max_forwards,
        max_backwards=threat.max_backwards,
    )
