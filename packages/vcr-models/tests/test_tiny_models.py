"""The bundled tiny classifiers: accuracy, temporal necessity, robustness, strict loading."""

from __future__ import annotations

import hashlib
import json
import struct
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load, save
from vcr_core.datasets.motion.generator import generate_clip
from vcr_core.datasets.motion.labels import MOTION_LABELS, TIME_REVERSAL
from vcr_core.errors import ComponentUnavailable
from vcr_core.protocols import VideoClassifier
from vcr_core.specs import WeightSpec
from vcr_models.tiny.build import TinyClassifier, from_weights, weight_bytes
from vcr_models.tiny.front import pool, resize_and_crop
from vcr_models.tiny.networks import NETWORKS, build_network
from vcr_models.tiny.tsm import temporal_shift

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

CLAIMED = {
    "tiny-r3d": 0.98,
    "tiny-r2plus1d": 0.96,
    "tiny-tsm": 0.96,
    "tiny-vit": 0.95,
    "tiny-r3d.adv": 0.86,
    "tiny-slowfast": 0.93,
    "tiny-uniformer": 0.95,
    "tiny-x3d": 0.92,
    "tiny-timesformer": 0.94,
    "tiny-swin": 0.89,
}
"""Lowest accuracy on the 480 validation clips; the training logs hold the exact values."""

TEMPORAL = [name for name in NETWORKS if name != "tiny-r3d.adv"]
LOGITS = Path(__file__).parent / "data" / "tiny_logits.json"
LOGS = Path(__file__).parents[1] / "training" / "logs"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def clips() -> Tensor:
    """The validation split, ``[480, 16, 3, 64, 64]`` uint8; the label of clip i is i % 16."""
    frames = np.stack([generate_clip("val", i).frames for i in range(480)])
    return torch.from_numpy(frames).permute(0, 1, 4, 2, 3).contiguous()


@pytest.fixture(scope="module")
def models() -> dict[str, TinyClassifier]:
    return {name: TinyClassifier.load(name) for name in NETWORKS}


def accuracy(
    model: TinyClassifier,
    clips: Tensor,
    change: Callable[[Tensor], Tensor] = lambda x: x,
    table: tuple[int, ...] = tuple(range(16)),
) -> float:
    labels = torch.tensor(table).repeat(len(clips) // 16)
    right = 0
    with torch.no_grad():
        for i in range(0, len(clips), 32):
            scores = model.logits(change(clips[i : i + 32].float() / 255.0))
            right += int((scores[:, 0].argmax(dim=1) == labels[i : i + 32]).sum())
    return right / len(clips)


def sign_attack(model: TinyClassifier, x: Tensor, y: Tensor, eps: float, steps: int) -> Tensor:
    """Iterated sign-gradient ascent on the cross-entropy, rounded to eight bits."""
    adv = x
    step = max(eps / 4.0, 1.0 / 255.0)
    for _ in range(steps):
        adv = adv.detach().requires_grad_(True)
        loss = F.cross_entropy(model.logits(adv)[:, 0], y, reduction="sum")
        (grad,) = torch.autograd.grad(loss, adv)
        adv = torch.minimum(torch.maximum(adv + step * grad.sign(), x - eps), x + eps)
        adv = adv.clamp(0.0, 1.0)
    return (adv.detach() * 255.0).round() / 255.0


@pytest.mark.parametrize("name", list(NETWORKS))
def test_accuracy_is_what_is_claimed(
    name: str, models: dict[str, TinyClassifier], clips: Tensor
) -> None:
    measured = accuracy(models[name], clips)
    assert measured >= CLAIMED[name]
    if LOGS.is_dir():
        last = json.loads((LOGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        assert measured == pytest.approx(last["val_accuracy"], abs=1.5 / 480)


@pytest.mark.skipif(not LOGS.is_dir(), reason="the training logs are in the repository only")
@pytest.mark.parametrize("name", list(NETWORKS))
def test_log_belongs_to_the_file(name: str) -> None:
    lines = (LOGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    content = weight_bytes(name)
    assert last["sha256"] == hashlib.sha256(content).hexdigest()
    assert last["bytes"] == len(content) <= 2 * 1024 * 1024
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    about = json.loads(header["__metadata__"][name])
    assert about["generator"] == first["generator"] == "motion/v1"
    assert about["seed"] == first["seed"]
    assert last.get("same_predictions", 1.0) >= 0.99


def test_weight_folder_is_small_and_holds_nothing_else() -> None:
    found = [p for p in (files("vcr_models") / "weights").iterdir() if p.name != "__init__.py"]
    tiny = [p for p in found if p.name.startswith("tiny-")]
    assert {p.name for p in tiny} == {f"{name}.safetensors" for name in NETWORKS}
    assert sum(len(p.read_bytes()) for p in tiny) <= 12 * 1024 * 1024


@pytest.mark.parametrize("name", TEMPORAL)
def test_temporal_evidence_is_necessary(
    name: str, models: dict[str, TinyClassifier], clips: Tensor
) -> None:
    model = models[name]
    half = clips[:240]
    clean = accuracy(model, half)
    order = torch.from_numpy(np.random.default_rng(0).permutation(16))
    assert accuracy(model, half, lambda x: x[:, order]) <= 0.5
    backwards = accuracy(model, half, lambda x: x.flip(1))
    assert backwards == pytest.approx(4 / 16, abs=0.06)
    mapped = accuracy(model, half, lambda x: x.flip(1), TIME_REVERSAL)
    assert mapped == pytest.approx(clean, abs=0.05)
    frozen = accuracy(model, half, lambda x: x[:, 8:9].expand_as(x))
    # Not exactly chance: rotating shapes are never round, and a blinking one may be absent.
    assert frozen == pytest.approx(1 / 16, abs=0.05)


def test_adversarial_training_helps(models: dict[str, TinyClassifier], clips: Tensor) -> None:
    x = clips[:48].float() / 255.0
    y = torch.arange(48) % 16
    robust = {}
    for name in ("tiny-r3d", "tiny-r3d.adv"):
        adv = sign_attack(models[name], x, y, 4 / 255, 10)
        assert float((adv - x).abs().max()) <= 4 / 255 + 1e-6
        with torch.no_grad():
            right = models[name].logits(adv)[:, 0].argmax(dim=1) == y
        robust[name] = float(right.float().mean())
    assert robust["tiny-r3d.adv"] >= robust["tiny-r3d"] + 0.3


def test_random_noise_of_the_same_size_is_harmless(
    models: dict[str, TinyClassifier], clips: Tensor
) -> None:
    rng = torch.Generator().manual_seed(0)

    def noisy(x: Tensor) -> Tensor:
        sign = torch.randint(0, 2, x.shape, generator=rng) * 2 - 1
        return (x + sign * 4 / 255).clamp(0.0, 1.0)

    model = models["tiny-r3d"]
    assert accuracy(model, clips[:160], noisy) >= accuracy(model, clips[:160]) - 0.03


@pytest.mark.parametrize("name", list(NETWORKS))
@pytest.mark.parametrize("size", [(64, 64), (65, 97), (240, 321), (400, 64), (113, 80), (40, 33)])
def test_any_resolution(
    name: str, size: tuple[int, int], models: dict[str, TinyClassifier]
) -> None:
    x = torch.rand(1, 16, 3, *size, generator=torch.Generator().manual_seed(0))
    x.requires_grad_(True)
    scores = models[name].logits(x)
    assert scores.shape == (1, 1, 16)
    assert scores.isfinite().all()
    (grad,) = torch.autograd.grad(scores.logsumexp(-1).sum(), x)
    assert grad.isfinite().all()
    assert float(grad.abs().max()) > 0.0


def test_resize_keeps_the_right_size_and_crops_the_centre() -> None:
    x = torch.rand(1, 2, 3, 64, 64)
    assert resize_and_crop(x) is x
    wide = torch.zeros(1, 2, 3, 64, 128)
    wide[..., 32:96] = x
    assert torch.equal(resize_and_crop(wide), x)
    large = F.interpolate(x[0], size=(128, 128), mode="nearest")[None]
    assert torch.allclose(resize_and_crop(large), x, atol=1e-6)
    for size in ((65, 64), (399, 131), (64, 400), (71, 355)):
        assert resize_and_crop(torch.zeros(1, 2, 3, *size)).shape == (1, 2, 3, 64, 64)
    assert torch.allclose(pool(x)[0, 0, 0, 0, 0], x[0, 0, 0, :2, :2].mean())


def test_accuracy_survives_another_resolution(
    models: dict[str, TinyClassifier], clips: Tensor
) -> None:
    model = models["tiny-r3d"]

    def larger(x: Tensor) -> Tensor:
        frames = F.interpolate(x.flatten(0, 1), size=(96, 96), mode="bilinear")
        return frames.reshape(*x.shape[:3], 96, 96)

    assert accuracy(model, clips[:96], larger) >= accuracy(model, clips[:96]) - 0.05


@pytest.mark.parametrize("name", list(NETWORKS))
def test_contract(name: str, models: dict[str, TinyClassifier]) -> None:
    model = models[name]
    assert isinstance(model, VideoClassifier)
    assert model.labels.names == MOTION_LABELS
    assert (model.clip.frames, model.clip.size, model.clip.crops) == (16, 64, 1)
    assert model.to("cpu") is model
    assert not model.network.training
    assert not any(p.requires_grad for p in model.network.parameters())
    for shape in ((16, 3, 64, 64), (1, 8, 3, 64, 64), (1, 16, 1, 64, 64)):
        with pytest.raises(ValueError, match="expected clips"):
            model.logits(torch.zeros(shape))


@pytest.mark.parametrize("name", list(NETWORKS))
def test_rows_do_not_depend_on_their_neighbours(
    name: str, models: dict[str, TinyClassifier], clips: Tensor
) -> None:
    x = clips[:4].float() / 255.0
    with torch.no_grad():
        together = models[name].logits(x)
        alone = torch.cat([models[name].logits(clip[None]) for clip in x])
    assert torch.allclose(together, alone, atol=1e-4)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_loading_is_strict(name: str) -> None:
    tensors = load(weight_bytes(name))
    dropped = dict(tensors)
    dropped.pop("head.bias")
    with pytest.raises(RuntimeError, match="Missing key"):
        build_network(name, save(dropped))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        build_network(name, save(tensors | {"extra": torch.zeros(1)}))
    with pytest.raises(RuntimeError, match="size mismatch"):
        build_network(name, save(tensors | {"head.bias": torch.zeros(15)}))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown tiny model"):
        weight_bytes("tiny-c3d")
    with pytest.raises(ValueError, match="unknown tiny network"):
        build_network("tiny-c3d")


def test_weights_of_a_spec_are_checked() -> None:
    url = "package:vcr_models/weights/tiny-r3d.adv.safetensors"
    digest = hashlib.sha256(weight_bytes("tiny-r3d.adv")).hexdigest()
    from_weights(WeightSpec(url=url, sha256=digest))
    for wrong in (
        WeightSpec(url=url, sha256="0" * 64),
        WeightSpec(url="package:vcr_models/weights/tiny-c3d.safetensors"),
        WeightSpec(url="package:elsewhere/weights/tiny-r3d.safetensors"),
        WeightSpec(),
    ):
        with pytest.raises(ComponentUnavailable, match=r"sha256|no bundled"):
            from_weights(wrong)


@pytest.mark.parametrize(
    ("name", "layer", "shape"),
    [
        ("tiny-r3d", "stage2", (2, 64, 4, 4, 4)),
        ("tiny-r2plus1d", "stage2", (2, 80, 4, 4, 4)),
        ("tiny-tsm", "norm3", (30, 96, 4, 4)),
        ("tiny-vit", "norm3", (2, 96, 8, 4, 4)),
        ("tiny-vit", "blocks", (2, 128, 96)),
        ("tiny-slowfast", "slow2", (2, 48, 4, 8, 8)),
        ("tiny-swin", "block3", (2, 8, 4, 4, 64)),
        ("tiny-timesformer", "block2", (2, 8, 16, 64)),
        ("tiny-x3d", "block3", (2, 48, 8, 4, 4)),
        ("tiny-uniformer", "local1", (2, 32, 8, 8, 8)),
    ],
)
def test_features(
    name: str, layer: str, shape: tuple[int, ...], models: dict[str, TinyClassifier]
) -> None:
    x = torch.rand(2, 16, 3, 64, 64, requires_grad=True)
    features = models[name].features(x, layer)
    assert tuple(features.shape) == shape
    (grad,) = torch.autograd.grad(features.square().sum(), x)
    assert float(grad.abs().max()) > 0.0
    with pytest.raises(ValueError, match="no layer"):
        models[name].features(x, "absent")
    hooks = [m for m in models[name].network.modules() if m._forward_hooks]
    assert hooks == []


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("tiny-r3d", "stage3"),
        ("tiny-r2plus1d", "stage3"),
        ("tiny-tsm", "norm4"),
        ("tiny-vit", "norm"),
        ("tiny-slowfast", "slow3"),
        ("tiny-swin", "norm"),
        ("tiny-timesformer", "norm"),
        ("tiny-x3d", "hidden"),
        ("tiny-uniformer", "norm"),
    ],
)
def test_feature_layers_are_offered_in_order(
    name: str, last: str, models: dict[str, TinyClassifier]
) -> None:
    offered = models[name].feature_layers
    assert offered[-1] == last
    assert "head" not in offered
    x = torch.rand(1, 16, 3, 64, 64)
    for layer in (offered[0], last):
        assert models[name].features(x, layer).numel() > 0


def seeded_input() -> Tensor:
    pixels = np.random.Generator(np.random.PCG64(7)).integers(0, 256, (1, 16, 3, 70, 90))
    return torch.from_numpy(pixels).float() / 255.0


@pytest.mark.golden
@pytest.mark.parametrize("name", list(NETWORKS))
def test_stored_logits(name: str, models: dict[str, TinyClassifier]) -> None:
    """A changed layer, normalisation or file shows here; the tolerance is for other kernels."""
    stored = json.loads(LOGITS.read_text(encoding="utf-8"))[name]
    with torch.no_grad():
        scores = models[name].logits(seeded_input())[0, 0]
    assert scores.tolist() == pytest.approx(stored, abs=2e-3, rel=1e-3)


def test_temporal_shift_moves_a_quarter_each_way() -> None:
    x = torch.arange(3.0)[:, None].expand(3, 8).reshape(3, 8, 1, 1) + 1.0
    y = temporal_shift(x, 3)[..., 0, 0]
    assert y[:, 0].tolist() == [2.0, 3.0, 0.0]
    assert y[:, 2].tolist() == [0.0, 1.0, 2.0]
    assert y[:, 4].tolist() == [1.0, 2.0, 3.0]
