"""Checks that a run is the experiment that its configuration describes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core import EVALUATION_VERSION
from vcr_core.availability import installed_version
from vcr_core.components import chosen_weights
from vcr_core.config.identity import run_id
from vcr_core.config.resolve import resolve_run
from vcr_core.errors import NotAvailable, UnknownComponent, VcrError
from vcr_core.leaderboard.checks import Check, failed, few, impossible, judged, passed
from vcr_core.leaderboard.content import RESOLVED_FILE
from vcr_core.leaderboard.wording import first_line
from vcr_core.manifest import planned_videos
from vcr_core.plugins import registry
from vcr_core.specs import ModelSpec

if TYPE_CHECKING:
    from vcr_core.config.resolve import Resolved

LOCAL = "local"
"""What ``run.json`` gives as the distribution of an object from Python."""


def check_configuration(folder: Path, manifest: Mapping[str, Any]) -> Check:
    """Check that ``run.json`` holds the tables of ``resolved.toml``, and of no other file."""
    path = folder / RESOLVED_FILE
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return failed("configuration", f"{RESOLVED_FILE} is missing")
    except (OSError, ValueError, RecursionError) as error:
        return failed("configuration", f"{RESOLVED_FILE} cannot be read: {error}")
    said = manifest.get("experiment")
    theirs = dict(_leaves(said if isinstance(said, Mapping) else {}))
    ours = dict(_leaves(tables))
    problems = [
        f"{key} is {ours.get(key, 'absent')!r} in {RESOLVED_FILE} and "
        f"{theirs.get(key, 'absent')!r} in run.json"
        for key in sorted({*ours, *theirs})
        if ours.get(key) != theirs.get(key)
    ]
    seed = manifest.get("seed")
    if seed != tables.get("seed"):
        problems.append(f"seed is {tables.get('seed')!r} in {RESOLVED_FILE}, {seed!r} in run.json")
    return judged("configuration", problems, f"run.json and {RESOLVED_FILE} agree")


def check_identity(
    folder: Path, manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Check:
    """Recompute the hash of the experiment and the run's id from ``resolved.toml``.

    The versions and weights that ``run.json`` names are taken as said; whether they are those
    that are installed here is another check.
    """
    own = [_ref(part) for part in _parts(manifest) if part.get("distribution") == LOCAL]
    if own:
        return impossible("identity", f"objects from Python took part: {', '.join(own)}")
    try:
        resolved = resolve_run(folder / RESOLVED_FILE, require_available=False)
    except (UnknownComponent, NotAvailable) as error:
        return impossible("identity", first_line(error, folder))
    except RecursionError:
        return failed("identity", "no run file: its tables are nested too deeply")
    except VcrError as error:
        differing = _other_versions(manifest)
        if differing:
            return impossible("identity", f"{first_line(error, folder)} ({few(differing)})")
        return failed("identity", f"no run file: {first_line(error, folder)}")
    said = str(manifest.get("experiment_hash"))
    named = {(record["video"], record.get("label")) for record in records}
    labels = {video: label for video, label in named if isinstance(label, int)}
    planned = planned_videos(manifest)
    if all(video in labels for video in planned):
        videos = [(video, labels[video]) for video in planned]
        found = _named(resolved, manifest, videos)
        if found is not None:
            return found
    # Records count in the classes of the model, the hash in those of the dataset.
    try:
        videos = _selected(resolved)
    except VcrError as error:
        return impossible("identity", f"the dataset is needed for it: {first_line(error, folder)}")
    except ModuleNotFoundError as error:
        return impossible("identity", f"the dataset is needed for it, and {error.name}")
    if sorted(video for video, _ in videos) == sorted(planned):
        found = _named(resolved, manifest, videos)
        if found is not None:
            return found
    text = f"{RESOLVED_FILE} and its videos do not give the hash {said[:12]}… of run.json"
    differing = _other_versions(manifest)
    if differing:
        return impossible("identity", f"{text} ({few(differing)})")
    return failed("identity", text)


def check_versions(manifest: Mapping[str, Any]) -> Check:
    """Check that this installation has the components of the run, in the same versions."""
    ours, theirs = EVALUATION_VERSION, manifest.get("evaluation_version")
    problems = [] if ours == theirs else [f"evaluation version {theirs} there, {ours} here"]
    problems += [f"{_ref(part)} is missing here" for part in _parts(manifest) if _is_absent(part)]
    problems += _other_versions(manifest) + _other_weights(manifest)
    if problems:
        return impossible("versions", few(problems, 5))
    count = len(_parts(manifest))
    return passed("versions", f"the same versions of {count} components are installed here")


def _named(
    resolved: Resolved, manifest: Mapping[str, Any], videos: Sequence[tuple[str, int]]
) -> Check | None:
    """Return the check if these videos give the hash that ``run.json`` says, else ``None``."""
    for identity in _candidates(resolved.identity, manifest):
        name, digest = run_id(identity, videos)
        if digest == manifest.get("experiment_hash"):
            said = manifest.get("run")
            if name != said:
                return failed("identity", f"the run's id should be {name!r}, not {said!r}")
            return passed("identity", f"hash {digest[:12]}…")
    return None


def _selected(resolved: Resolved) -> list[tuple[str, int]]:
    from vcr_core.engine.setup import build_dataset
    from vcr_core.engine.subset import select_videos

    return select_videos(resolved.experiment, build_dataset(resolved.experiment))


def _candidates(
    identity: Mapping[str, Any], manifest: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield ``identity`` with the versions and weights that ``run.json`` names.

    First with all keys, then without those that only a later version knows: they have their
    defaults here, and none of them was part of the hash.
    """
    plain = _as_recorded(identity, manifest, drop=False)
    yield plain
    yield _as_recorded(identity, manifest, drop=True)
    without = _as_recorded(identity, manifest, drop=True)
    for name in ("threat", "protocol"):
        known = (manifest.get("experiment") or {}).get(name) or {}
        if without.get(name):
            # TOML has no null, so a key without a value was known all the same.
            without[name] = {k: v for k, v in without[name].items() if k in known or v is None}
    yield without


def _as_recorded(
    identity: Mapping[str, Any], manifest: Mapping[str, Any], *, drop: bool
) -> dict[str, Any]:
    by_role: dict[str, list[Mapping[str, Any]]] = {}
    for part in _parts(manifest):
        by_role.setdefault(str(part.get("role")), []).append(part)

    def of(role: str, found: Mapping[str, Any], position: int = 0) -> dict[str, Any]:
        listed = by_role.get(role, [])
        return _known_then(found, listed[position] if position < len(listed) else {}, drop=drop)

    plain = {**identity, "evaluation_version": manifest.get("evaluation_version")}
    for role in ("dataset", "model", "source", "attack"):
        if plain.get(role):
            plain[role] = of(role, plain[role])
    for role in ("model", "source"):
        for part in by_role.get(role, [])[:1] if plain.get(role) else ():
            plain[role]["weights"] = part.get("weights") or ""
    plain["defense"] = [of("defense", d, i) for i, d in enumerate(plain["defense"])]
    metrics = {_ref(part): part for part in by_role.get("metric", [])}
    plain["metrics"] = [
        _known_then(metric, metrics.get(metric["ref"], {}), drop=drop)
        for metric in plain["metrics"]
    ]
    return plain


def _known_then(found: Mapping[str, Any], part: Mapping[str, Any], *, drop: bool) -> dict[str, Any]:
    """Return a component's identity in the version of the run."""
    version, params = part.get("version", found["version"]), part.get("params")
    if not drop or not isinstance(params, Mapping):
        return {**found, "version": version}
    known = {key: value for key, value in found["params"].items() if key in params}
    return {**found, "version": version, "params": known}


def _parts(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for part in manifest.get("components") or () if isinstance(part, Mapping)]


def _ref(part: Mapping[str, Any]) -> str:
    return str(part.get("ref"))


def _is_absent(part: Mapping[str, Any]) -> bool:
    try:
        registry().find(part["kind"], _ref(part))
    except (VcrError, KeyError):
        return True
    return False


def _other_versions(manifest: Mapping[str, Any]) -> list[str]:
    found = {}
    for part in _parts(manifest):
        name, theirs = str(part.get("distribution")), part.get("version")
        ours = installed_version(name)
        if ours != theirs:
            found[name] = f"{name} {theirs} there, {ours or 'not installed'} here"
    return list(found.values())


def _other_weights(manifest: Mapping[str, Any]) -> list[str]:
    problems = []
    for part in _parts(manifest):
        if part.get("kind") != "model" or not part.get("weights") or _is_absent(part):
            continue
        entry, variant = registry().find("model", _ref(part))
        spec = entry.spec
        weights = chosen_weights(spec, variant) if isinstance(spec, ModelSpec) else None
        ours, theirs = (weights.sha256 if weights else ""), str(part["weights"])
        # A published prefix of a hash is all that some specs have.
        if ours and not theirs.startswith(ours):
            problems.append(f"{_ref(part)}: weights {theirs[:12]}… there, {ours[:12]}… here")
    return problems


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
