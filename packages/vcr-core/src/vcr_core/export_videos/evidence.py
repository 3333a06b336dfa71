"""Exact files of one video, each with a sidecar that says what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.export_videos.experiment import is_exact
from vcr_core.manifest import table
from vcr_core.reporters.clips import label_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.config.experiment import Experiment
    from vcr_core.export_videos.judge import Reached
    from vcr_core.export_videos.layout import Layout, Layouts
    from vcr_core.export_videos.sources import Pair
    from vcr_core.summary import RunView

SAMPLED = "sampled-frames"
"""Domain of a file with the frames of the source that the model looks at, each once."""

CLIPS = "clips-behind-defense"
"""Domain of a file with the clips that reach the model, one after the other."""

_SAID = {
    "clean": ("clean", "clean_defended"),
    "adversarial": ("attacked", "attacked_defended", "success", "perturbation", "transform"),
    "defended": ("attacked_defended",),
}
"""Fields of the record that a file shows."""


def evidence_name(version: str) -> str:
    """Return the name of the exact file of a version of a video."""
    return f"{version}.mkv"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Writes the exact files of the videos of one run.

    Attributes:
        run: the run.
        experiment: what it was made with.
    """

    run: RunView
    experiment: Experiment

    def write(
        self,
        folder: Path,
        record: Mapping[str, Any],
        pair: Pair,
        layouts: Layouts,
        reached: Reached | None,
    ) -> dict[str, dict[str, str]]:
        """Write the files of one video.

        Args:
            folder: where to write.
            record: the video's record.
            pair: its frames.
            layouts: how they were sampled.
            reached: what the defenses let through, if there are any.

        Returns:
            Name and SHA-256 of the frames by version.

        Raises:
            StoreError: if a file does not read back.
            OSError: if it cannot be written.
        """
        files = {}
        for version, frames, layout in (
            ("clean", pair.clean, layouts.clean),
            ("adversarial", pair.adversarial, layouts.attacked),
        ):
            facts = {
                "domain": SAMPLED,
                "exact": is_exact(self.experiment),
                "indices": list(layout.indices),
                "gather": [list(row) for row in layout.gather],
                **self._facts(record, version, layout, pair),
            }
            files[version] = _file(folder, version, frames, layout, facts)
        if reached is not None:
            facts = {
                "domain": CLIPS,
                "exact": False,
                "clips": list(reached.clips),
                "other_versions": reached.others,
                **self._facts(record, "defended", layouts.attacked, pair),
            }
            files["defended"] = _file(folder, "defended", reached.frames, layouts.attacked, facts)
        return files

    def _facts(
        self, record: Mapping[str, Any], version: str, layout: Layout, pair: Pair
    ) -> dict[str, Any]:
        """Return what the sidecars of all versions say."""
        run, source = self.run, record["input"]
        names = (run.manifest.get("dataset") or {}).get("labels") or ()
        return {
            "version": version,
            "video": record["video"],
            "status": record["status"],
            "label": record["label"],
            "label_name": label_name(record["label"], names),
            "target": record.get("target"),
            "record": {key: record[key] for key in _SAID[version] if key in record},
            "run": run.name,
            "experiment_hash": run.manifest.get("experiment_hash"),
            "evaluation_version": run.manifest.get("evaluation_version"),
            "dataset": run.dataset,
            "model": run.model,
            "attack": run.attack,
            "defenses": list(run.defenses),
            "threat": dict(table(run.manifest, "threat")),
            "seed": run.manifest.get("seed"),
            "seeds": record.get("seeds"),
            "source": {
                key: source.get(key) for key in ("sha256", "decoder", "frames_decoded", "fps")
            },
            "plan": {"text": source.get("plan"), "table": [list(row) for row in layout.plan.table]},
            "frames_from": pair.origin,
        }


def _file(
    folder: Path, version: str, frames: NDArray[np.uint8], layout: Layout, facts: dict[str, Any]
) -> dict[str, str]:
    from vcr_core.video.writer import write_exact

    path = folder / evidence_name(version)
    return {"file": path.name, "sha256": write_exact(path, frames, fps=layout.fps, facts=facts)}
