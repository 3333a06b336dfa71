"""The universal flicker, border and patch: invariants of their training and of their use."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load
from vcr_attacks.overlays import FlickeringUniversal, FramingUniversal, PatchUniversal
from vcr_attacks.params.overlays import (
    FlickeringUniversalParams,
    FramingUniversalParams,
    PatchUniversalParams,
)
from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.protocols import PrepareContext, VideoItem
from vcr_core.randomness import VideoRandom
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.threat import Linf, Unbounded

KINDS = {
    "flickering-universal": (FlickeringUniversal, FlickeringUniversalParams),
    "framing-universal": (FramingUniversal, FramingUniversalParams),
    "patch-universal": (PatchUniversal, PatchUniversalParams),
}


def items(count: int = 4) -> list[VideoItem]:
    model = LinearClassifier()
    made = []
    for i in range(count):
        noise = torch.randint(-1, 2, (4, 3, 32, 32), generator=torch.Generator().manual_seed(i))
        pixels = (model.video(i % 3) * 255 + noise).round().to(torch.uint8).permute(0, 2, 3, 1)
        made.append(VideoItem(f"train/{i}", i % 3, ArraySource(f"train/{i}", pixels.numpy())))
    return made


def prepare(folder, attack, *, threat=None, targets=None, progress=None):
    attack.prepare(
        PrepareContext(
            folder=folder, items=items(), seed=1, model=LinearClassifier(),
            threat=threat or Unbounded(), targets=targets,
            progress=progress or (lambda _done, _total: None),
        )
    )  # fmt: skip
    return load((folder / "delta.safetensors").read_bytes())["delta"]


@pytest.fixture
def scene():
    model = LinearClassifier()
    return model, torch.stack([model.video(y) for y in (0, 1, 2)])


@pytest.mark.parametrize("name", KINDS)
def test_the_same_for_all_videos_and_asked_once(name, contest, scene, tmp_path):
    model, clean = scene
    # A patch that lies in one place is learned in few passes.
    options = {"place": "center"} if name == "patch-universal" else {}
    attack = KINDS[name][0](KINDS[name][1](epochs=3, loss="ce", **options))
    delta = prepare(tmp_path, attack)
    assert len(delta) == 1
    assert delta.abs().sum() > 0
    outcome = contest(attack, model, clean, [0, 1, 2], threat=Unbounded(), folder=tmp_path)
    assert [(m.forwards, m.backwards) for m in outcome.victim.meters] == [(1, 0)] * 3
    report = json.loads((tmp_path / "training.json").read_text())
    assert len(report["curves"][0]) == 3
    losses = [loss for _, loss in report["curves"][0]]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", KINDS)
def test_stopping_and_going_on_leaves_the_same_bytes(name, tmp_path):
    class Stop(Exception):
        pass

    calls = 0

    def progress(_done: int, _total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Stop

    attack = KINDS[name][0](KINDS[name][1](epochs=4, batch=2, holdout=0.0))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir(), parts.mkdir()
    prepare(whole, attack)
    with pytest.raises(Stop):
        prepare(parts, attack, progress=progress)
    prepare(parts, attack)
    for file in ("delta.safetensors", "training.json"):
        assert (whole / file).read_bytes() == (parts / file).read_bytes()
    assert not (parts / "state.safetensors").exists()


@pytest.mark.parametrize("name", KINDS)
def test_targets_have_overlays_of_their_own(name, contest, scene, tmp_path):
    model, clean = scene
    attack = KINDS[name][0](KINDS[name][1](epochs=2))
    assert len(prepare(tmp_path, attack, targets=(2, 3))) == 2
    outcome = contest(
        attack, model, clean, [0, 1, 2], targets=[3, 3, 3], threat=Unbounded(), folder=tmp_path
    )
    p = [outcome.predict(v).exp()[:, 3] for v in (clean, outcome.result)]
    assert (p[1] > p[0]).all()
    with pytest.raises(NotAvailable, match="class 1"):
        contest(attack, model, clean, [0, 0, 2], targets=[1, 1, 1], threat=Unbounded(),
                folder=tmp_path)  # fmt: skip
    with pytest.raises(NotAvailable, match="targeted, and the run is untargeted"):
        contest(attack, model, clean, [0, 1, 2], threat=Unbounded(), folder=tmp_path)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_prepared_and_nothing_allowed(name, contest, scene, tmp_path):
    model, clean = scene
    attack = KINDS[name][0]()
    with pytest.raises(NotAvailable, match=f"vcr prepare {name}"):
        contest(attack, model, clean, [0, 1, 2], threat=Unbounded(), folder=tmp_path)


def test_a_flicker_is_bounded_and_its_radius_is_checked(contest, scene, tmp_path):
    model, clean = scene
    attack = FlickeringUniversal(FlickeringUniversalParams(epochs=6, lr=0.01))
    delta = prepare(tmp_path, attack, threat=Linf("4/255"))
    assert delta.shape == (1, 4, 3)
    assert delta.abs().max() <= 4 / 255 + 1e-7
    outcome = contest(attack, model, clean, [0, 1, 2], threat=Linf("4/255"), folder=tmp_path)
    moved = outcome.result - clean
    assert Linf("4/255").within(outcome.result, clean).all()
    torch.testing.assert_close(
        moved, delta[0, :, :, None, None].expand_as(moved), rtol=0, atol=1e-6
    )
    with pytest.raises(IncompatibleComponents, match="prepared for"):
        contest(attack, model, clean, [0, 1, 2], threat=Linf("8/255"), folder=tmp_path)
    free = FlickeringUniversal(FlickeringUniversalParams(epochs=6, lr=0.1, bound=0.05))
    (tmp_path / "free").mkdir()
    assert prepare(tmp_path / "free", free).abs().max() <= 0.05 + 1e-7


def test_offsets_are_rolled_and_repeated():
    attack = FlickeringUniversal()
    offsets = torch.arange(12.0).view(1, 4, 3).expand(3, 4, 3) / 100
    rolled = attack.shaken(offsets, VideoRandom([1, 2, 3]))
    turns = [offsets[0].roll(s, dims=0) for s in range(4)]
    assert all(any(torch.equal(r, t) for t in turns) for r in rolled)
    still = FlickeringUniversal(FlickeringUniversalParams(roll=False))
    assert torch.equal(still.shaken(offsets, VideoRandom([1, 2, 3])), offsets)
    video = torch.full((3, 6, 3, 2, 2), 0.2)
    laid = attack.laid(offsets, video, VideoRandom([1, 2, 3]))
    torch.testing.assert_close(laid[:, 4], laid[:, 0])
    torch.testing.assert_close(laid[:, 5], laid[:, 1])


def test_a_border_leaves_the_inside(contest, scene, tmp_path):
    model, clean = scene
    attack = FramingUniversal(FramingUniversalParams(epochs=2, width=3))
    assert prepare(tmp_path, attack).shape == (1, 1, 3, 32, 32)
    result = contest(attack, model, clean, [0, 1, 2], threat=Unbounded(), folder=tmp_path).result
    assert torch.equal(result[..., 3:-3, 3:-3], clean[..., 3:-3, 3:-3])
    border = result[..., :3, :]
    assert torch.equal(border, border[:1, :1].expand_as(border))
    other = attack.laid(torch.zeros(1, 1, 3, 32, 32), torch.rand(1, 5, 3, 9, 20), VideoRandom([0]))
    assert other.shape == (1, 5, 3, 9, 20)
    torch.testing.assert_close(other[..., :3], torch.full((1, 5, 3, 9, 3), 0.5))
    each = FramingUniversal(FramingUniversalParams(epochs=1, scope="frame"))
    (tmp_path / "each").mkdir()
    assert prepare(tmp_path / "each", each).shape == (1, 4, 3, 32, 32)


def test_a_patch_lies_where_the_video_draws(contest, scene, tmp_path):
    model, clean = scene
    attack = PatchUniversal(PatchUniversalParams(epochs=2, area=0.1))
    delta = prepare(tmp_path, attack)
    assert delta.shape == (1, 1, 3, 10, 10)
    result = contest(attack, model, clean, [0, 1, 2], threat=Unbounded(), folder=tmp_path).result
    shown = delta[0, 0].sigmoid()
    places = set()
    for video, before in zip(result, clean, strict=True):
        touched = (video != before).any(dim=1).any(dim=0)
        rows, columns = touched.any(1).nonzero().flatten(), touched.any(0).nonzero().flatten()
        top, left = int(rows[0]), int(columns[0])
        assert (len(rows), len(columns)) == (10, 10)
        places.add((top, left))
        for frame in video:
            torch.testing.assert_close(frame[:, top : top + 10, left : left + 10], shown)
    assert len(places) > 1
    middle = PatchUniversal(PatchUniversalParams(place="center"))
    laid = middle.laid(torch.zeros(1, 1, 3, 4, 4), torch.rand(1, 2, 3, 9, 15), VideoRandom([0]))
    assert laid.shape == (1, 2, 3, 9, 15)
    assert (laid[0, 0, 0, 3:6, 6:9] - 0.5).abs().max() < 1e-6


def test_frames_are_kept(contest, scene, tmp_path):
    model, clean = scene
    threat = Unbounded(frames=(1,))
    attack = PatchUniversal(PatchUniversalParams(epochs=1))
    prepare(tmp_path, attack, threat=threat)
    result = contest(attack, model, clean, [0, 1, 2], threat=threat, folder=tmp_path).result
    assert torch.equal(result[:, [0, 2, 3]], clean[:, [0, 2, 3]])
    assert not torch.equal(result[:, 1], clean[:, 1])
