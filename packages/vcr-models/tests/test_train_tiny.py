"""The training script of the bundled tiny models, on a handful of clips."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load
from vcr_core.datasets.motion.labels import MIRROR_X, MIRROR_Y, TIME_REVERSAL
from vcr_models.tiny.networks import NETWORKS, build_network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

TRAINING = Path(__file__).parents[1] / "training"

pytestmark = pytest.mark.skipif(
    not TRAINING.is_dir(), reason="the training script is in the repository only"
)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script as a module, with validation and test splits of 16 clips."""
    monkeypatch.syspath_prepend(str(TRAINING))
    module = importlib.import_module("train_tiny")
    original = module.pooled_split

    def few(folder: Path, split: str, count: int | None = None) -> tuple[Tensor, Tensor]:
        return original(folder, split, count or 16)

    monkeypatch.setattr(module, "pooled_split", few)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    yield module
    torch.set_num_threads(threads)
    torch.set_rng_state(state)
    for name in ("train_tiny", "recipes"):
        sys.modules.pop(name, None)


def log_of(folder: Path, name: str) -> list[dict[str, Any]]:
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_training_is_repeatable_and_logged(script: Any, tmp_path: Path) -> None:
    recipe = script.Recipe(clips=32, epochs=2, batch=16)
    digests = []
    for run in ("a", "b"):
        folder = tmp_path / run
        script.train("tiny-r3d", recipe, 3, tmp_path / "cache", folder, folder)
        content = (folder / "tiny-r3d.safetensors").read_bytes()
        digests.append(hashlib.sha256(content).hexdigest())
        build_network("tiny-r3d", content)
        start, *epochs, stored = log_of(folder, "tiny-r3d")
        assert (start["event"], start["seed"], start["generator"]) == ("start", 3, "motion/v1")
        assert [line["epoch"] for line in epochs] == [0, 1]
        assert stored["sha256"] == digests[-1]
        assert stored["bytes"] == len(content)
        assert not list(folder.glob("*.part"))
    assert digests[0] == digests[1]


def test_half_precision_is_of_the_file_only(script: Any, tmp_path: Path) -> None:
    recipe = script.Recipe(clips=16, epochs=1, batch=16, float16=True)
    script.train("tiny-tsm", recipe, 0, tmp_path, tmp_path, tmp_path)
    content = (tmp_path / "tiny-tsm.safetensors").read_bytes()
    kinds = {key: value.dtype for key, value in load(content).items()}
    assert kinds["head.weight"] == kinds["norm1.running_var"] == torch.float16
    assert kinds["norm1.num_batches_tracked"] == torch.int64
    assert {p.dtype for p in build_network("tiny-tsm", content).parameters()} == {torch.float32}
    assert log_of(tmp_path, "tiny-tsm")[-1]["same_predictions"] >= 0.9


def test_adversarial_training_starts_from_a_file(script: Any, tmp_path: Path) -> None:
    plain = script.Recipe(clips=16, epochs=1, batch=16)
    script.train("tiny-r3d", plain, 0, tmp_path, tmp_path, tmp_path)
    robust = script.Recipe(clips=16, epochs=1, batch=16, start="tiny-r3d", eps=4.0, clean_share=0.5)
    script.train("tiny-r3d.adv", robust, 0, tmp_path, tmp_path, tmp_path)
    assert "val_accuracy_pgd10" in log_of(tmp_path, "tiny-r3d.adv")[1]


def test_inner_attack_stays_in_its_ball_and_restores_the_network(script: Any) -> None:
    network = build_network("tiny-tsm").train()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    x = torch.rand(2, 16, 3, 32, 32)
    adv = script.pgd(network, x, torch.tensor([0, 1]), 4 / 255, 3, torch.Generator().manual_seed(0))
    assert float((adv - x).abs().max()) <= 4 / 255 + 1e-6
    assert float(adv.min()) >= 0.0
    assert float(adv.max()) <= 1.0
    assert network.training
    assert all(p.requires_grad for p in network.parameters())
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_augmentation_maps_labels_with_pixels(script: Any) -> None:
    """Undoing the flips that explain the new label gives the clip back."""
    recipe = script.Recipe(shift=0, gain=0.0, offset=0.0)
    x = torch.rand(64, 16, 3, 32, 32)
    y = torch.arange(64) % 16
    flipped, labels = script.augment(x, y, recipe, torch.Generator().manual_seed(0))
    for before, after, old, new in zip(x, flipped, y.tolist(), labels.tolist(), strict=True):
        explained = []
        for code in range(8):
            clip, label = before, old
            for bit, dim, table in ((1, 0, TIME_REVERSAL), (2, 3, MIRROR_X), (4, 2, MIRROR_Y)):
                if code & bit:
                    clip, label = clip.flip(dim), table[label]
            if torch.equal(clip, after):
                explained.append(label)
        assert explained == [new]


def test_pooled_clips_are_means_of_source_pixels(script: Any, tmp_path: Path) -> None:
    pooled, labels = script.pooled_split(tmp_path, "val", 3)
    clips = script.load_split(tmp_path, "val", count=3).clips
    expected = clips[1, 2, 10:12, 20:22].reshape(4, 3).mean(axis=0) / 255.0
    assert script.to_float(pooled)[1, 2, :, 5, 10].tolist() == pytest.approx(expected, abs=1e-6)
    assert labels.tolist() == [0, 1, 2]


def test_every_bundled_file_has_a_recipe(script: Any) -> None:
    assert set(script.RECIPES) == set(NETWORKS)
