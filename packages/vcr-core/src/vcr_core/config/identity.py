"""What makes two runs the same run: the identity, its hash, and the name of the run's folder.

Where things are (``[paths]``, parameters marked as paths), how a machine runs them
(``[runtime]``, ``[executor]``) and what is kept (``[output]``) never count, and neither does a key
that cannot matter: a threat model without an attack, a target of an untargeted attack, what an
offline step is made from where there is none.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from vcr_core import EVALUATION_VERSION
from vcr_core.components import params_type, weights_of
from vcr_core.config.check import plain
from vcr_core.config.wording import is_path, members
from vcr_core.specs import ModelSpec
from vcr_core.weights.places import folders_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vcr_core.config.experiment import Chosen, Experiment

ATTACK_KEYS = frozenset({"stop", "confirm", "confidence", "tie_frames"})
"""Keys of ``[protocol]`` that matter with an attack only."""
ADAPTIVE_KEYS = frozenset({"gradient", "eot"})
"""Keys that matter only to an attack that sees a defense."""
DEFENSE_KEYS = frozenset({"eval_repeats"})
"""Keys that matter with a defense only."""

_PART_LENGTH = 40


def identity_of(experiment: Experiment) -> dict[str, Any]:
    """Return what the hash covers, as plain JSON data, without the ids of the videos."""
    attack = experiment.attack
    identity: dict[str, Any] = {
        "evaluation_version": EVALUATION_VERSION,
        "seed": experiment.seed,
        "dataset": {**_component(experiment.dataset), **_dataset_keys(experiment)},
        "model": _model(experiment.model, experiment),
        "attack": _component(attack) if attack else None,
        "defense": [_defense(defense, experiment) for defense in experiment.defenses],
        "threat": _threat(experiment) if attack else None,
        "protocol": _protocol(experiment),
        "metrics": _metrics(experiment) if attack else [],
    }
    # Absent where the attack is computed on the evaluated model: such runs keep their names.
    if experiment.source is not None:
        identity["source"] = _model(experiment.source, experiment)
    # Absent where nothing is prepared: such runs keep the names that they have.
    if experiment.prepares or experiment.prepared_defenses:
        identity["prepare"] = plain(experiment.prepare)
    return identity


def attack_identity(experiment: Experiment) -> dict[str, Any] | None:
    """Return what determines the adversarial videos of an attack that sees no defense.

    That is the identity without the defenses and without what only judges, of the source model
    where there is one: two runs with the same one attack the same videos in the same way. ``None``
    without an attack, for an attack that knows a defense, and for transforms of what is sampled,
    which come with the decoding.
    """
    attack = experiment.attack
    if attack is None or experiment.adaptive or getattr(attack.spec, "stage", "") != "frames":
        return None
    identity = identity_of(replace(experiment.attack_run, defenses=()))
    return {key: value for key, value in identity.items() if key not in ("defense", "metrics")}


def run_id(identity: Mapping[str, Any], videos: Iterable[tuple[str, int]]) -> tuple[str, str]:
    """Return the run's id and full hash.

    Args:
        identity: :func:`identity_of` of the experiment.
        videos: id and label of every selected video, in any order.

    Returns:
        ``<dataset>-<model>-<attack>-<defense>-<10 hex>``, with ``clean`` and ``nodefense`` for what
        is absent and ``<attack>@<source>`` for an attack on another model, and the whole hash: 64
        hexadecimal digits.
    """
    content = {"run": identity, "videos": sorted([video, int(label)] for video, label in videos)}
    text = json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    digest = hashlib.blake2b(text.encode(), digest_size=32, person=b"vcr-run-v1").hexdigest()
    attack, source = identity["attack"], identity.get("source")
    on = f"@{_slug(source['ref'])}" if source else ""
    parts = [
        _slug(identity["dataset"]["ref"]),
        _slug(identity["model"]["ref"]),
        _slug(attack["ref"]) + on if attack else "clean",
        _slug(*(defense["ref"] for defense in identity["defense"])) or "nodefense",
        digest[:10],
    ]
    return "-".join(parts), digest


def _component(chosen: Chosen) -> dict[str, Any]:
    # A preset is a way to write parameters, and the parameters count; a model's variant is its
    # weights.
    is_model = isinstance(chosen.spec, ModelSpec)
    ref = chosen.qualified if is_model else f"{chosen.distribution}/{chosen.spec.name}"
    struct = params_type(chosen.spec)
    params = _without_paths(struct, chosen.params) if struct else dict(chosen.params)
    return {"ref": ref, "version": chosen.version, "params": params}


def _defense(chosen: Chosen, experiment: Experiment) -> dict[str, Any]:
    struct = params_type(chosen.spec)
    if (
        struct is None
        or not chosen.attack_params
        or not (experiment.attack and experiment.adaptive)
    ):
        return _component(chosen)
    return {
        **_component(chosen),
        "attack_params": _without_paths(struct, chosen.attack_params),
    }


def _without_paths(struct: type[msgspec.Struct], params: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for info in msgspec.structs.fields(struct):
        node = inspect.type_info(info.type)
        if info.encode_name not in params or is_path(node):
            continue
        value = params[info.encode_name]
        inner = [part.cls for part in members(node) if isinstance(part, inspect.StructType)]
        if inner and isinstance(value, dict):
            value = _without_paths(inner[0], value)
        kept[info.encode_name] = value
    return kept


def _model(chosen: Chosen, experiment: Experiment) -> dict[str, Any]:
    weights = weights_of(chosen, folders_of(experiment.paths))
    return {**_component(chosen), "weights": weights.sha256 if weights else ""}


def _dataset_keys(experiment: Experiment) -> dict[str, Any]:
    keys: dict[str, Any] = plain(experiment.dataset_keys)
    del keys["name"]
    subset = keys["subset"]
    # The ids that a subset file lists count; where the file is does not.
    if subset is not None and ("/" in subset or "\\" in subset or "." in subset):
        keys["subset"] = "file"
    return keys


def _threat(experiment: Experiment) -> dict[str, Any]:
    threat: dict[str, Any] = plain(experiment.threat)
    if not threat["targeted"]:
        del threat["target"]
    return threat


def _protocol(experiment: Experiment) -> dict[str, Any]:
    protocol: dict[str, Any] = plain(experiment.protocol)
    unused: set[str] = set()
    if experiment.attack is None:
        unused |= ATTACK_KEYS
    elif experiment.protocol.stop != "confidence":
        unused.add("confidence")
    if not experiment.defenses:
        unused |= DEFENSE_KEYS
    if experiment.attack is None or not experiment.defenses:
        unused.add("attacker_knows_defense")
    if experiment.attack is None or not experiment.adaptive:
        unused |= ADAPTIVE_KEYS
    if experiment.protocol.labels == "dataset":
        # Absent: runs with the dataset's labels keep the names that they have.
        unused.add("labels")
    if experiment.protocol.autocast == "off":
        # Absent likewise.
        unused.add("autocast")
    return {key: value for key, value in protocol.items() if key not in unused}


def _metrics(experiment: Experiment) -> list[dict[str, Any]]:
    return sorted((_component(metric) for metric in experiment.metrics), key=lambda m: m["ref"])


def _slug(*refs: str) -> str:
    names = [re.sub(r"[^a-z0-9.]+", "-", ref.rpartition("/")[2].lower()) for ref in refs]
    return "+".join(names)[:_PART_LENGTH].rstrip("-+.")
