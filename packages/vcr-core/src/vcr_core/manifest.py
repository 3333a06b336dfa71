"""``run.json``: what a run is, what it ran with, and how far it came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from vcr_core import EVALUATION_VERSION
from vcr_core.atomic import write_json
from vcr_core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

MANIFEST_SCHEMA = 1
MANIFEST_FILE = "run.json"

RunStatus = Literal["planned", "running", "done", "interrupted", "failed"]
RUN_STATUSES: tuple[RunStatus, ...] = ("planned", "running", "done", "interrupted", "failed")

MANIFEST_FIELDS: dict[str, str] = {
    "schema": "version of this description",
    "run": "run id, the name of the folder",
    "status": "planned, running, done, interrupted or failed",
    "evaluation_version": "version of everything that may alter a number",
    "experiment": "resolved experiment tables, as in resolved.toml",
    "experiment_hash": "hash of the experiment tables and the evaluation version",
    "components": "role, kind, ref, distribution, version, target, params, weights of each; of "
    "attacks that ask nothing also stage, tags and what a corruption says about itself",
    "dataset": "fingerprint (hash of sorted ids and content hashes), label_space, labels, n",
    "seed": "run seed",
    "batches": "the planned cut: lists of video ids",
    "batch_videos": "size of the cut",
    "threads": "CPU threads of every worker; another number may change the last bits",
    "runtime_options": "keys of [runtime] that may change the last bits of every prediction, kept "
    "for good: compile, channels_last",
    "environment": "Python, platform, torch, CUDA, devices, decoder, versions, git",
    "command": "command line that made the run",
    "plugin_failures": "plugins that could not be loaded",
    "flags": "health flags of the run as a whole",
    "started": "start, UTC, ISO 8601",
    "ended": "end, UTC, ISO 8601, or null",
}
"""Every field, in the order in which they are written."""


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC with milliseconds, e.g. ``2026-05-01T10:00:00.000Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_manifest(
    *,
    run: str,
    experiment: Mapping[str, Any],
    experiment_hash: str,
    components: Sequence[Mapping[str, Any]],
    dataset: Mapping[str, Any],
    batches: Sequence[Sequence[str]],
    environment: Mapping[str, Any] | None = None,
    command: Sequence[str] = (),
    plugin_failures: Sequence[Mapping[str, Any]] = (),
    batch_videos: int | None = None,
    threads: int | None = None,
    runtime_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the manifest of a run that is planned now. Fields: :data:`MANIFEST_FIELDS`.

    ``batch_videos`` is what was asked for; without it the largest batch says so.
    """
    largest = max((len(batch) for batch in batches), default=0)
    return {
        "schema": MANIFEST_SCHEMA,
        "run": run,
        "status": "planned",
        "evaluation_version": EVALUATION_VERSION,
        "experiment": dict(experiment),
        "experiment_hash": experiment_hash,
        "components": [dict(component) for component in components],
        "dataset": dict(dataset),
        "seed": experiment.get("seed"),
        "batches": [list(batch) for batch in batches],
        "batch_videos": largest if batch_videos is None else batch_videos,
        "threads": threads,
        "runtime_options": dict(runtime_options or {}),
        "environment": dict(environment or {}),
        "command": list(command),
        "plugin_failures": [dict(failure) for failure in plugin_failures],
        "flags": [],
        "started": utc_now(),
        "ended": None,
    }


def read_manifest(folder: Path | str) -> dict[str, Any]:
    """Return ``run.json`` of a run folder; fields that this version does not know are kept.

    Raises:
        StoreError: if it is missing, damaged, or of a newer schema.
    """
    path = Path(folder) / MANIFEST_FILE
    try:
        data = _parsed(path.read_bytes())
    except FileNotFoundError as error:
        raise StoreError(f"{folder}: not a run folder, it has no {MANIFEST_FILE}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise StoreError(f"{path}: an object is needed, found {type(data).__name__}")
    schema = data.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise StoreError(f"{path}: 'schema' must be a whole number, found {schema!r}")
    if schema > MANIFEST_SCHEMA:
        raise StoreError(
            f"{path}: schema {schema} is newer than this version of vcr-core reads "
            f"({MANIFEST_SCHEMA}); upgrade vcr-core to use this run"
        )
    return data


def _parsed(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        # Slower, takes a little more, and its errors say the line.
        return json.loads(data.decode("utf-8"))


def write_manifest(folder: Path | str, manifest: Mapping[str, Any]) -> None:
    """Replace ``run.json`` of a run folder atomically; known fields come first.

    Raises:
        StoreError: for an unknown status or data that JSON cannot hold; nothing is changed.
    """
    status = manifest.get("status")
    if status not in RUN_STATUSES:
        raise StoreError(f"run status {status!r} is none of {', '.join(RUN_STATUSES)}")
    known = {name: manifest[name] for name in MANIFEST_FIELDS if name in manifest}
    write_json(Path(folder) / MANIFEST_FILE, {**known, **manifest, "schema": MANIFEST_SCHEMA})


def update_manifest(folder: Path | str, **changes: Any) -> dict[str, Any]:
    """Read ``run.json``, replace the given fields, write it back and return it."""
    manifest = {**read_manifest(folder), **changes}
    write_manifest(folder, manifest)
    return manifest


def finish_manifest(folder: Path | str, status: RunStatus, **changes: Any) -> dict[str, Any]:
    """Write how and when a run ended."""
    return update_manifest(folder, status=status, ended=utc_now(), **changes)


def planned_videos(manifest: Mapping[str, Any]) -> list[str]:
    """Return the ids that the run evaluates, in plan order."""
    return [video for batch in manifest.get("batches") or () for video in batch]


def table(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return one table of the resolved experiment, or an empty one."""
    found = (manifest.get("experiment") or {}).get(name)
    return found if isinstance(found, Mapping) else {}


def component_ref(manifest: Mapping[str, Any], role: str) -> str:
    """Return the short reference of a run's dataset, model, source or attack, ``""`` without one.

    Example:
        >>> component_ref({"experiment": {"model": {"name": "vcr-models/x3d.m-k400"}}}, "model")
        'x3d.m-k400'
    """
    return _ref(table(manifest, role))


def attack_name(manifest: Mapping[str, Any]) -> str:
    """Return a run's attack, with the model that it was computed on where that is another one.

    Example:
        >>> tables = {"attack": {"name": "ifgsm"}, "source": {"name": "tiny-r3d"}}
        >>> attack_name({"experiment": tables})
        'ifgsm on tiny-r3d'
    """
    attack, source = component_ref(manifest, "attack"), component_ref(manifest, "source")
    return f"{attack} on {source}" if attack and source else attack


def defense_refs(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the defenses in the order in which they apply; ``identity`` is none."""
    chain = (manifest.get("experiment") or {}).get("defense") or []
    if isinstance(chain, Mapping):
        chain = [chain]
    refs = (_ref(link) for link in chain if isinstance(link, Mapping))
    return tuple(ref for ref in refs if ref and ref != "identity")


def is_targeted(manifest: Mapping[str, Any]) -> bool:
    """Return whether the run's attack aims at a class."""
    return bool(component_ref(manifest, "attack") and table(manifest, "threat").get("targeted"))


def has_own_labels(manifest: Mapping[str, Any]) -> bool:
    """Return whether the run's labels are what the bare model says of the clean videos."""
    return table(manifest, "protocol").get("labels") == "clean-prediction"


def dataset_text(manifest: Mapping[str, Any]) -> str:
    """Return the dataset for tables, with whose labels count where they are not its own.

    Example:
        >>> dataset_text(
        ...     {
        ...         "experiment": {
        ...             "dataset": {"name": "folder"},
        ...             "protocol": {"labels": "clean-prediction"},
        ...         }
        ...     }
        ... )
        'folder (labels: clean predictions)'
    """
    ref = component_ref(manifest, "dataset") or "?"
    return f"{ref} (labels: clean predictions)" if has_own_labels(manifest) else ref


def is_adaptive(manifest: Mapping[str, Any]) -> bool:
    """Return whether the run's attack sees a defense."""
    knows = table(manifest, "protocol").get("attacker_knows_defense", True)
    return bool(component_ref(manifest, "attack") and defense_refs(manifest) and knows)


def _ref(component: Mapping[str, Any]) -> str:
    # Resolved tables qualify names with their distribution; ``components`` keeps that.
    name = str(component.get("name") or "").rpartition("/")[2]
    variant = str(component.get("variant") or "")
    return f"{name}.{variant}" if variant and not name.endswith(f".{variant}") else name
