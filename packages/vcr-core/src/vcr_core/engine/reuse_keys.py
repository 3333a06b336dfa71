"""Keys of what runs leave for each other: everything that may change a bit of it."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vcr_core import EVALUATION_VERSION
from vcr_core.atomic import to_json
from vcr_core.availability import installed_version
from vcr_core.config.command_text import LOCAL
from vcr_core.config.identity import attack_identity, identity_of
from vcr_core.engine.artifact import parameters_digest
from vcr_core.engine.models import passes_of
from vcr_core.plugins import registry
from vcr_core.reuse_store import Shelf

if TYPE_CHECKING:
    from vcr_core.config.experiment import Chosen
    from vcr_core.engine.decode import Decoded
    from vcr_core.engine.setup import Parts, Setup

LIBRARIES = ("torch", "numpy")
_SAMPLING = ("frames", "stride", "clips", "light_clips", "policy", "end", "reduce_to")
"""Fields of a clip specification that decide which frames are taken."""
CORE = "vcr_core"
ASIDE = frozenset({"cli", "executors", "reporters", "testing"})
"""Parts of the core that no number passes through."""


def group_key(videos: Sequence[Decoded], chunk: int | None) -> str:
    """Return a hash of a group: content, ids and labels in their order, and the chunk."""
    digest = hashlib.blake2b(digest_size=20, person=b"vcr-reuse-v1")
    for video in videos:
        frames = video.frames.contiguous()
        facts = [video.id, video.label, list(frames.shape), list(video.gather.shape),
                 str(video.fps), chunk]  # fmt: skip
        digest.update(to_json(facts).encode())
        digest.update(frames.numpy().data)
        digest.update(video.gather.contiguous().numpy().data)
    return digest.hexdigest()


class Shelves:
    """Names the shelves of an experiment by everything that its groups have in common.

    Args:
        setup: built components.
        parts: in-memory components.
        threads: CPU threads that are in use.
    """

    def __init__(self, setup: Setup, parts: Parts | None, threads: int) -> None:
        self._setup = setup
        self._experiment = setup.experiment
        own = parts.model if parts is not None else None
        self._common = {
            "evaluation_version": EVALUATION_VERSION,
            "machine": _machine(setup.device, threads),
            "deterministic": self._experiment.runtime.deterministic,
            "passes": passes_of(self._experiment),
            "weights": parameters_digest(own) if own is not None else None,
        }

    def frames(self) -> Shelf | None:
        """Return the shelf of decoded frames; ``None`` for videos that are drawn, not decoded."""
        experiment, clip = self._experiment, self._setup.model.clip
        dataset = experiment.dataset
        if dataset.distribution == LOCAL or getattr(dataset.spec, "generated", False):
            return None
        identity = identity_of(experiment)["dataset"]
        way = {
            "evaluation_version": EVALUATION_VERSION,
            "dataset": {key: identity[key] for key in ("ref", "version", "params")},
            "sampling": {name: getattr(clip, name) for name in _SAMPLING},
            "views": experiment.protocol.views,
            "machine": self._common["machine"],
            "decoder": installed_version("av"),
            "code": _code([dataset]),
        }
        return _shelf("frames", way, {"dataset": dataset.ref, "model": experiment.model.ref})

    def predictions(self) -> Shelf:
        """Return the shelf of predictions of the bare model on clean videos."""
        experiment = self._experiment
        model = experiment.model
        way = {
            **self._common,
            "seed": experiment.seed,
            "model": identity_of(experiment)["model"],
            "code": _code([model]),
        }
        return _shelf("predictions", way, {"model": model.ref})

    def attack(self) -> Shelf | None:
        """Return the shelf of the attack; ``None`` without one, or if it knows a defense."""
        attack = self._experiment.attack
        way = self._attack_way()
        if way is None or attack is None:
            return None
        return _shelf("attack", way, {"model": self._experiment.model.ref, "attack": attack.ref})

    def metrics(self) -> Shelf | None:
        """Return the shelf of readings of that attack's videos, ``None`` if there is none."""
        experiment, way = self._experiment, self._attack_way()
        chosen = experiment.metrics
        if not chosen or way is None or any(metric.distribution == LOCAL for metric in chosen):
            return None
        way["metrics"] = identity_of(experiment)["metrics"]
        way["metrics_code"] = _code(chosen)
        about = {"model": experiment.model.ref, "metrics": [metric.ref for metric in chosen]}
        return _shelf("metrics", way, about)

    def _attack_way(self) -> dict[str, Any] | None:
        experiment = self._experiment
        identity = attack_identity(experiment)
        if identity is None or experiment.attack is None:
            return None
        # Which videos there are besides those of a group cannot matter.
        del identity["dataset"]
        used = [experiment.model, experiment.attack]
        artifact = self._setup.artifact
        return {
            **self._common,
            "identity": identity,
            "artifact": artifact.sha256 if artifact else None,
            "code": _code(used, models=getattr(experiment.attack.spec, "access", "") == "transfer"),
        }


def _shelf(kind: str, way: Mapping[str, Any], about: Mapping[str, Any]) -> Shelf:
    text = to_json(_sorted(way))
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"vcr-reuse-v1").hexdigest()
    return Shelf(f"{kind}-{digest}", {"schema": 1, "kind": kind, **about})


def _sorted(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _sorted(data[key]) for key in sorted(data)}
    return [_sorted(part) for part in data] if isinstance(data, list | tuple) else data


def _machine(device: torch.device, threads: int) -> dict[str, Any]:
    """Return what may change the last bits besides the experiment."""
    is_cuda = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if is_cuda else device.type,
        "cuda": torch.version.cuda if is_cuda else None,
        "processor": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": threads,
        **{name: installed_version(name) for name in LIBRARIES},
    }


def _code(components: Sequence[Chosen], *, models: bool = False) -> dict[str, str]:
    """Return versions and source digests of the packages that components come from.

    The digests tell apart what versions do not: a package that somebody is working on.

    Args:
        components: what is used.
        models: whether any registered model may be used as well, as a surrogate.
    """
    specs = [chosen.spec for chosen in components]
    found = {chosen.distribution: chosen.version for chosen in components}
    if models:
        entries = registry().entries("model")
        specs += [entry.spec for entry in entries]
        found |= {entry.distribution: entry.version for entry in entries}
    for spec in specs:
        module = spec.target.partition(":")[0]
        root = module.partition(".")[0]
        # The core's own components lie in parts of it that are left out below.
        place = module if root == CORE else root
        found[f"source of {place}"] = _source_digest(place)
    found[f"source of {CORE}"] = _source_digest(CORE)
    for spec in specs:
        for requirement in spec.requires:
            library = _distribution_name(requirement)
            found[library] = installed_version(library) or ""
    return found


@cache
def _source_digest(name: str) -> str:
    """Return a hash of the files of a package or a module, ``""`` where there are none.

    Code counts by its content, data that lies beside it by size and time.
    """
    found = importlib.util.find_spec(name)
    if found is None:
        return ""
    digest = hashlib.blake2b(digest_size=16)
    roots = [Path(place) for place in found.submodule_search_locations or ()]
    files = [(path.relative_to(root), path) for root in roots for path in sorted(root.rglob("*"))]
    if not roots and found.origin:
        files = [(Path(Path(found.origin).name), Path(found.origin))]
    for relative, path in files:
        is_aside = name == CORE and relative.parts[0] in ASIDE
        if is_aside or "__pycache__" in relative.parts or not path.is_file():
            continue
        digest.update(relative.as_posix().encode() + b"\0")
        if path.suffix == ".py":
            digest.update(path.read_bytes())
        else:
            facts = path.stat()
            digest.update(f"{facts.st_size} {facts.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _distribution_name(requirement: str) -> str:
    kept = 0
    while kept < len(requirement) and (requirement[kept].isalnum() or requirement[kept] in "-_."):
        kept += 1
    return requirement[:kept]
