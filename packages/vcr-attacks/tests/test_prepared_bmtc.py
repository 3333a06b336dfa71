"""BMTC: mixtures, the mixer's learning, consistency, and the steps on a surrogate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load
from vcr_attacks.backgrounds import background_of, collect, fitted, mixture
from vcr_attacks.bmtc import Bmtc
from vcr_attacks.consistency import agreement
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.mixer import Mixer, features
from vcr_attacks.mixer_training import _Training
from vcr_attacks.params.gradient import IfgsmParams
from vcr_attacks.params.prepared import BmtcParams
from vcr_core.errors import NotAvailable
from vcr_core.preparing import load_items
from vcr_core.protocols import PrepareContext, VideoItem
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.threat import Linf

EPS = 8 / 255


def items_of(videos, labels):
    pixels = (videos * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    return [
        VideoItem(f"t/{i}", label, ArraySource(f"t/{i}", clip))
        for i, (label, clip) in enumerate(zip(labels, pixels, strict=True))
    ]


def context(folder, model, items, threat=None, **more):
    folder.mkdir(exist_ok=True)
    more.setdefault("surrogates", lambda _name: model)
    return PrepareContext(folder, items, 3, model, threat or Linf(EPS), **more)


@pytest.fixture
def trained(tmp_path, tiny, videos):
    """Return a folder that was prepared on six videos of the tiny model."""
    clean = videos(6, 3, 3, 10, 12, seed=2)
    ctx = context(tmp_path, tiny, items_of(clean, [0, 1, 2, 0, 1, 2]))
    tiny.clip = replace(tiny.clip, size=8)
    Bmtc(BmtcParams(mixer_epochs=2, mixer_batch=2)).prepare(ctx)
    return tmp_path


def test_mixture_moves_by_at_most_its_share(videos):
    clean, backgrounds = videos(2, 3, 3, 8, 8), videos(4, 3, 8, 8, seed=1)
    actions = torch.tensor([[0, 1, 2], [3, 3, 0]])
    mixed = mixture(clean, backgrounds, actions, 0.8)
    assert (mixed - clean).abs().max() <= 0.2
    assert torch.allclose(mixed[1, 1], 0.8 * clean[1, 1] + 0.2 * backgrounds[3])
    assert torch.equal(mixture(clean, backgrounds, actions, 1.0), clean)


def test_background_is_what_does_not_move():
    still = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(0))
    video = still.expand(7, 3, 8, 8).clone()
    for t in range(7):
        video[t, :, t, :2] = 1 - still[:, t, :2]
    assert torch.equal(background_of(video), still)


def test_collect_takes_one_video_of_each_class(tmp_path, tiny, videos):
    tiny.clip = replace(tiny.clip, size=8)
    clean = videos(5, 3, 3, 8, 8)
    ctx = context(tmp_path, tiny, items_of(clean, [4, 4, 1, 0, 1]))
    backgrounds, classes = collect(ctx, 400)
    assert classes == [0, 1, 4]
    assert backgrounds.dtype == torch.uint8
    medians = (torch.stack([background_of(v) for v in clean]) * 255).round().to(torch.uint8)
    assert torch.equal(backgrounds[0], medians[3])
    assert any(torch.equal(backgrounds[2], medians[i]) for i in (0, 1))
    assert collect(ctx, 2)[1] == [0, 1]
    assert fitted(backgrounds, videos(1, 1, 3, 5, 9)).shape == (3, 3, 5, 9)


@pytest.mark.parametrize("seed", range(5))
def test_bandit_prefers_what_is_rewarded(seed):
    mixer = Mixer.uniform(2, 1)
    seen = torch.zeros(4, 1, 1)
    random = torch.Generator().manual_seed(seed)
    usual = 0.5
    for _ in range(200):
        chances = mixer.logits(seen).softmax(-1)
        actions = torch.multinomial(chances.flatten(0, 1), 1, generator=random).view(4, 1)
        reward = actions[:, 0].float()
        mixer.learn(seen, actions, reward - usual, rate=0.1, momentum=0.9)
        usual += 0.1 * (float(reward.mean()) - usual)
    assert mixer.logits(seen).softmax(-1)[0, 0, 1] > 0.9


def test_policy_gradient_is_that_of_autograd():
    random = torch.Generator().manual_seed(1)
    mixer = Mixer.uniform(3, 4)
    mixer.weight = torch.randn(3, 4, generator=random)
    mixer.bias = torch.randn(3, generator=random)
    mixer.spread = torch.tensor(1.0)
    seen, advantage = torch.randn(2, 5, 4, generator=random), torch.tensor([0.8, -0.7])
    actions = torch.randint(0, 3, (2, 5), generator=random)
    weight = mixer.weight.clone().requires_grad_()
    chosen = (seen @ weight.T + mixer.bias).log_softmax(-1).gather(-1, actions[..., None])[..., 0]
    spread = 1 + 0.1 * (advantage.square().mean() - 1)
    loss = -(chosen.sum(1) * advantage).mean() / spread.sqrt()
    (grad,) = torch.autograd.grad(loss, weight)
    mixer.learn(seen, actions, advantage, rate=0.5, momentum=0.9)
    assert torch.allclose(weight.detach() - 0.5 * grad, mixer.weight, atol=1e-6)


def test_agreement_of_equal_opposite_and_missing_gradients():
    one = torch.randn(1, 1, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    same, opposite = torch.cat([one, 1e-20 * one], 1), torch.cat([one, -3 * one], 1)
    assert (1 - agreement(same)).item() == pytest.approx(0, abs=1e-6)
    assert (1 - agreement(opposite)).item() == pytest.approx(2, abs=1e-6)
    assert agreement(torch.cat([one, 0 * one], 1)).item() == 0
    assert agreement(one).shape == (1, 0)


def test_consistency_raises_the_agreement_of_the_surrogates_gradients(
    trained, tiny, contest, videos, labels_of
):
    clean = videos(4, 3, 3, 10, 12, seed=8)
    labels = labels_of(tiny, clean)

    def left(weight):
        params = BmtcParams(consistency=weight, gamma=1.0)
        outcome = contest(
            Bmtc(params), tiny, clean, labels, access="transfer", threat=Linf(EPS),
            folder=trained, surrogates={"tiny-r3d": tiny},
        )  # fmt: skip
        stand_in = outcome.surrogates["tiny-r3d"]
        costs = [(m.forwards, m.backwards) for m in stand_in.meters]
        grads = stand_in.loss_and_grad(outcome.result).grad
        return agreement(grads).mean().item(), costs

    plain, cheap = left(0.0)
    aligned, dear = left(100.0)
    assert aligned > plain
    assert cheap == [(10, 10)] * 4
    assert dear == [(10, 20)] * 4


def test_without_background_and_consistency_it_is_ifgsm_on_the_surrogate(
    trained, tiny, contest, videos, labels_of
):
    clean = videos(3, 3, 3, 10, 12, seed=8)
    labels = labels_of(tiny, clean)
    threat = Linf(EPS, quantize=False)
    params = BmtcParams(gamma=1.0, consistency=0.0)
    ours = contest(Bmtc(params), tiny, clean, labels, access="transfer", threat=threat,
                   folder=trained, surrogates={"tiny-r3d": tiny})  # fmt: skip
    ifgsm = Ifgsm(IfgsmParams(steps=10, step=EPS / 10, keep="last"))
    theirs = contest(ifgsm, tiny, clean, labels, threat=threat)
    assert torch.equal(ours.result, theirs.result)


def test_ball_is_around_the_clean_video_and_the_victim_is_never_asked(
    trained, tiny, contest, videos
):
    clean = videos(3, 3, 3, 10, 12, seed=8)
    for threat in (Linf(EPS), Linf(EPS, frames=(0, 2), region=(0.0, 0.0, 0.5, 1.0))):
        for params in (BmtcParams(), BmtcParams(sample=True, guidance=0.5, step=0.1, gamma=0.1)):
            outcome = contest(
                Bmtc(params), tiny, clean, [0, 1, 2], access="transfer", threat=threat,
                folder=trained, surrogates={"tiny-r3d": tiny},
            )  # fmt: skip
            assert bool(threat.within(outcome.result, clean).all())
            assert not torch.equal(outcome.result, clean)
            assert [m.forwards for m in outcome.victim.meters] == [0, 0, 0]


def test_preparing_twice_or_after_an_interruption_gives_the_same_bytes(tmp_path, tiny, videos):
    tiny.clip = replace(tiny.clip, size=8)
    items = items_of(videos(6, 3, 3, 10, 12), [0, 1, 2, 0, 1, 2])
    params = BmtcParams(mixer_epochs=4, mixer_batch=2, auxiliaries=["other"], transfer_every=2)

    class Cut(Exception):
        pass

    def cut(done, total):
        if done > total // 2:
            raise Cut

    one = context(tmp_path / "one", tiny, items)
    Bmtc(params).prepare(one)
    with pytest.raises(Cut):
        Bmtc(params).prepare(context(tmp_path / "cut", tiny, items, progress=cut))
    Bmtc(params).prepare(context(tmp_path / "cut", tiny, items))
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["backgrounds.safetensors", "mixer.safetensors", "training.json"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    own = one.meters["tiny-r3d"]
    # A clean look at each video, and a gradient of each and every epoch.
    assert sum(m.forwards for m in own) == 6 + 4 * 6
    assert sum(m.backwards for m in own) == 4 * 6
    # Every second of the twelve steps asks the auxiliary model about two videos.
    assert sum(m.forwards for m in one.meters["other"]) == 6 * 2
    assert "" not in one.meters
    assert len(json.loads((tmp_path / "one" / "training.json").read_text())["rewards"]) == 4


def test_it_refuses_without_an_artifact(tmp_path, tiny, contest, videos):
    with pytest.raises(NotAvailable, match="vcr prepare bmtc"):
        contest(Bmtc(), tiny, videos(1, 3, 3, 8, 8), [0], access="transfer", folder=tmp_path)


def test_rewards_are_measured_against_what_a_video_usually_earns(tmp_path, tiny, videos):
    items = items_of(videos(2, 3, 3, 8, 8), [0, 1])
    training = _Training(BmtcParams(), context(tmp_path, tiny, items), torch.zeros(2, 3, 8, 8))
    training.mixer = Mixer.uniform(2, 4)
    seen, actions = torch.ones(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)
    # A look at each comes first, and what is as usual teaches nothing, however much it is.
    for _ in range(2):
        training._learn(("easy", "hard"), seen, actions, torch.tensor([9.0, 0.1]))
    assert training.mixer.weight.abs().max() == 0
    training._learn(("easy", "hard"), seen, actions, torch.tensor([9.0, 0.2]))
    assert (training.mixer.weight[0] > 0).all()
    assert training.expected == pytest.approx({"easy": 9.0, "hard": 0.13})


@pytest.mark.parametrize("name", ["tiny-r3d", "tiny-tsm", "tiny-vit"])
def test_the_learned_choice_beats_a_random_one(name):
    """On videos that the mixers (``tools/train_bmtc_mixers.py``) were not trained on."""
    import vcr_core as vcr

    pytest.importorskip("vcr_models")
    stored = load((Path(__file__).parent / "data" / "bmtc_mixers.safetensors").read_bytes())
    backgrounds = stored["backgrounds"]
    mixer = Mixer.uniform(*stored[f"{name}.weight"].shape)
    mixer.weight, mixer.bias = stored[f"{name}.weight"], stored[f"{name}.bias"]
    model = vcr.load("model", name)
    dataset = vcr.load("dataset", "motion", split="test")
    held_out = [dataset.item(video) for video in list(dataset.ids())[96:128]]
    (batch,) = load_items(model.clip, "cpu")(held_out)

    def label(videos):
        with torch.no_grad():
            return model.logits(videos)[:, 0].log_softmax(1).gather(1, batch.labels[:, None])

    def drop(actions):
        mixed = mixture(batch.videos, fitted(backgrounds, batch.videos), actions, 0.8)
        return float((label(batch.videos) - label(Linf(EPS).project(mixed, batch.videos))).mean())

    random = torch.Generator().manual_seed(0)
    shape = batch.videos.shape[:2]
    chance = [drop(torch.randint(0, len(backgrounds), shape, generator=random)) for _ in range(5)]
    assert drop(mixer.choice(features(batch.videos))) > max(chance)
