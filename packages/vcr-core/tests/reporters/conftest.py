"""Hand-made runs on disk, read back the way reports read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vcr_core.summary import RunView, load_run

MakeRun = Callable[..., RunView]


def corner(pred: int, label: int, p: float = 0.8) -> dict[str, Any]:
    return {"pred": pred, "p_label": p if pred == label else 0.1, "p_pred": p, "top5": [pred]}


def make_record(
    video: str,
    *,
    right: bool,
    held: bool | None,
    defended: tuple[bool, bool] | None = None,
    metrics: dict[str, Any] | None = None,
    target: int | None = None,
    source: tuple[bool, bool] | None = None,
) -> dict[str, Any]:
    """One record with label 0; ``held`` and ``defended`` say what is right before and after.

    ``source`` says the same of the model that was attacked, where that is another one.
    """
    record: dict[str, Any] = {
        "schema": 1, "run": "r", "video": video, "batch": 0, "shard": 0, "attempt": 1,
        "status": "ok", "label": 0, "clean": corner(0 if right else 1, 0), "device": "cpu",
        "cost": {"forwards": 10, "backwards": 5, "t_attack_s": 0.5},
    }  # fmt: skip
    if target is not None:
        record["target"] = target
    if source is not None:
        record["status"] = "ok" if source[0] else "ineligible"
        record["source"] = {
            "label": 0,
            "clean": corner(0 if source[0] else 1, 0),
            "attacked": corner(0 if all(source) else 1, 0),
        }
        if source[0]:
            record["source"]["success"] = {"changed": not source[1], "n": int(not source[1])}
    if defended is not None:
        record["clean_defended"] = corner(0 if defended[0] else 1, 0)
    if held is not None:
        record["attacked"] = corner(0 if held else 1, 0, 0.6)
        record["success"] = {"changed": right and not held, "n": 0, "of": 1}
        record["metrics"] = metrics or {"psnr": {"value": 40.0}}
        if defended is not None:
            record["attacked_defended"] = [corner(0 if defended[1] else 1, 0)]
    return record


def make_error(video: str, message: str) -> dict[str, Any]:
    error = {"stage": "decode", "type": "VideoReadError", "message": message, "traceback": ""}
    return {
        "schema": 1, "run": "r", "video": video, "batch": 0, "shard": 0, "attempt": 1,
        "status": "error", "label": 0, "error": error,
    }  # fmt: skip


@pytest.fixture
def records() -> Any:
    """Builders of records: ``records.video(...)`` and ``records.error(...)``."""

    class Builders:
        video = staticmethod(make_record)
        error = staticmethod(make_error)

    return Builders


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Write a run and load it: 8 videos, 6 right before and 2 after the attack, by default."""
    count = 0

    def make(
        *,
        model: str = "tiny",
        attack: str | None = "ifgsm",
        eps: float = 8 / 255,
        defense: str | None = None,
        adaptive: bool = True,
        source: str | None = None,
        flags: tuple[str, ...] = (),
        records: list[dict[str, Any]] | None = None,
        **changes: Any,
    ) -> RunView:
        nonlocal count
        count += 1
        name = f"motion-{model}-{attack or 'none'}-{count:02d}"
        folder = tmp_path / "results" / name
        (folder / "records").mkdir(parents=True)
        experiment: dict[str, Any] = {
            "seed": 42,
            "dataset": {"name": "motion"},
            "model": {"name": model},
            "threat": {"norm": "linf", "eps": eps, "targeted": False},
            "protocol": {"attacker_knows_defense": adaptive},
        }
        if attack:
            experiment["attack"] = {"name": attack, "steps": 10}
        if source:
            experiment["source"] = {"name": source}
        if defense:
            experiment["defense"] = [{"name": defense}]
        found = records
        if found is None:
            pair = (True, False) if defense else None
            found = [
                make_record(f"v{i}", right=i < 6, held=i < 2 if attack else None, defended=pair)
                for i in range(8)
            ]
        manifest = {
            "schema": 1, "run": name, "status": "done", "evaluation_version": 1,
            "experiment": experiment, "seed": 42, "flags": list(flags),
            "components": [
                {"role": "model", "ref": model, "distribution": "vcr-models", "version": "1.0"}
            ],
            "dataset": {"labels": ["walk", "run & jump", "<b>clap</b>"], "fingerprint": "f00d"},
            "batches": [[record["video"] for record in found]],
            "environment": {"python": "3.11.9", "versions": {"vcr-core": "1.0.0a1"}},
            "command": ["vcr", "run", "a.toml"],
            "started": "2026-05-01T10:00:00.000Z", "ended": "2026-05-01T10:01:00.000Z",
            **changes,
        }  # fmt: skip
        (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
        lines = "".join(json.dumps(record) + "\n" for record in found)
        (folder / "records" / "part-0-0.jsonl").write_text(lines, encoding="utf-8")
        return load_run(folder)

    return make


@pytest.fixture
def keep_clips() -> Callable[..., None]:
    """Write kept clips of a run: 10 frames of 8x12 pixels, one pixel of which changed by +4."""
    np = pytest.importorskip("numpy")

    def keep(run: RunView, videos: list[str], *, defended: bool = False) -> None:
        folder = run.folder / "artifacts"
        folder.mkdir(exist_ok=True)
        entries = []
        for i, video in enumerate(videos):
            clean = np.full((10, 8, 12, 3), 100, np.uint8)
            adversarial = clean.copy()
            adversarial[:, 0, 0, 0] += 4
            arrays = {"clean": clean, "adversarial": adversarial}
            if defended:
                arrays["defended"] = clean
            np.savez(folder / f"c{i}.npz", **arrays)
            entries.append(
                {
                    "video": video, "file": f"c{i}.npz", "label": 0, "eps": 8 / 255,
                    "clean": {"pred": 0, "p_label": 0.9, "p_pred": 0.9},
                    "attacked": {"pred": 2, "p_label": 0.2, "p_pred": 0.7},
                }
            )  # fmt: skip
        (folder / "clips.json").write_text(json.dumps(entries), encoding="utf-8")

    return keep
