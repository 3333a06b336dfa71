"""Checks the clips that a run kept against its records and its threat model."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.leaderboard.checks import Check, impossible, judged
from vcr_core.leaderboard.record_checks import largest_eps
from vcr_core.manifest import table
from vcr_core.reporters.clips import kept_clips

if TYPE_CHECKING:
    from vcr_core.summary import RunView

_HALF_LEVEL = 0.5 / 255 + 1e-6
"""Clips are kept in 8 bits; a source that was resized is not on that grid."""


def check_clips(run: RunView) -> Check:
    """Measure kept clips again: their L∞ distance, and what the records say about them."""
    entries = kept_clips(run)
    if not entries:
        return impossible("clips", "no clips were kept; output.keep_clips = 4 keeps a few")
    try:
        import numpy  # noqa: F401
    except ImportError:
        return impossible("clips", "numpy is needed to read them: pip install 'vcr-core[report]'")
    records = {record["video"]: record for record in run.records}
    threat = table(run.manifest, "threat")
    bounded = str(threat.get("norm", "linf")) == "linf"
    eps = largest_eps(threat) if bounded else None
    problems = [
        f"{entry.get('video')}: {problem}"
        for entry in entries
        for problem in _problems(run.folder, entry, records, eps)
    ]
    bound = f", L∞ ≤ {eps:.6g}" if eps is not None else ""
    return judged("clips", problems, f"{len(entries)} kept clips are those of the records{bound}")


def _problems(
    folder: Path,
    entry: Mapping[str, Any],
    records: Mapping[str, Mapping[str, Any]],
    eps: float | None,
) -> Iterator[str]:
    record = records.get(str(entry.get("video")))
    if record is None:
        yield "a clip of a video without a record"
        return
    for key in ("label", "clean", "attacked", "target"):
        if key in entry and entry[key] != record.get(key):
            yield f"{key} is not that of the record"
    # A name with folders in it would lead elsewhere.
    path = folder / "artifacts" / Path(str(entry["file"]).replace("\\", "/")).name
    try:
        linf = _linf(path)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        yield f"{path.name} cannot be read: {error}"
        return
    said = (record.get("perturbation") or {}).get("linf")
    if isinstance(said, int | float) and abs(said - linf) > _HALF_LEVEL:
        yield f"differs by {linf:.6g}, the record says {said:.6g}"
    if eps is not None and linf > eps + _HALF_LEVEL:
        yield f"differs by {linf:.6g}, {eps:.6g} is allowed"


def _linf(path: Path) -> float:
    """Return the largest difference of the two clips of a file, as a fraction of the range."""
    import numpy as np

    # A damaged file is left open where numpy opened it.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        clean, adversarial = arrays["clean"], arrays["adversarial"]
        if clean.shape != adversarial.shape or clean.dtype != np.uint8:
            raise ValueError(f"clips of shape {clean.shape} and {adversarial.shape}")
        levels = np.abs(clean.astype(np.int16) - adversarial.astype(np.int16)).max(initial=0)
    return float(levels) / 255
