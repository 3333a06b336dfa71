"""ssah: bands, losses, features and what it moves towards."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from vcr_attacks.params.perceptual import SsahParams
from vcr_attacks.ssah import (
    Ssah,
    dissimilarity,
    free_variables,
    low_band,
    pixels,
    pooled,
    versions,
)
from vcr_attacks.ssah_bank import BANK_FILE, FeatureBank, read_bank
from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.protocols import PrepareContext, VideoItem
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.threat import Linf, Unbounded

FREE = Unbounded(quantize=False)


@pytest.fixture
def layered(tiny, monkeypatch):
    """The tiny network with its hidden activations on offer."""

    def features(self, clips: Tensor, layer: str) -> Tensor:
        assert layer == "first"
        return torch.nn.functional.gelu(self.first(clips.transpose(1, 2) * 4 - 2))

    monkeypatch.setattr(type(tiny), "features", features, raising=False)
    monkeypatch.setattr(type(tiny), "feature_layers", ("first",), raising=False)
    return tiny


@pytest.mark.golden
def test_the_low_band_is_the_mean_of_blocks(videos):
    video = videos(2, 3, 3, 8, 6)
    low = low_band(video)
    block = video[..., 2:4, 4:6].mean((-2, -1))
    for row in (2, 3):
        for column in (4, 5):
            torch.testing.assert_close(low[..., row, column], block)
    torch.testing.assert_close(low_band(low), low)
    deep = low_band(video, temporal=True)
    torch.testing.assert_close(deep[:, 0], low[:, :2].mean(1))
    torch.testing.assert_close(deep[:, 1], deep[:, 0])
    torch.testing.assert_close(deep[:, 2], low[:, 2])


def test_odd_sizes_repeat_the_edge(videos):
    video = videos(1, 1, 3, 5, 7)
    low = low_band(video)
    assert low.shape == video.shape
    torch.testing.assert_close(low[..., 4, 6], video[..., 4, 6])
    torch.testing.assert_close(low[..., 4, 0], video[..., 4, :2].mean(-1))


def test_changes_within_blocks_are_free(videos):
    video = videos(1, 2, 3, 8, 6)
    signs = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(4, 3)
    torch.testing.assert_close(low_band(video + 0.1 * signs), low_band(video))


@pytest.mark.golden
def test_the_loss_at_the_start_and_its_ends():
    own = torch.tensor([[1.0, 0.0]])
    other = torch.tensor([[0.6, 0.8]])  # cosine 0.6
    value = float(dissimilarity(own, own, other, 0.2))
    assert value == pytest.approx(0.8 * 1 - (1.2 - 0.6) * 0.6)
    assert float(dissimilarity(other, own, other, 0.2)) == pytest.approx(0.4 * 0.6 - 0.2)
    assert float(dissimilarity(-own, own, other, 0.2)) == pytest.approx(1.8 * 0.6)
    assert float(dissimilarity(torch.tensor([[0.0, 1.0]]), own, other, 0.2)) == 0


def test_the_loss_pulls_away_from_the_own_and_to_the_other():
    own, other = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.5, 0.0, 1.0]])
    found = torch.tensor([[1.0, 0.3, 0.1]], requires_grad=True)
    (grad,) = torch.autograd.grad(dissimilarity(found, own, other, 0.2).sum(), found)
    found = found.detach()
    step = found - 0.1 * grad
    like = torch.nn.functional.cosine_similarity
    assert float(like(step, own)) < float(like(found, own))
    assert float(like(step, other)) > float(like(found, other))


def test_variables_and_pixels_are_inverse_and_finite():
    video = torch.linspace(0, 1, 256).view(1, 1, 1, 16, 16)
    free = free_variables(video)
    assert torch.isfinite(free).all()
    torch.testing.assert_close(pixels(free), video, rtol=0, atol=1e-6)


def test_pooling_keeps_videos_apart():
    assert pooled(torch.rand(4, 7), 2).shape == (2, 7)
    tokens = torch.rand(6, 5, 7)
    torch.testing.assert_close(pooled(tokens, 3)[1], tokens[2:4].mean((0, 1)))
    maps = torch.rand(6, 7, 2, 3, 4)
    torch.testing.assert_close(pooled(maps, 3)[2], maps[4:].mean((0, 2, 3, 4)))


def test_versions_hold_the_same_pixels_or_their_opposite(videos):
    video = videos(2, 3, 3, 4, 5)
    backwards, turned, still, inverted = versions(video)
    assert torch.equal(backwards[:, 0], video[:, 2])
    assert torch.equal(turned[..., 0, 0], video[..., -1, -1])
    assert torch.equal(still[:, 2], video[:, 0])
    torch.testing.assert_close(inverted + video, torch.ones_like(video))


def test_features_move_away_and_every_pass_is_metered(layered, contest, videos, labels_of):
    clean = videos(2, 3, 3, 16, 14)
    attack = Ssah(SsahParams(steps=6, keep="last", negatives="own"))
    outcome = contest(attack, layered, clean, labels_of(layered, clean), threat=FREE)
    # Own and four other features; six times features, their gradient and scores; one at the end.
    counts = {(m.forwards, m.backwards) for m in outcome.victim.meters}
    assert counts == {(5 + 6 * 2 + 1, 6)}
    own, first, last = (
        pooled(layered.features(video, "first"), 2)
        for video in (clean, outcome.points[0][1], outcome.result)
    )
    like = torch.nn.functional.cosine_similarity
    assert (like(own, last) < like(own, first)).all()


def test_more_weight_leaves_less_in_low_frequencies(layered, contest, videos, labels_of):
    clean = videos(1, 3, 3, 16, 14)
    labels = labels_of(layered, clean)
    energies = []
    for weight in (0.0, 0.1, 10.0):
        attack = Ssah(SsahParams(weight=weight, keep="last", negatives="own"))
        change = contest(attack, layered, clean, labels, threat=FREE).result - clean
        energies.append(float(low_band(change).square().sum()))
    assert energies[0] > 2 * energies[1] > 4 * energies[2] > 0


def test_a_single_video_has_no_batch_to_look_at(layered, contest, videos):
    attack = Ssah(SsahParams(steps=2, negatives="batch"))
    with pytest.raises(IncompatibleComponents, match="negatives"):
        contest(attack, layered, videos(1, 3, 3, 12, 10), [0], threat=FREE)
    outcome = contest(attack, layered, videos(2, 3, 3, 12, 10), [0, 0], threat=FREE)
    assert outcome.victim.meters[0].forwards == 1 + 2 * 2 + 1


def test_models_without_the_layer_are_named(tiny, layered, contest, videos, monkeypatch):
    clean = videos(1, 3, 3, 12, 10)
    with pytest.raises(NotAvailable, match=r"'absent'.*offers first"):
        contest(
            Ssah(SsahParams(features="absent", negatives="own")), layered, clean, [0], threat=FREE
        )
    monkeypatch.setattr(type(tiny), "feature_layers", (), raising=False)
    with pytest.raises(NotAvailable, match=r"'logits'"):
        contest(Ssah(SsahParams(negatives="own")), tiny, clean, [0], threat=FREE)


@pytest.mark.parametrize("budget", [1, 4, 7, 1000])
def test_budgets_are_kept(budget, layered, contest, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    labels = labels_of(layered, clean)
    attack = Ssah(SsahParams(negatives="own"))
    outcome = contest(attack, layered, clean, labels, max_forwards=budget, threat=Linf("8/255"))
    assert all(m.forwards <= budget for m in outcome.victim.meters)


def reference(folder, model, clean, labels, **more):
    """Return a context of an offline step over these videos."""
    folder.mkdir(exist_ok=True)
    pixels = (clean * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    items = [
        VideoItem(f"r/{i}", label, ArraySource(f"r/{i}", clip))
        for i, (label, clip) in enumerate(zip(labels, pixels, strict=True))
    ]
    return PrepareContext(folder, items, 3, model, FREE, **more)


def test_the_bank_holds_what_the_model_sees(tmp_path, layered, videos):
    seen, labels = videos(5, 3, 3, 12, 10, seed=4), [0, 1, 2, 0, 1]
    ctx = reference(tmp_path, layered, seen, labels)
    Ssah().prepare(ctx)
    bank = read_bank(tmp_path)
    with torch.no_grad():
        expected = pooled(layered.features(seen, "first"), 5)
        chances = layered.logits(seen)[:, 0].softmax(1)
    torch.testing.assert_close(bank.features, expected)
    assert bank.labels.tolist() == labels
    torch.testing.assert_close(bank.confidence, chances[range(5), labels])
    assert ctx.facts == {"layer": "first", "classes": [0, 1, 2], "dimensions": 6}
    assert sum(m.forwards for m in ctx.meters[""]) == 2 * 5
    assert not any(m.backwards for m in ctx.meters[""])


def test_preparing_goes_on_where_it_was_stopped(tmp_path, layered, videos):
    seen, labels = videos(18, 3, 3, 8, 8, seed=4), [0, 1, 2] * 6

    class Cut(Exception):
        pass

    def cut(done, total):
        if done == 17:
            raise Cut

    whole = reference(tmp_path / "one", layered, seen, labels)
    Ssah().prepare(whole)
    with pytest.raises(Cut):
        Ssah().prepare(reference(tmp_path / "cut", layered, seen, labels, progress=cut))
    again = reference(tmp_path / "cut", layered, seen, labels)
    Ssah().prepare(again)
    assert sum(m.forwards for m in again.meters[""]) == 2 * 2
    assert [p.name for p in (tmp_path / "cut").iterdir()] == [BANK_FILE]
    files = [tmp_path / name / BANK_FILE for name in ("one", "cut")]
    assert files[0].read_bytes() == files[1].read_bytes()
    Ssah().prepare(again)  # nothing is left to do
    assert sum(m.forwards for m in again.meters[""]) == 2 * 2


@pytest.mark.golden
def test_which_reference_video_is_chosen():
    features = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.1], [3.0, 3.0]])
    bank = FeatureBank(features, torch.tensor([0, 1, 1, 0]), torch.tensor([0.3, 0.4, 0.9, 0.2]))
    own = torch.tensor([[2.0, 0.0], [-1.0, -1.0]])
    assert torch.equal(bank.least_similar(own), features[[2, 3]])
    assert torch.equal(bank.surest(torch.tensor([1, 0]), own), features[[2, 0]])
    with pytest.raises(NotAvailable, match=r"class 2.*0, 1.*prepare.videos"):
        bank.surest(torch.tensor([1, 2]), own)


def test_a_target_draws_the_features_to_its_class(tmp_path, layered, contest, videos, labels_of):
    seen = torch.cat([videos(2, 3, 3, 16, 14, seed=4), 1 - 0.2 * videos(1, 3, 3, 16, 14, seed=5)])
    Ssah().prepare(reference(tmp_path, layered, seen, [0, 1, 2]))
    clean = videos(2, 3, 3, 16, 14)
    labels = labels_of(layered, clean)
    attack = Ssah(SsahParams(steps=10, keep="last", weight=0.0))
    outcome = contest(attack, layered, clean, labels, targets=[2, 2], threat=FREE, folder=tmp_path)
    assert {m.forwards for m in outcome.victim.meters} == {1 + 10 * 2 + 1}
    goal = read_bank(tmp_path).features[2:]
    like = torch.nn.functional.cosine_similarity
    before, after = (
        like(pooled(layered.features(v, "first"), 2), goal) for v in (clean, outcome.result)
    )
    assert (after > before).all()
    with pytest.raises(NotAvailable, match="class 4"):
        contest(attack, layered, clean, labels, targets=[2, 4], threat=FREE, folder=tmp_path)


@pytest.mark.parametrize("negatives", ["own", "batch"])
def test_targets_need_the_bank(negatives, layered, contest, videos):
    attack = Ssah(SsahParams(negatives=negatives))
    with pytest.raises(IncompatibleComponents, match="negatives = 'bank'"):
        contest(attack, layered, videos(2, 3, 3, 8, 8), [0, 0], targets=[1, 1], threat=FREE)


def test_it_refuses_without_a_bank(tmp_path, layered, contest, videos):
    with pytest.raises(NotAvailable, match="vcr prepare ssah"):
        contest(Ssah(), layered, videos(1, 3, 3, 8, 8), [0], threat=FREE, folder=tmp_path)


def test_a_result_does_not_depend_on_the_batch(tmp_path, layered, contest, videos):
    Ssah().prepare(reference(tmp_path, layered, videos(4, 3, 3, 12, 10, seed=4), [0, 1, 2, 0]))
    clean = videos(2, 3, 3, 12, 10)
    attack = Ssah(SsahParams(steps=4))
    ids = ["a", "b"]
    both = contest(attack, layered, clean, [0, 1], threat=FREE, folder=tmp_path, ids=ids).result
    alone = contest(
        attack, layered, clean[1:], [1], threat=FREE, folder=tmp_path, ids=ids[1:]
    ).result
    torch.testing.assert_close(both[1:], alone, rtol=0, atol=1e-5)
