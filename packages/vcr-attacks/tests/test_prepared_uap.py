"""The universal perturbation: invariants of its training and of its use."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load
from vcr_attacks.params.prepared import UapParams
from vcr_attacks.uap import Uap
from vcr_attacks.universal import place
from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.protocols import PrepareContext, VideoItem
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.threat import Linf

EPS = 4 / 255


def items_of(videos, labels):
    pixels = (videos * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    return [
        VideoItem(f"t/{i}", label, ArraySource(f"t/{i}", clip))
        for i, (label, clip) in enumerate(zip(labels, pixels, strict=True))
    ]


def context(folder, model, items, threat=None, **more):
    folder.mkdir(exist_ok=True)
    threat = threat or Linf(EPS, quantize=False)
    return PrepareContext(folder, items, 3, model, threat, **more)


def delta_of(folder):
    return load((folder / "delta.safetensors").read_bytes())["delta"]


@pytest.fixture
def toy(videos):
    """Return a linear model and training videos of its classes with noise."""
    model = LinearClassifier()
    labels = [0, 1, 2, 0, 1, 2]
    noise = torch.randint(-1, 2, (6, 4, 3, 32, 32), generator=torch.Generator().manual_seed(1))
    clean = torch.stack([model.video(y) for y in labels]) + noise / 255
    return model, clean, labels


@pytest.fixture
def binary(linear):
    """Return a linear model of two classes and videos of class 1, away from black and white."""
    weights = torch.randn(1, 2, 3, 8, 8, generator=torch.Generator().manual_seed(5)) / 20
    model = linear(weights, [3.0])
    model.clip = replace(model.clip, size=8)
    generator = torch.Generator().manual_seed(6)
    clean = torch.randint(26, 230, (6, 2, 3, 8, 8), generator=generator) / 255
    return model, weights[0], clean


def test_delta_of_a_linear_model_is_the_corner(tmp_path, binary):
    model, weights, clean = binary
    params = UapParams(epochs=4, batch=6, holdout=0.0, clip=1e9)
    Uap(params).prepare(context(tmp_path, model, items_of(clean, [1] * 6)))
    # Four sign steps of 1/255 reach the radius 4/255; a further one would change nothing.
    assert torch.allclose(delta_of(tmp_path)[0], -EPS * weights.sign(), atol=1e-7)


@pytest.mark.parametrize("algorithm", ["sgd", "deepfool"])
def test_delta_stays_in_the_ball_after_every_epoch(tmp_path, toy, algorithm):
    model, clean, labels = toy
    seen = []

    def watch(done, total):
        state = tmp_path / "state.safetensors"
        if state.exists():
            seen.append(float(load(state.read_bytes())["delta"].abs().max()))

    params = UapParams(algorithm=algorithm, epochs=6, batch=3, candidates=4)
    Uap(params).prepare(context(tmp_path, model, items_of(clean, labels), progress=watch))
    assert seen
    assert max(seen) <= EPS + 1e-9
    assert 0 < float(delta_of(tmp_path).abs().max()) <= EPS + 1e-9


@pytest.mark.parametrize("algorithm", ["sgd", "deepfool"])
def test_training_fools_videos_that_it_has_not_seen(tmp_path, toy, contest, algorithm):
    model, clean, labels = toy
    threat = Linf("6/255")
    attack = Uap(UapParams(algorithm=algorithm, batch=3, candidates=4, holdout=0.0))
    attack.prepare(context(tmp_path, model, items_of(clean, labels), threat))
    fresh = torch.stack([model.video(y) for y in (2, 1, 0)])
    outcome = contest(attack, model, fresh, [2, 1, 0], threat=threat, folder=tmp_path)
    fooled = outcome.predict(outcome.result).argmax(1) != torch.tensor([2, 1, 0])
    # DeepFool stops at the boundary of each video, so it need not carry over to all.
    assert fooled.sum() >= (3 if algorithm == "sgd" else 1)
    assert [m.forwards for m in outcome.victim.meters] == [1, 1, 1]
    assert [m.backwards for m in outcome.victim.meters] == [0, 0, 0]


def test_every_video_and_view_gets_the_same_difference(tmp_path, toy, contest, videos):
    model, clean, labels = toy
    attack = Uap(UapParams(epochs=3))
    attack.prepare(context(tmp_path, model, items_of(clean, labels)))
    grey = videos(3, 4, 3, 32, 32, seed=9)
    threat = Linf(EPS, quantize=False)
    result = contest(attack, model, grey, [0, 1, 2], threat=threat, views=2, folder=tmp_path).result
    differences = result - grey
    assert torch.allclose(differences[0], differences[1], atol=1e-6)
    assert torch.allclose(differences[0], differences[2], atol=1e-6)
    assert torch.allclose(differences[0], delta_of(tmp_path)[0], atol=1e-6)


def test_preparing_twice_or_after_an_interruption_gives_the_same_bytes(tmp_path, toy):
    model, clean, labels = toy
    params = UapParams(epochs=4, batch=2)
    for name in ("one", "two", "cut"):
        (tmp_path / name).mkdir()

    class Cut(Exception):
        pass

    def cut(done, total):
        if (tmp_path / "cut" / "state.safetensors").exists() and done > total // 2:
            raise Cut

    Uap(params).prepare(context(tmp_path / "one", model, items_of(clean, labels)))
    Uap(params).prepare(context(tmp_path / "two", model, items_of(clean, labels)))
    with pytest.raises(Cut):
        Uap(params).prepare(context(tmp_path / "cut", model, items_of(clean, labels), progress=cut))
    assert not (tmp_path / "cut" / "delta.safetensors").exists()
    Uap(params).prepare(context(tmp_path / "cut", model, items_of(clean, labels)))
    for file in ("delta.safetensors", "training.json"):
        first = (tmp_path / "one" / file).read_bytes()
        assert (tmp_path / "two" / file).read_bytes() == first
        assert (tmp_path / "cut" / file).read_bytes() == first
    assert not (tmp_path / "cut" / "state.safetensors").exists()


def test_it_refuses_without_an_artifact_and_with_another_radius(tmp_path, toy, contest):
    model, clean, labels = toy
    attack = Uap(UapParams(epochs=1))
    with pytest.raises(NotAvailable, match="vcr prepare uap"):
        contest(attack, model, clean, labels, folder=tmp_path)
    attack.prepare(context(tmp_path, model, items_of(clean, labels)))
    with pytest.raises(IncompatibleComponents, match="prepared for"):
        contest(attack, model, clean, labels, threat=Linf("8/255"), folder=tmp_path)
    with pytest.raises(NotAvailable, match="is untargeted, and the run is targeted"):
        contest(attack, model, clean, labels, targets=[3] * 6, threat=Linf(EPS), folder=tmp_path)


def test_targeted_perturbations_are_chosen_by_target(tmp_path, toy, contest):
    model, clean, labels = toy
    threat = Linf("8/255")
    attack = Uap(UapParams(epochs=8, batch=3))
    attack.prepare(context(tmp_path, model, items_of(clean, labels), threat, targets=(1, 3)))
    targets = [3, 3, 1]
    outcome = contest(
        attack, model, clean[:3], labels[:3], targets=targets, threat=threat, folder=tmp_path
    )
    assert outcome.predict(outcome.result).argmax(1).tolist() == targets
    with pytest.raises(NotAvailable, match="class 2"):
        contest(attack, model, clean[:1], labels[:1], targets=[2], threat=threat, folder=tmp_path)
    with pytest.raises(IncompatibleComponents, match="untargeted"):
        Uap(UapParams(algorithm="deepfool")).prepare(
            context(tmp_path / "other", model, items_of(clean, labels), threat, targets=(1,))
        )


def test_place_keeps_constants_and_never_grows():
    constant = torch.full((1, 2, 3, 8, 8), 0.02)
    for frames, size in ((2, (8, 8)), (5, (7, 13)), (1, (16, 30))):
        placed = place(constant, frames, size)
        assert placed.shape == (1, frames, 3, *size)
        assert torch.allclose(placed, torch.full_like(placed, 0.02), atol=1e-8)
    rough = torch.randn(1, 2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    assert place(rough, 4, (9, 31)).abs().max() <= rough.abs().max() + 1e-6
    assert torch.equal(place(rough, 5, (8, 8))[:, 2:4], rough)


def test_masked_pixels_stay(tmp_path, toy, contest):
    model, clean, labels = toy
    threat = Linf(EPS, frames=(1,), region=(0.0, 0.0, 0.5, 1.0))
    attack = Uap(UapParams(epochs=3))
    attack.prepare(context(tmp_path, model, items_of(clean, labels), threat))
    result = contest(attack, model, clean, labels, threat=threat, folder=tmp_path).result
    changed = (result != clean).any(dim=2).any(dim=0)
    assert changed[1, :16].any()
    changed[1, :16] = False
    assert not changed.any()


def test_cost_and_curve_are_told(tmp_path, toy):
    model, clean, labels = toy
    ctx = context(tmp_path, model, items_of(clean, labels))
    Uap(UapParams(epochs=3, batch=2, holdout=0.34)).prepare(ctx)
    own = ctx.meters[""]
    # Two of six videos only judge: a clean look, and one each epoch.
    assert sum(m.backwards for m in own) == 3 * 4
    assert sum(m.forwards for m in own) == 3 * 4 + 2 + 3 * 2
    report = json.loads((tmp_path / "training.json").read_text())
    assert len(report["curves"][0]) == 3
    assert ctx.facts["curves"][0][-1][0] == report["curves"][0][-1][0]


def test_training_ends_at_the_fooling_rate(tmp_path, toy):
    model, clean, labels = toy
    ctx = context(tmp_path, model, items_of(clean, labels), Linf("8/255"))
    Uap(UapParams(epochs=50, batch=2, stop_rate=0.5)).prepare(ctx)
    (curve,) = json.loads((tmp_path / "training.json").read_text())["curves"]
    assert curve[-1][0] >= 0.5
    assert all(rate < 0.5 for rate, _ in curve[:-1])
    assert len(curve) < 50
