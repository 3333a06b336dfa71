"""What a run says about damage that nobody optimised: its nature, its suites, its fingerprint."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from vcr_core.manifest import planned_videos
from vcr_core.specs import to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.specs import AttackSpec


def nature(spec: AttackSpec, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the manifest says about an attack that asks nothing; empty for others.

    Args:
        spec: the attack's.
        params: its parameters.

    Returns:
        ``stage`` and ``tags``; for corruptions in severities also ``corruption`` with ``type``,
        ``group``, ``severity``, ``changes_length`` and ``suites``: name, version, number of types
        and of severities of every suite to which the type belongs with these parameters.
    """
    if spec.access != "none":
        return {}
    facts: dict[str, Any] = {"stage": spec.stage, "tags": sorted(spec.tags)}
    if spec.corruption is not None:
        facts["corruption"] = {
            "type": spec.name,
            "group": spec.corruption.group,
            "severity": params.get("severity"),
            "changes_length": spec.corruption.changes_length,
            "suites": [
                to_plain(member.suite)
                for member in spec.corruption.member_of
                if all(params.get(name) == value for name, value in member.params)
            ],
        }
    return facts


def content_sha256(frames: NDArray[np.uint8]) -> str:
    """Return the SHA-256 of 8-bit frames: of their shape, then of their values."""
    digest = hashlib.sha256(repr(tuple(frames.shape)).encode())
    whole = frames if frames.flags.c_contiguous else frames.copy()
    digest.update(whole.data.cast("B"))
    return digest.hexdigest()


def fingerprint(
    manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> dict[str, str] | None:
    """Return what an attack that asks nothing made of the run's first video.

    Two runs of one type and severity on the same video were damaged in the same way if and only if
    their fingerprints are equal. Types that act before the sampling are compared as a whole video,
    others as the model samples it.

    Returns:
        ``video`` and ``sha256``, or ``None`` where the first video has no result.
    """
    first = next(iter(planned_videos(manifest)), None)
    for record in records:
        found = (record.get("transform") or {}).get("sha256")
        if record.get("video") == first and found:
            return {"video": str(first), "sha256": str(found)}
    return None


def damaged_unlike(runs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[str]:
    """Return the types that did not do the same to the same video in all runs, sorted.

    Only types that act before the sampling are compared: what others leave behind depends on the
    model's sampling.

    Args:
        runs: manifest and summary of each.
    """
    found: dict[str, set[str]] = {}
    types: dict[str, str] = {}
    for manifest, summary in runs:
        print_of = summary.get("fingerprint")
        for part in manifest.get("components") or ():
            if part.get("role") != "attack" or part.get("stage") != "source" or not print_of:
                continue
            asked = [part.get("ref"), part.get("params"), manifest.get("seed"), print_of["video"]]
            key = json.dumps([*asked, (manifest.get("dataset") or {}).get("fingerprint")])
            found.setdefault(key, set()).add(print_of["sha256"])
            types[key] = str(part.get("ref")).rpartition("/")[2]
    return sorted({types[key] for key, prints in found.items() if len(prints) > 1})
