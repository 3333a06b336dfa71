"""What artifact of an offline step an experiment needs, found before anything of it runs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from vcr_core import EVALUATION_VERSION
from vcr_core.artifacts import Artifact, ArtifactDamaged, Wanted, find_artifact
from vcr_core.components import clip_of, weights_of
from vcr_core.config.command_text import LOCAL, command_text
from vcr_core.config.identity import identity_of
from vcr_core.engine.subset import training_videos
from vcr_core.errors import ContractViolation
from vcr_core.folders import cache_folder
from vcr_core.metering import modules_of
from vcr_core.protocols import PreparedDefense
from vcr_core.specs import AttackSpec, ModelSpec
from vcr_core.weights.places import folders_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.adaptive import DefenseLink
    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.setup import Parts
    from vcr_core.protocols import VideoClassifier, VideoDataset


def needs_artifact(experiment: Experiment) -> bool:
    """Return whether a run of this experiment reads an artifact."""
    threat = experiment.threat
    harmless = threat.norm != "none" and threat.eps == 0 and not threat.per_frame_eps
    return experiment.prepares and not harmless


def wanted_artifact(
    experiment: Experiment, dataset: VideoDataset, parts: Parts | None = None
) -> Wanted | None:
    """Return what artifact an experiment needs, ``None`` if it needs none.

    Raises:
        ConfigError: if no training video is left.
    """
    if not needs_artifact(experiment) or experiment.attack is None:
        return None
    training, overlap = training_videos(experiment, dataset)
    identity = identity_of(experiment)
    spec = cast("AttackSpec", experiment.attack.spec)
    threat = {
        key: value
        for key, value in identity["threat"].items()
        if key not in ("max_forwards", "max_backwards", "target")
    }
    made_for: dict[str, Any] = {
        **_common(experiment, identity, training),
        "attack": identity["attack"],
        "threat": {**threat, "classes": _targets(experiment)},
    }
    if spec.access == "transfer":
        # The model under attack is never asked; its classes and its way to sample count.
        model = cast("ModelSpec", experiment.model.spec)
        made_for["model"] = {
            "label_space": model.label_space,
            "clip": asdict(clip_of(experiment.model)),
        }
        stands_for = model.label_space
    else:
        made_for["model"] = {**identity["model"], **_own_weights(experiment, parts)}
        stands_for = experiment.model.ref
        if experiment.adaptive:
            made_for["defense"] = identity["defense"]
            made_for["protocol"]["gradient"] = experiment.protocol.gradient
            made_for["protocol"]["eot"] = experiment.protocol.eot
    return Wanted(
        name=experiment.attack.spec.name,
        model=stands_for,
        made_for=made_for,
        overlap=tuple(overlap),
        root=_root(experiment),
        command=command_text("prepare", experiment),
    )


def wanted_for_defenses(
    experiment: Experiment, dataset: VideoDataset, parts: Parts | None = None
) -> dict[int, Wanted]:
    """Return what artifacts the defenses need, by position in the chain.

    A defense is prepared for the undefended model, whatever attacks it.

    Raises:
        ConfigError: if no training video is left.
    """
    if not experiment.prepared_defenses:
        return {}
    training, overlap = training_videos(experiment, dataset)
    identity = identity_of(experiment)
    threat = {key: getattr(experiment.threat, key) for key in ("norm", "eps")}
    wanted: dict[int, Wanted] = {}
    for position in experiment.prepared_defenses:
        defense = {k: v for k, v in identity["defense"][position].items() if k != "attack_params"}
        wanted[position] = Wanted(
            name=experiment.defenses[position].spec.name,
            model=experiment.model.ref,
            made_for={
                **_common(experiment, identity, training),
                "defense": defense,
                "threat": threat,
                "model": {**identity["model"], **_own_weights(experiment, parts)},
            },
            overlap=tuple(overlap),
            root=_root(experiment),
            command=command_text("prepare", experiment),
            kind="defense",
        )
    return wanted


def restore_defenses(
    experiment: Experiment,
    dataset: VideoDataset,
    chains: Sequence[Sequence[DefenseLink]],
    parts: Parts | None = None,
) -> tuple[Artifact, ...]:
    """Give the defenses what their offline steps left, and return it.

    Args:
        experiment: what names the defenses.
        dataset: the videos.
        chains: built defenses; an instance that stands in several chains is restored once.
        parts: in-memory components.

    Raises:
        ArtifactMissing: with the command that makes it.
        ArtifactDamaged: if its files are not those that were written.
        ContractViolation: if a defense cannot read what it is to be given.
    """
    found = []
    for position, wanted in wanted_for_defenses(experiment, dataset, parts).items():
        artifact = find_artifact(wanted)
        found.append(artifact)
        for defense in {id(c[position].defense): c[position].defense for c in chains}.values():
            if not isinstance(defense, PreparedDefense):
                raise ContractViolation(
                    f"{wanted.owner} says that it prepares, and has no methods 'prepare' and "
                    "'restore'"
                )
            defense.restore(artifact.folder)
    return tuple(found)


def _common(
    experiment: Experiment, identity: Mapping[str, Any], training: Sequence[tuple[str, int]]
) -> dict[str, Any]:
    """Return what determines the artifact of any offline step."""
    autocast = experiment.protocol.autocast
    return {
        "evaluation_version": EVALUATION_VERSION,
        "seed": experiment.seed,
        "dataset": {
            key: value
            for key, value in identity["dataset"].items()
            if key not in ("limit", "subset", "rule")
        },
        "protocol": {
            **{key: getattr(experiment.protocol, key) for key in ("views", "space", "tie_frames")},
            # Absent elsewhere: artifacts for the dataset's labels keep their names.
            **({"labels": experiment.protocol.labels} if experiment.own_labels else {}),
            **({"autocast": autocast} if autocast != "off" else {}),
        },
        "prepare": identity["prepare"],
        "training": [list(video) for video in training],
    }


def _root(experiment: Experiment) -> Path:
    root = Path(experiment.paths.cache) if experiment.paths.cache else cache_folder()
    return root / "artifacts"


def required_artifact(
    experiment: Experiment, dataset: VideoDataset, parts: Parts | None = None
) -> Artifact | None:
    """Return the artifact that a run's attack reads, ``None`` if it reads none.

    Those of the defenses have to be there as well; :func:`restore_defenses` reads them.

    Raises:
        ArtifactMissing: with the command that makes it.
        ArtifactDamaged: if its files are not those that were written, or were made with other
            weights of a surrogate.
    """
    for of_defense in wanted_for_defenses(experiment, dataset, parts).values():
        find_artifact(of_defense)
    if experiment.source is not None:
        own = parts.of_source() if parts is not None else None
        return required_artifact(experiment.attack_run, dataset, own)
    wanted = wanted_artifact(experiment, dataset, parts)
    if wanted is None:
        return None
    artifact = find_artifact(wanted)
    for name, digest in (artifact.manifest.get("surrogates") or {}).items():
        if weights_hash(name, folders_of(experiment.paths)) != digest:
            raise ArtifactDamaged(
                f"the artifact {artifact.folder} was made with other weights of surrogate "
                f"{name!r}; delete the folder and make it again with:\n  {wanted.command}"
            )
    return artifact


def target_classes(experiment: Experiment, classes: int) -> tuple[int, ...] | None:
    """Return the classes that a run may be after, ``None`` if it is untargeted."""
    asked = _targets(experiment)
    if asked is None:
        return None
    return (asked,) if isinstance(asked, int) else tuple(range(classes))


def weights_hash(name: str, folders: Sequence[Path] = ()) -> str:
    """Return the hash of the weights of a model by reference, ``""`` where none is known."""
    from vcr_core.config.objects import choose_component

    weights = weights_of(choose_component("model", name, {}), folders)
    return weights.sha256 if weights else ""


def _targets(experiment: Experiment) -> Any:
    """Return what stands for the classes that the run may be after."""
    threat = experiment.threat
    if not threat.targeted:
        return None
    return threat.target if isinstance(threat.target, int) else "all"


def _own_weights(experiment: Experiment, parts: Parts | None) -> dict[str, str]:
    """Return a hash of the parameters of a model that only Python knows."""
    if parts is None or parts.model is None or experiment.model.distribution != LOCAL:
        return {}
    return {"weights": parameters_digest(parts.model)}


def parameters_digest(model: VideoClassifier) -> str:
    """Return a hash of the parameters, buffers and tensor attributes of a model object."""
    digest = hashlib.sha256()
    tensors = [m.state_dict() for m in modules_of(model)]
    own = {k: v for k, v in vars(model).items() if isinstance(v, torch.Tensor)}
    for state in [*tensors, own]:
        for name, value in sorted(state.items()):
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
