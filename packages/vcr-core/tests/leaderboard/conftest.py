"""Runs for a leaderboard: real ones of the toys, and hand-made ones with any names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vcr_core.cli import main
from vcr_core.config.toml_text import to_toml
from vcr_core.testing.toys.installed import installed

RUN = """\
schema = 1

[dataset]
name = "toy-shapes"
limit = 6

[model]
name = "toy-cnn"

[attack]
name = "toy-descent"

[threat]
eps = "4/255"

[metrics]
names = ["toy-difference"]

[runtime]
device = "cpu"
threads = 1
batch_videos = 2

[output]
keep_clips = 2
"""


@pytest.fixture(scope="session")
def toys() -> Iterator[None]:
    """Install the toy plugin."""
    with installed():
        yield


@pytest.fixture(scope="session")
def honest(toys: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the toys: six videos in three batches. Do not change it."""
    pytest.importorskip("torch")
    here = tmp_path_factory.mktemp("honest")
    (here / "experiment.toml").write_text(RUN)
    code = main(["run", str(here / "experiment.toml"), "--results", str(here / "results"), "-q"])
    assert code == 0
    return next((here / "results").iterdir())


@pytest.fixture
def run(honest: Path, toys: None, tmp_path: Path) -> Path:
    """A copy of the honest run, to do with as one likes."""
    return Path(shutil.copytree(honest, tmp_path / "submitted" / honest.name))


@pytest.fixture
def edit() -> Callable[..., None]:
    """Change a JSON file, or every record of a run, with a function that edits in place."""

    def change(path: Path, how: Callable[[dict[str, Any]], None]) -> None:
        if path.suffix == ".json":
            data = json.loads(path.read_text())
            how(data)
            path.write_text(json.dumps(data))
            return
        for part in sorted((path / "records").glob("*.jsonl")):
            records = [json.loads(line) for line in part.read_text().splitlines()]
            for record in records:
                how(record)
            kept = [record for record in records if record]
            part.write_text("".join(json.dumps(record) + "\n" for record in kept))

    return change


def _corner(pred: int, label: int) -> dict[str, Any]:
    right = pred == label
    return {
        "pred": pred, "p_label": 0.7 if right else 0.1, "p_pred": 0.7, "top5": [pred, 1 - pred],
        "margin": 1.9 if right else -1.9,
    }  # fmt: skip


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a consistent run with components of a distribution that is not installed.

    ``held`` are the videos that are right before and after the attack; all are right before.
    """
    count = 0

    def make(
        held: int = 5,
        *,
        videos: int = 10,
        model: str = "net",
        attack: str | None = "push",
        defense: str | None = None,
        adaptive: bool = True,
        eps: float | str = "8/255",
        dataset: str = "clips",
        fingerprint: str = "f00d" * 8,
        ids: str = "v",
        folder: Path | None = None,
        edit: Callable[[dict[str, Any], list[dict[str, Any]]], None] = lambda _m, _r: None,
    ) -> Path:
        nonlocal count
        count += 1
        name = f"run-{count:03d}"
        experiment: dict[str, Any] = {
            "schema": 1,
            "seed": 42,
            "dataset": {"name": f"vcr-elsewhere/{dataset}", "limit": videos},
            "model": {"name": f"vcr-elsewhere/{model}"},
            "protocol": {"attacker_knows_defense": adaptive, "stop": "budget"},
        }
        if attack:
            experiment["attack"] = {"name": f"vcr-elsewhere/{attack}", "steps": 10}
            experiment["threat"] = {"norm": "linf", "eps": eps, "targeted": False}
        if defense:
            experiment["defense"] = {"name": f"vcr-elsewhere/{defense}"}
        roles = {"dataset": dataset, "model": model, "attack": attack, "defense": defense}
        records = []
        for i in range(videos):
            record: dict[str, Any] = {
                "schema": 1, "run": name, "video": f"{ids}{i:02d}", "batch": 0, "shard": 0,
                "attempt": 1, "status": "ok", "label": 0, "clean": _corner(0, 0), "device": "cpu",
                "cost": {"forwards": 10, "backwards": 5, "t_attack_s": 0.5},
            }  # fmt: skip
            after = _corner(0 if i < held else 1, 0)
            knows = adaptive and defense is not None
            if attack:
                record["attacked"] = after
                record["success"] = {"changed": i >= held, "n": int(i >= held), "of": 1}
                record["perturbation"] = {
                    "linf": 1 / 255, "l2": 1.0, "l1": 0.001, "l0_fraction": 0.5, "frames_touched": 4
                }  # fmt: skip
                record["metrics"] = {"psnr": {"value": 40.0 + i}}
            if defense:
                record["clean_defended"] = _corner(0, 0)
                if attack:
                    record["attacked_defended"] = [after]
            if attack and defense and not knows:
                record["attacked"] = _corner(1, 0)
                record["success"] = {"changed": True, "n": 1, "of": 1}
            records.append(record)
        manifest = {
            "schema": 1, "run": name, "status": "done", "evaluation_version": 1,
            "experiment": experiment, "experiment_hash": f"{count:064x}",
            "components": [
                {"role": role, "kind": role, "ref": f"vcr-elsewhere/{ref}",
                 "distribution": "vcr-elsewhere", "version": "1.2",
                 **({"access": "white-box"} if role == "attack" else {})}
                for role, ref in roles.items() if ref
            ],
            "dataset": {"labels": ["walk", "run"], "fingerprint": fingerprint, "n": videos},
            "seed": 42, "batches": [[record["video"] for record in records]], "flags": [],
            "environment": {"python": "3.11.9", "versions": {"vcr-core": "1.0.0a1"}},
            "command": ["vcr", "run", "a.toml"],
            "started": "2026-05-01T10:00:00.000Z", "ended": "2026-05-01T10:01:00.000Z",
        }  # fmt: skip
        edit(manifest, records)
        where = (folder or tmp_path / "runs") / name
        (where / "records").mkdir(parents=True)
        (where / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
        (where / "resolved.toml").write_text(to_toml(manifest["experiment"]), encoding="utf-8")
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (where / "records" / "part-0-0.jsonl").write_text(lines, encoding="utf-8")
        return where

    return make
