"""Square Attack: schedule, geometry, monotony, costs and both norms."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from vcr_attacks.params.query import SquareParams
from vcr_attacks.square import Square
from vcr_attacks.square_moves import Frames, VertexMoves, pyramids, square_side
from vcr_core.adaptive import DefenseLink
from vcr_core.errors import ContractViolation, IncompatibleComponents
from vcr_core.protocols import InputDefense
from vcr_core.randomness import VideoRandom
from vcr_core.threat import L1, L2, Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)
MODES = ["tube", "fold", "mixed", "window"]
THREATS = [pytest.param(EXACT, id="linf"), pytest.param(L2(1.5, quantize=False), id="l2")]


def changes(iterations: int, p_init: float) -> dict[int, int]:
    found: dict[int, int] = {}
    for i in range(iterations):
        side = square_side(i, iterations, p_init, 224, 224)
        if side not in found.values():
            found[i] = side
    return found


@pytest.mark.golden
def test_published_schedule():
    points = [0, 1, 2, 5, 11, 21, 41, 81, 121, 161]
    for p_init, sides in (
        (0.8, [200, 142, 100, 71, 50, 35, 25, 18, 13, 9]),
        (0.05, [50, 35, 25, 18, 13, 9, 6, 4, 3, 2]),
    ):
        assert changes(200, p_init) == dict(zip(points, sides, strict=True))
    assert list(changes(1000, 0.8)) == [0, 2, 6, 21, 51, 101, 201, 401, 601, 801]


@pytest.mark.parametrize(("height", "width"), [(33, 50), (1, 1), (2, 7), (5, 3)])
def test_squares_fit_frames_of_any_size(height, width):
    for i in range(50):
        assert 1 <= square_side(i, 50, 0.8, height, width) <= min(height, width)


def test_every_corner_can_be_drawn():
    clean = torch.full((1, 1, 3, 5, 5), 0.5)
    moves = VertexMoves(EXACT, clean, Frames("tube", 1))
    random, rows = VideoRandom([0]), torch.tensor([0])
    corners = set()
    for _ in range(300):
        changed = (moves.propose(clean.clone(), rows, 3, random) != clean)[0, 0].any(dim=0)
        where = changed.nonzero()
        corners.add(tuple(where.min(dim=0).values.tolist()))
        assert int(changed.sum()) == 9
    assert corners == {(r, c) for r in range(3) for c in range(3)}


@pytest.mark.parametrize("mode", MODES)
def test_starts_with_stripes_at_the_vertices(mode, videos):
    clean = videos(2, 4, 3, 9, 11)
    start = VertexMoves(EXACT, clean, Frames(mode, 4)).start(VideoRandom([1, 2]))
    signs = (start - clean).sign()
    torch.testing.assert_close((start - clean).abs(), torch.full_like(clean, EPS))
    assert torch.equal(signs, signs[..., :1, :].expand_as(signs))
    assert torch.equal(signs, signs[:, :1].expand_as(signs)) == (mode in ("tube", "window"))
    assert not torch.equal(signs[0], signs[1])


@pytest.mark.parametrize("threat", THREATS)
@pytest.mark.parametrize("mode", MODES)
def test_loss_never_rises_and_every_query_is_inside(threat, mode, contest, tiny, videos, labels_of):
    clean = videos(2, 4, 3, 13, 10)
    labels = labels_of(tiny, clean)
    attack = Square(SquareParams(iterations=25, temporal=mode, loss="ce"))
    outcome = contest(attack, tiny, clean, labels, access="score", threat=threat)
    assert [m.forwards for m in outcome.victim.meters] == [26, 26]
    assert [m.backwards for m in outcome.victim.meters] == [0, 0]
    best = torch.full((2,), float("inf"))
    kept = clean
    for number, (rows, points) in enumerate(outcome.points):
        assert threat.within(points, clean[rows]).all()
        if threat.norm == "linf":
            torch.testing.assert_close((points - clean).abs(), torch.full_like(clean, EPS))
        losses = outcome.victim.goals.loss(outcome.predict(points), rows)
        changed = ((points - kept).abs() > 1e-5).flatten(2).any(dim=2)
        if number and mode == "window":
            assert (changed.sum(dim=1) <= 2).all()
        better = losses < best
        kept = points.where(better.view(-1, 1, 1, 1, 1), kept)
        best = best.minimum(losses)
    torch.testing.assert_close(
        outcome.victim.goals.loss(outcome.predict(outcome.result)), best, rtol=0, atol=1e-5
    )
    first = outcome.victim.goals.loss(outcome.predict(outcome.points[0][1]))
    assert (best < first).all()


@pytest.mark.parametrize("threat", THREATS)
@pytest.mark.parametrize("targeted", [False, True])
def test_beats_a_linear_model(threat, targeted, contest, linear, videos):
    # A smooth weight, the same in all frames: what squares over time are made for.
    y, x = torch.meshgrid(torch.arange(16), torch.arange(12), indexing="ij")
    w = torch.stack([torch.sin(y / 5.0 + c) * torch.cos(x / 4.0) for c in range(3)])
    w = w.expand(1, 4, 3, 16, 12) / 24
    clean = videos(1, 4, 3, 16, 12)
    score = float((clean * w).sum())
    best = EPS * float(w.abs().sum()) if threat.norm == "linf" else 1.5 * float(w.norm())
    share = 0.4 if threat.norm == "linf" else 0.2
    model = linear(w, [-score + (-share if targeted else share) * best])
    outcome = contest(
        Square(SquareParams(iterations=400, temporal="tube")), model, clean,
        [0 if targeted else 1],
        targets=[1] if targeted else None, access="score", threat=threat, stop="first_success",
    )  # fmt: skip
    meter = outcome.victim.meters[0]
    assert meter.done
    assert 1 < meter.forwards < 401
    assert int(outcome.predict(outcome.result).argmax()) == (1 if targeted else 0)


@pytest.mark.golden
def test_tubes_suit_gradients_that_agree_over_time(contest, linear, videos):
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(1, 3, 8, 8, generator=generator)
    smooth = nn_upsample(coarse, 32)
    w = smooth.expand(1, 8, 3, 32, 32) / 300
    clean = videos(1, 8, 3, 32, 32)
    best = EPS * float(w.abs().sum())

    def reached(**params: object) -> float:
        shares = []
        for seed in range(2):
            attack = Square(SquareParams(iterations=100, loss="margin", **params))
            outcome = contest(
                attack, linear(w), clean, [1], access="score", threat=EXACT, seed=seed
            )
            moved = ((clean - outcome.result) * w).sum()
            shares.append(float(moved) / best)
        return sum(shares) / len(shares)

    tube = reached(temporal="tube")
    assert tube > 1.5 * reached(temporal="fold")
    assert tube > 1.5 * reached(temporal="tube", p_init=0.05)


def nn_upsample(coarse: torch.Tensor, side: int) -> torch.Tensor:
    return torch.nn.functional.interpolate(coarse, (side, side), mode="bicubic")[0]


@pytest.mark.parametrize("threat", THREATS)
def test_a_batch_of_three_equals_three_single_runs(threat, contest, linear, videos):
    drawn = torch.randn(3, 2, 3, 9, 7, generator=torch.Generator().manual_seed(3))
    model, clean = linear(drawn / 20, [0.3, -0.2, 0.1]), videos(3, 2, 3, 9, 7)
    labels = model.logits(clean)[:, 0].argmax(dim=1).tolist()
    ids = ["a", "b", "c"]
    run = {"access": "score", "stop": "first_success", "threat": threat}
    attack = Square(SquareParams(iterations=30))
    together = contest(attack, model, clean, labels, ids=ids, **run)
    for i in range(3):
        alone = contest(attack, model, clean[i : i + 1], labels[i : i + 1], ids=[ids[i]], **run)
        assert torch.equal(alone.result[0], together.result[i])
        assert alone.victim.meters[0].forwards == together.victim.meters[i].forwards


@pytest.mark.parametrize("threat", [Linf("8/255"), L2(3.0)])
@pytest.mark.parametrize("frames", [1, 5])
def test_odd_sizes(threat, frames, contest, tiny, videos, labels_of):
    clean = videos(1, frames, 3, 33, 50)
    for mode in MODES:
        attack = Square(SquareParams(iterations=3, temporal=mode))
        outcome = contest(
            attack, tiny, clean, labels_of(tiny, clean), access="score", threat=threat, views=2
        )
        assert outcome.result.shape == clean.shape
        assert threat.within(outcome.result, clean).all()


@pytest.mark.parametrize("budget", [1, 2, 10, 1000])
def test_budgets_are_kept(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 9, 7)
    outcome = contest(
        Square(SquareParams(iterations=15)), tiny, clean, labels_of(tiny, clean), access="score",
        max_forwards=budget,
    )  # fmt: skip
    assert [m.forwards for m in outcome.victim.meters] == [min(budget, 16)] * 2
    assert EXACT.within(outcome.result, clean).all()


def test_masks_are_kept(contest, tiny, videos, labels_of):
    clean = videos(1, 4, 3, 12, 10)
    for norm, eps in (("linf", EPS), ("l2", 1.5)):
        threat = {"linf": Linf, "l2": L2}[norm](eps, frames=(2,), region=(0.0, 0.5, 1.0, 1.0))
        attack = Square(SquareParams(iterations=10))
        outcome = contest(
            attack, tiny, clean, labels_of(tiny, clean), access="score", threat=threat
        )
        moved = outcome.result != clean
        assert moved[:, 2, :, :, 5:].any()
        assert not moved[:, [0, 1, 3]].any()
        assert not moved[..., :5].any()


def test_radius_zero_flat_models_and_seeds(contest, tiny, linear, videos, labels_of):
    clean = videos(1, 3, 3, 12, 10)
    outcome = contest(Square(), tiny, clean, [0], access="score", threat=Linf(0))
    assert torch.equal(outcome.result, clean)
    flat = linear(torch.zeros(1, 3, 3, 12, 10), [3.0])
    attack = Square(SquareParams(iterations=5))
    outcome = contest(attack, flat, clean, [1], access="score")
    assert EXACT.within(outcome.result, clean).all()
    assert not outcome.victim.meters[0].achieved
    labels = labels_of(tiny, clean)
    first, again, other = (
        contest(attack, tiny, clean, labels, access="score", seed=s).result for s in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_never_asks_for_a_gradient_and_refuses_other_norms(contest, tiny, videos):
    clean = videos(1, 3, 3, 12, 10)
    with pytest.raises(IncompatibleComponents, match="'l1'"):
        contest(Square(), tiny, clean, [0], access="score", threat=L1(1.0))
    with pytest.raises(ContractViolation, match="scores"):
        contest(Square(), tiny, clean, [0], access="decision")


class _Noise(InputDefense):
    def apply(self, clips, random):
        return (clips + 0.2 * random.normal(*clips.shape[1:])).clamp(0, 1)


def test_a_lucky_draw_of_a_random_victim_is_asked_for_again(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 12, 10)
    link = DefenseLink("noise", _Noise(), "exact", True)
    outcome = contest(
        Square(SquareParams(iterations=20)), tiny, clean, labels_of(tiny, clean), access="score",
        links=[link],
    )  # fmt: skip
    queries = [points for _, points in outcome.points]
    repeated = sum(torch.equal(a, b) for a, b in pairwise(queries))
    assert repeated >= 1
    assert outcome.victim.meters[0].forwards == 21 + repeated


@pytest.mark.parametrize("side", [1, 2, 3, 4, 7, 12])
def test_pyramids_oppose_each_other(side):
    shape = pyramids(side)
    assert shape.shape == (side, side)
    half = side // 2
    assert (shape[:, :half] > 0).all()
    assert (shape[:, half:] < 0).all()
    if side > 2:
        assert shape.abs()[0].max() < shape.abs()[side // 2].max()


def test_a_model_of_motion_falls_to_signs_that_change_over_time(contest, linear, videos):
    # The weight sums to zero over time: what stands still does not move the score at all.
    w = torch.full((1, 4, 3, 8, 8), 0.02)
    w[:, 1::2] *= -1
    clean = videos(1, 4, 3, 8, 8)
    model = linear(w, [0.05 - float((clean * w).sum())])
    run = {"access": "score", "stop": "first_success", "threat": EXACT}
    default = contest(Square(SquareParams(iterations=60)), model, clean, [1], **run)
    still = SquareParams(iterations=60, temporal="tube")
    assert default.victim.meters[0].done
    assert not contest(Square(still), model, clean, [1], **run).victim.meters[0].done
