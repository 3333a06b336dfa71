"""NES: the estimate, whole pairs, costs, budgets and what its options change."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.cells import Cells
from vcr_attacks.nes import Nes, NesSlope, NesTiled
from vcr_attacks.params.query import NesParams, NesTiledParams
from vcr_attacks.query_loop import Queries, Steps
from vcr_core.adaptive import View
from vcr_core.errors import ContractViolation, IncompatibleComponents
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel
from vcr_core.randomness import VideoRandom
from vcr_core.threat import L1, L2, Linf
from vcr_core.victim import Rules, Victim

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


def queries_on(model, clean, labels, threat=EXACT, **rules):
    goals = Goals(torch.tensor(labels))
    victim = Victim(
        View(GuardedModel(model), torch.arange(clean.shape[1]).view(1, -1)), clean, goals, threat,
        ids=[str(i) for i in range(len(clean))], seed=1,
        rules=Rules(access="score", stop="budget", **rules),
    )  # fmt: skip
    return Queries(victim, goals, threat, clean, "margin")


@pytest.mark.golden
def test_estimate_is_as_close_to_the_gradient_as_its_dimension_allows(linear, videos):
    w = torch.randn(1, 2, 3, 10, 10, generator=torch.Generator().manual_seed(0)) / 10
    clean = videos(1, 2, 3, 10, 10)
    rows = torch.tensor([0])
    cosines = []
    for seed in range(20):
        slope = NesSlope(
            queries_on(linear(w, [50.0]), clean, [1]), Cells(clean), VideoRandom([seed]),
            pairs=25, sigma=1e-3, momentum=0.0,
        )(clean, rows)  # fmt: skip
        cosines.append(float((slope * w).sum() / slope.norm() / w.norm()))
    expected = (25 / (25 + w.numel())) ** 0.5
    assert sum(cosines) / 20 == pytest.approx(expected, rel=0.3)


def test_estimate_of_a_linear_loss_does_not_depend_on_sigma(linear, videos):
    w = torch.randn(1, 2, 3, 6, 6, generator=torch.Generator().manual_seed(0)) / 4
    clean = videos(1, 2, 3, 6, 6)
    model, rows = linear(w, [1.0]), torch.tensor([0])
    first, second = (
        NesSlope(
            queries_on(model, clean, [1], Linf(1.0, quantize=False)), Cells(clean),
            VideoRandom([3]), pairs=4, sigma=sigma, momentum=0.0,
        )(clean, rows)
        for sigma in (1e-2, 3e-2)
    )  # fmt: skip
    torch.testing.assert_close(first, second, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "cost"),
    [
        ({}, 1 + 3 * 7),
        ({"starts": 4}, 4 + 3 * 7),
        ({"accept_only_better": True, "grid": 3, "time_shared": True}, 1 + 3 * 7),
    ],
)
@pytest.mark.parametrize("threat", [Linf(EPS), L2(1.0)], ids=["linf", "l2"])
def test_cost_and_validity_of_every_query(params, cost, threat, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    attack = Nes(NesParams(iterations=3, samples=6, **params))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), access="score", threat=threat)
    assert [m.forwards for m in outcome.victim.meters] == [cost] * 2
    assert [m.backwards for m in outcome.victim.meters] == [0, 0]
    for rows, points in outcome.points:
        assert threat.within(points, clean[rows]).all()


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 10, 1000])
def test_budgets_are_kept_and_pairs_are_whole(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    outcome = contest(
        Nes(NesParams(iterations=3, samples=6)), tiny, clean, labels_of(tiny, clean),
        access="score", max_forwards=budget,
    )  # fmt: skip
    # After the first look: whole pairs and one look after them, so at most two are left over.
    spent = {1: 1, 2: 1, 3: 1, 4: 4, 10: 8, 1000: 22}[budget]
    assert [m.forwards for m in outcome.victim.meters] == [spent] * 2
    assert [m.exhausted for m in outcome.victim.meters] == [budget < 22] * 2
    for rows, points in outcome.points:
        if len(points) == 4:
            middle = (points[:2] + points[2:]) / 2
            assert rows.tolist() == [0, 1, 0, 1]
            assert (middle - clean).abs().max() <= EPS + 1e-6


def test_cells_share_values():
    video = torch.zeros(2, 5, 3, 7, 4)
    cells = Cells(video, 3, groups=2)
    assert cells.shape == (2, 3, 3, 3)
    values = torch.arange(2.0 * 54).view(2, *cells.shape)
    spread = cells.spread(values)
    assert spread.shape == video.shape
    assert torch.equal(spread[:, 0], spread[:, 2])
    assert torch.equal(spread[..., 0, :], spread[..., 2, :])
    assert sorted(spread.unique().tolist()) == values.flatten().tolist()
    assert Cells(video, 50).shape == (5, 3, 7, 4)
    assert Cells(video, 2, colours=False).spread(torch.ones(2, 5, 1, 2, 2)).shape == video.shape


def test_tiles_and_shared_time_find_smooth_gradients_sooner(contest, linear, videos):
    coarse = torch.randn(1, 1, 3, 2, 2, generator=torch.Generator().manual_seed(1))
    w = coarse.repeat_interleave(6, -1).repeat_interleave(6, -2).expand(1, 4, 3, 12, 12) / 20
    clean = videos(1, 4, 3, 12, 12)

    def fall(**params: object) -> float:
        attack = Nes(NesParams(iterations=4, samples=10, **params))
        result = contest(attack, linear(w), clean, [1], access="score", threat=EXACT).result
        return float(((clean - result) * w).sum())

    plain, tiled, shared = fall(), fall(grid=2), fall(grid=2, time_shared=True)
    assert 0 < 1.5 * plain < tiled < shared


def test_steps_are_halved_on_a_plateau_and_grow_back_when_choosy():
    rows = torch.tensor([0, 1])
    steps = Steps(torch.ones(2, 1, 1, 1, 1), least=0.25, plateau=2)
    steps.begin(torch.tensor([1.0, 1.0]))
    for loss in (3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0):
        assert steps.judge(rows, torch.tensor([loss, -loss])).all()
    assert steps.sizes(rows).flatten().tolist() == [0.25, 0.25]
    falling = Steps(torch.ones(1, 1, 1, 1, 1), least=0.25, plateau=2)
    for loss in (3.0, 2.0, 1.0, 0.0):
        falling.judge(torch.tensor([0]), torch.tensor([loss]))
    assert falling.sizes(torch.tensor([0])).item() == 1.0
    choosy = Steps(torch.ones(2, 1, 1, 1, 1), least=0.25, choosy=True)
    choosy.begin(torch.tensor([1.0, 1.0]))
    assert choosy.judge(rows, torch.tensor([1.0, 0.5])).tolist() == [False, True]
    assert choosy.sizes(rows).flatten().tolist() == [0.5, 1.0]
    assert choosy.judge(rows, torch.tensor([0.9, 0.6])).tolist() == [True, False]
    torch.testing.assert_close(choosy.sizes(rows).flatten(), torch.tensor([0.525, 0.5]))


def test_a_choosy_search_never_stands_at_a_worse_point(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 12, 10)
    labels = labels_of(tiny, clean)
    attack = NesTiled(NesTiledParams(iterations=8, samples=2, loss="margin", starts=2))
    outcome = contest(attack, tiny, clean, labels, access="score", threat=EXACT)
    losses = [
        float(outcome.victim.goals.loss(outcome.predict(p), kind="margin"))
        for r, p in outcome.points if len(r) == 1
    ]  # fmt: skip
    # The next pair surrounds the best of the points that were looked at.
    pairs = [p.mean(dim=0) for r, p in outcome.points if len(r) == 2]
    looks = [p[0] for r, p in outcome.points if len(r) == 1]
    for number, middle in enumerate(pairs):
        seen = losses[: number + 2]
        best = looks[seen.index(min(seen))]
        assert (middle - best).abs().max() < 4 / 255


@pytest.mark.parametrize("attack", [Nes, NesTiled])
def test_a_batch_of_three_equals_three_single_runs(attack, contest, linear, videos):
    drawn = torch.randn(3, 2, 3, 6, 5, generator=torch.Generator().manual_seed(3))
    model, clean = linear(drawn / 20, [0.3, -0.2, 0.1]), videos(3, 2, 3, 6, 5)
    labels = model.logits(clean)[:, 0].argmax(dim=1).tolist()
    ids = ["a", "b", "c"]
    run = {"access": "score", "stop": "first_success", "max_forwards": 120}
    together = contest(attack(), model, clean, labels, ids=ids, **run)
    for i in range(3):
        alone = contest(attack(), model, clean[i : i + 1], labels[i : i + 1], ids=[ids[i]], **run)
        assert torch.equal(alone.result[0], together.result[i])
        assert alone.victim.meters[0].forwards == together.victim.meters[i].forwards
        assert (
            alone.victim.meters[0].queries_to_first_success
            == together.victim.meters[i].queries_to_first_success
        )


def test_targets_are_approached_and_a_success_ends_the_queries(contest, linear, videos):
    w = torch.full((1, 2, 3, 6, 6), 0.05)
    clean = videos(1, 2, 3, 6, 6)
    model = linear(w, [-float((clean * w).sum()) - 0.02])
    outcome = contest(
        Nes(NesParams(iterations=50, samples=4)), model, clean, [0], targets=[1],
        access="score", threat=EXACT, stop="first_success",
    )  # fmt: skip
    meter = outcome.victim.meters[0]
    assert meter.done
    assert meter.forwards - meter.queries_to_first_success in (0, 1)
    assert int(outcome.predict(outcome.result).argmax()) == 1


def test_masks_radius_zero_and_other_norms(contest, tiny, videos, labels_of):
    clean = videos(1, 4, 3, 12, 10)
    labels = labels_of(tiny, clean)
    for norm, eps in ((Linf, EPS), (L2, 1.5)):
        threat = norm(eps, frames=(2,), region=(0.0, 0.5, 1.0, 1.0))
        attack = Nes(NesParams(iterations=2, samples=4))
        moved = contest(attack, tiny, clean, labels, access="score", threat=threat).result != clean
        assert moved[:, 2, :, :, 5:].any()
        assert not moved[:, [0, 1, 3]].any()
        assert not moved[..., :5].any()
    assert torch.equal(
        contest(Nes(), tiny, clean, labels, access="score", threat=Linf(0)).result, clean
    )
    with pytest.raises(IncompatibleComponents, match="'l1'"):
        contest(Nes(), tiny, clean, labels, access="score", threat=L1(1.0))
    with pytest.raises(ContractViolation, match="scores"):
        contest(Nes(), tiny, clean, labels, access="decision")
