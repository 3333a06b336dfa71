"""Fit the bundled calibrations of ``tamper-baseline``: ``python fit_tamper.py``.

Thresholds and logistic regression are fitted on motion clips of the ``train`` stream, each one raw
and encoded with H.264 (CRF 23). Nothing is drawn but what the dataset ``tamper`` draws from its
seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import torch
from tamper_data import encoded, samples
from vcr_models.detectors.calibration import LogisticFile, ThresholdFile, to_json
from vcr_models.detectors.fitting import (
    Scored,
    as_clip,
    fit_logistic,
    fit_thresholds,
    score,
    training_part,
)
from vcr_models.detectors.names import MVT8, ORIGINAL

HERE = Path(__file__).resolve().parent
CRF = 23


def main() -> None:
    """Fit both files and write a log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=240, help="clips of the train stream")
    parser.add_argument("--frames", type=int, default=32, help="frames of a clip")
    parser.add_argument("--weights", type=Path, default=HERE.parent / "src/vcr_models/weights")
    parser.add_argument("--logs", type=Path, default=HERE / "logs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    began = time.process_time()
    rows: list[Scored] = []
    for sample in samples(range(given.sources), frames=given.frames, effects="mvt8"):
        for frames in (sample.frames, encoded(sample.frames, sample.fps, CRF)):
            rows.append(Scored(sample.source, sample.label, score(as_clip(frames), sample.fps)))
    table = {"name": "motion", "split": "train", "frames": given.frames, "videos": given.sources}
    part = training_part(table)
    files: dict[str, ThresholdFile | LogisticFile] = {
        "tamper-baseline.motion.json": fit_thresholds(rows, part),
        "tamper-baseline.lr.json": fit_logistic(rows, part, (ORIGINAL, *MVT8)),
    }
    log = [{"event": "scored", "videos": len(rows), "crf": CRF, "torch": torch.__version__,
            "cpu_seconds": round(time.process_time() - began, 1)}]  # fmt: skip
    for name, file in files.items():
        text = to_json(file)
        (given.weights / name).write_text(text, encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()
        log.append({"event": "stored", "file": name, "sha256": digest, "bytes": len(text)})
    given.logs.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(entry) + "\n" for entry in log)
    (given.logs / "tamper-baseline.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
