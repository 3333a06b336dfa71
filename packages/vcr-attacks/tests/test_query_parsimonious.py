"""Parsimonious attack: vertices, blocks, greedy optimum, exact counts."""

from __future__ import annotations

import msgspec
import pytest
import torch
from vcr_attacks.params.query import ParsimoniousParams
from vcr_attacks.parsimonious import Parsimonious, cut
from vcr_core.errors import IncompatibleComponents
from vcr_core.threat import L2, Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


def test_blocks_cover_a_video_once_and_the_last_ones_are_cut_off():
    covered = torch.zeros(5, 3, 7, 9)
    for block in cut(covered.shape, 4, 2):
        covered[block] += 1
    assert (covered == 1).all()
    assert len(list(cut(covered.shape, 4, 2))) == 2 * 3 * 2 * 3
    assert len(list(cut(covered.shape, 100, None))) == 5 * 3


@pytest.mark.golden
def test_a_linear_loss_is_solved_exactly(contest, linear, videos):
    w = torch.randn(1, 2, 3, 4, 5, generator=torch.Generator().manual_seed(0)) / 5
    clean = videos(1, 2, 3, 4, 5)
    params = ParsimoniousParams(block=1, least_block=1, times=None, batch=50, loss="margin")
    outcome = contest(Parsimonious(params), linear(w), clean, [1], access="score", threat=EXACT)
    torch.testing.assert_close(outcome.result, clean - EPS * w[0].sign())


def test_points_are_vertices_and_constant_on_blocks(contest, tiny, videos, labels_of):
    clean = videos(1, 4, 3, 12, 10)
    params = ParsimoniousParams(block=8, least_block=4, times=2, queries=120, batch=16, loss="ce")
    outcome = contest(
        Parsimonious(params), tiny, clean, labels_of(tiny, clean), access="score", threat=EXACT
    )
    for _, points in outcome.points:
        torch.testing.assert_close((points - clean).abs(), torch.full_like(points, EPS))
    signs = (outcome.result - clean).sign()
    for block in cut(clean.shape[1:], 4, 2):
        assert len(signs[0][block].unique()) == 1
    start = outcome.points[0][1]
    torch.testing.assert_close(start, clean - EPS)
    ask = outcome.victim.goals.loss
    assert ask(outcome.predict(outcome.result)) < ask(outcome.predict(start))


@pytest.mark.parametrize("budget", [1, 2, 10, 1000])
def test_budgets_are_kept_by_each_video(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    params = ParsimoniousParams(queries=60, block=4)
    outcome = contest(
        Parsimonious(params), tiny, clean, labels_of(tiny, clean), access="score",
        max_forwards=budget,
    )  # fmt: skip
    assert [m.forwards for m in outcome.victim.meters] == [min(budget, 60)] * 2
    assert [m.exhausted for m in outcome.victim.meters] == [budget < 60] * 2


def test_a_success_is_counted_where_it_stands_among_the_candidates(contest, linear, videos):
    # One block decides; the label falls as soon as that block is turned.
    w = torch.zeros(1, 1, 3, 8, 8)
    w[0, 0, 1, 4:, 4:] = -0.1
    clean = videos(1, 1, 3, 8, 8)
    model = linear(w, [float(-(clean * w).sum()) + 0.04])
    params = ParsimoniousParams(block=4, least_block=4, chunk=64)
    outcome = contest(
        Parsimonious(params), model, clean, [1], access="score", threat=EXACT, stop="first_success"
    )
    meter = outcome.victim.meters[0]
    assert meter.done
    assert meter.forwards == 1 + 12
    _, candidates = outcome.points[1]
    wins = [int(outcome.predict(c[None]).argmax()) == 0 for c in candidates]
    assert sum(wins) == 1
    assert meter.queries_to_first_success == 1 + wins.index(True) + 1
    assert torch.equal(outcome.result[0], candidates[wins.index(True)])


def test_a_batch_of_three_equals_three_single_runs(contest, linear, videos):
    drawn = torch.randn(3, 2, 3, 6, 5, generator=torch.Generator().manual_seed(3))
    model, clean = linear(drawn / 20, [0.3, -0.2, 0.1]), videos(3, 2, 3, 6, 5)
    labels = model.logits(clean)[:, 0].argmax(dim=1).tolist()
    ids = ["a", "b", "c"]
    run = {"access": "score", "stop": "first_success", "threat": EXACT}
    attack = Parsimonious(ParsimoniousParams(block=4, batch=7, queries=100))
    together = contest(attack, model, clean, labels, ids=ids, **run)
    for i in range(3):
        alone = contest(attack, model, clean[i : i + 1], labels[i : i + 1], ids=[ids[i]], **run)
        assert torch.equal(alone.result[0], together.result[i])
        assert alone.victim.meters[0].forwards == together.victim.meters[i].forwards


def test_no_query_goes_to_blocks_outside_of_the_mask(contest, tiny, linear, videos, labels_of):
    clean = videos(1, 4, 3, 8, 8)
    threat = Linf(EPS, frames=(2,), region=(0.0, 0.5, 1.0, 1.0))
    attack = Parsimonious(ParsimoniousParams(block=4, least_block=4, times=None, queries=80))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), access="score", threat=threat)
    moved = outcome.result != clean
    assert moved[:, 2, :, :, 4:].any()
    assert not moved[:, [0, 1, 3]].any()
    assert not moved[..., :4].any()
    flat = linear(torch.zeros(1, 4, 3, 8, 8), [3.0])
    idle = contest(attack, flat, clean, [1], access="score", threat=threat)
    # The start, then three channels of two blocks, once.
    assert idle.victim.meters[0].forwards == 1 + 6
    zero = contest(attack, tiny, clean, [0], access="score", threat=Linf(0))
    assert torch.equal(zero.result, clean)
    with pytest.raises(IncompatibleComponents, match="'l2'"):
        contest(attack, tiny, clean, [0], access="score", threat=L2(1.0))


def test_blocks_do_not_grow():
    with pytest.raises(msgspec.ValidationError, match="least_block"):
        msgspec.convert({"block": 2}, type=ParsimoniousParams)
