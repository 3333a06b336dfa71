from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from vcr_core.manifest import new_manifest, write_manifest
from vcr_core.records import RecordWriter, record_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# video: (label, f(x), d∘f(x), f(a), d∘f(a), target); v6 and v7 are wrong before a non-adaptive
# attack, so there a := x; v8 failed.
TABLE: dict[str, tuple[int, int, int, int, int, int]] = {
    "v0": (0, 0, 0, 1, 0, 1),
    "v1": (0, 0, 0, 2, 2, 1),
    "v2": (1, 1, 1, 1, 1, 2),
    "v3": (1, 1, 0, 0, 1, 2),
    "v4": (2, 2, 2, 0, 0, 0),
    "v5": (2, 2, 1, 2, 1, 0),
    "v6": (0, 1, 0, 1, 0, 1),
    "v7": (1, 0, 0, 0, 0, 2),
    "v9": (2, 2, 2, 2, 2, 0),
}


def _corner(pred: int, label: int) -> dict[str, Any]:
    right = pred == label
    return {
        "pred": pred,
        "p_label": 0.75 if right else 0.125,
        "p_pred": 0.75,
        "top5": [pred, *(k for k in range(3) if k != pred)],
        "margin": 1.5 if right else -1.5,
    }


@pytest.fixture
def corner() -> Callable[[int, int], dict[str, Any]]:
    """Make one corner from predicted and true label."""
    return _corner


@pytest.fixture
def ten_records() -> list[dict[str, Any]]:
    """Ten videos of a targeted, non-adaptive, defended run."""
    records = []
    for number in range(10):
        video = f"v{number}"
        record: dict[str, Any] = {
            "schema": 1, "run": "r", "video": video, "batch": number // 4, "shard": 0, "attempt": 1,
        }  # fmt: skip
        if video not in TABLE:
            error = {"stage": "decode", "type": "VideoReadError", "message": "torn", "oom": False}
            records.append({**record, "status": "error", "label": 0, "error": error})
            continue
        y, fx, dfx, fa, dfa, target = TABLE[video]
        attacked = fx == y
        record |= {
            "status": "ok" if attacked else "ineligible",
            "label": y,
            "target": target,
            "target_policy": "next",
            "clean": _corner(fx, y),
            "clean_defended": _corner(dfx, y),
            "attacked": _corner(fa, y),
            "attacked_defended": [_corner(dfa, y)],
        }
        if attacked:
            equal = video == "v2"
            record |= {
                "success": {"changed": fa != y, "target": fa == target, "n": 1, "of": 1},
                "perturbation": {
                    "linf": 8 / 255, "l2": 2.0, "l1": 0.02, "l0_fraction": 0.5,
                    "frames_touched": 8, "violation": 0.0, "projected": False, "quantised": True,
                },
                "metrics": {
                    "mse": {"value": 0.0 if equal else 6.5025},
                    "psnr": (
                        {"value": None, "reason": "identical"} if equal else {"value": 40.0}
                    ),
                },
                "cost": {
                    "forwards": 10 * (number + 1), "backwards": 20, "iterations": 20,
                    "budget_exhausted": number == 5, "t_clean_s": 0.25, "t_attack_s": 2.0,
                    "t_eval_s": 0.5, "chunk": 0,
                },
                "flags": ["zero-gradient"] if equal else [],
            }  # fmt: skip
        records.append(record)
    return records


@pytest.fixture
def manifest() -> dict[str, Any]:
    """The manifest of the run of :func:`ten_records`."""
    ids = [f"v{number}" for number in range(10)]
    return new_manifest(
        run="r",
        experiment={
            "schema": 1,
            "seed": 42,
            "dataset": {"name": "toy"},
            "model": {"name": "tiny.r3d"},
            "attack": {"name": "pgd"},
            "defense": {"name": "blur"},
            "threat": {"norm": "linf", "eps": 8 / 255, "targeted": True},
            "protocol": {"attacker_knows_defense": False},
        },
        experiment_hash="0123456789",
        components=[],
        dataset={"fingerprint": "f", "label_space": "toy", "labels": ["NA", "007", 'a "b", c']},
        batches=[ids[0:4], ids[4:8], ids[8:10]],
    )


@pytest.fixture
def run_folder(tmp_path: Path, manifest: dict[str, Any], ten_records: list[dict[str, Any]]) -> Path:
    """A finished run on disk."""
    folder = tmp_path / "results" / "r"
    write_manifest(folder, {**manifest, "status": "done"})
    with RecordWriter(record_path(folder, 0, 0)) as writer:
        for batch in range(3):
            writer.append([record for record in ten_records if record["batch"] == batch])
    return folder
