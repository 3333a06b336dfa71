"""The scripts that made the bundled detectors of tampering."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from vcr_models.detectors.names import EVERY, LABELS
from vcr_models.detectors.network import CHANNELS, TamperNet, network_signals
from vcr_models.specs.tamper import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterator

TRAINING = Path(__file__).parent.parent / "training"


@pytest.fixture(scope="module")
def scripts() -> Iterator[Any]:
    pytest.importorskip("vcr_attacks", reason="tampering operators are in vcr-attacks")
    sys.path.insert(0, str(TRAINING))
    try:
        yield importlib.import_module("train_tamper_net")
    finally:
        sys.path.remove(str(TRAINING))


class TestData:
    def test_samples_are_of_the_training_stream(self, scripts: Any) -> None:
        found = list(scripts.samples([3, 5], frames=16, effects="mvt5", location="start"))
        assert {s.source for s in found} == {"motion-v1-train-000003", "motion-v1-train-000005"}
        assert [s.label for s in found[:3]] == ["original", "drop", "mask"]
        assert found[0].segment is None
        assert found[1].segment == (0, 0)
        assert found[2].segment == (0, 5)
        assert (found[2].frames[:5] == 0).all()

    def test_encoding_keeps_the_number_of_frames(self, scripts: Any) -> None:
        [sample, *_] = scripts.samples([1], frames=16, effects=["drop"])
        again = scripts.encoded(sample.frames, sample.fps, 23)
        assert again.shape == sample.frames.shape
        assert 0 < np.abs(again.astype(float) - sample.frames).mean() < 20


class TestTraining:
    def test_is_repeatable_and_logged(
        self, scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        setting = {"frames": 16, "duration_s": 1.0, "location": "random"}
        monkeypatch.setattr(scripts, "SETTINGS", (setting,))
        rows = scripts.prepared(2, np.random.default_rng(0))
        assert rows[0].shape[1:] == (CHANNELS, scripts.LONGEST)
        assert set(rows[2].tolist()) == set(range(len(LABELS)))
        torch.save(rows, tmp_path / "rows.pt")
        hashes = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            monkeypatch.setattr(sys, "argv", [
                "train", "--sources", "2", "--epochs", "2", "--batch", "8",
                "--cache", str(tmp_path / "rows.pt"), "--weights", str(folder),
                "--logs", str(folder),
            ])  # fmt: skip
            scripts.main()
            lines = (folder / "tamper-net.jsonl").read_text().splitlines()
            log = [json.loads(line) for line in lines]
            assert [entry["event"] for entry in log] == ["start", "epoch", "epoch", "stored"]
            assert log[1]["loss"] > log[2]["loss"]
            hashes.append(log[-1]["sha256"])
        assert hashes[0] == hashes[1]

    @pytest.mark.parametrize(
        ("log", "files"),
        [
            ("tamper-net", ["tamper-net.safetensors"]),
            ("tamper-baseline", ["tamper-baseline.motion.json", "tamper-baseline.lr.json"]),
        ],
    )
    def test_bundled_files_are_those_of_the_logs(self, log: str, files: list[str]) -> None:
        lines = (TRAINING / "logs" / f"{log}.jsonl").read_text().splitlines()
        stored = [e["sha256"] for e in map(json.loads, lines) if e["event"] == "stored"]
        pinned = {w.url.rpartition("/")[2]: w.sha256 for s in SPECS for w in s.weights}
        assert stored == [pinned[name] for name in files]


class TestNetwork:
    def test_padding_changes_nothing(self) -> None:
        network = TamperNet(len(LABELS)).eval()
        signals = torch.rand(2, CHANNELS, 20, generator=torch.Generator().manual_seed(0))
        padded = torch.nn.functional.pad(signals, (0, 9), value=7.0)
        scores, marks = network(signals)
        same, wide = network(padded, torch.tensor([20, 20]))
        assert torch.allclose(scores, same, atol=1e-5)
        assert torch.allclose(marks, wide[:, :20], atol=1e-5)

    @pytest.mark.parametrize("count", [1, 2, 3, 9])
    @pytest.mark.parametrize("size", [(1, 1), (2, 40), (33, 20)])
    def test_signals_of_short_and_tiny_videos(self, count: int, size: tuple[int, int]) -> None:
        clips = torch.rand(2, count, 3, *size, requires_grad=True)
        signals = network_signals(clips)
        assert signals.shape == (2, CHANNELS, count)
        signals.sum().backward()
        assert torch.isfinite(signals).all()
        assert clips.grad is not None
        assert torch.isfinite(clips.grad).all()

    def test_a_flat_video_has_a_finite_gradient(self) -> None:
        clips = torch.full((1, 8, 3, 32, 32), 0.5, requires_grad=True)
        network_signals(clips).sum().backward()
        assert torch.isfinite(clips.grad).all()

    def test_the_weights_are_small(self) -> None:
        [weights] = next(s for s in SPECS if s.name == "tamper-net").weights
        assert weights.bytes < 200_000
        assert len(EVERY) + 1 == len(LABELS)
