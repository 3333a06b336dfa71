"""fab: exact projections, exact distances on linear models, and what the forms look at."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.fab import Fab
from vcr_attacks.params.gradient import FabParams
from vcr_attacks.plane import onto_plane
from vcr_core.threat import L2, Linf, Unbounded

FREE = Unbounded(quantize=False)


def weights(*shape: int, seed: int = 3) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return drawn / drawn[0].numel() ** 0.5


def box(like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros_like(like), torch.ones_like(like)


def size(change: torch.Tensor, linf: bool) -> torch.Tensor:
    flat = change.flatten(1)
    return flat.abs().amax(1) if linf else flat.norm(dim=1)


@pytest.mark.golden
def test_projections_by_hand():
    point, normal = torch.tensor([[0.9, 0.5, 0.5]]), torch.tensor([[1.0, -2.0, 0.0]])
    # Up by at most 0.1, so the second value has to bring the rest: 0.1 + 2 * 0.35 = 0.8.
    move = onto_plane(point, normal, torch.tensor([0.8]), *box(point), linf=True)
    torch.testing.assert_close(move, torch.tensor([[0.1, -0.35, 0.0]]))
    move = onto_plane(point, normal, torch.tensor([0.2]), *box(point), linf=True)
    torch.testing.assert_close(move, torch.tensor([[1 / 15, -1 / 15, 0.0]]))
    # Without a bound in the way the L2 move is along the normal: 0.25 / 5 times (1, -2, 0).
    move = onto_plane(point, normal, torch.tensor([0.25]), *box(point), linf=False)
    torch.testing.assert_close(move, torch.tensor([[0.05, -0.1, 0.0]]))
    move = onto_plane(point, normal, torch.tensor([0.9]), *box(point), linf=False)
    torch.testing.assert_close(move, torch.tensor([[0.1, -0.4, 0.0]]))
    # Down on the other side of the plane, and out of reach: the corner.
    move = onto_plane(point, normal, torch.tensor([-0.2]), *box(point), linf=True)
    torch.testing.assert_close(move, torch.tensor([[-1 / 15, 1 / 15, 0.0]]))
    move = onto_plane(point, normal, torch.tensor([9.0]), *box(point), linf=False)
    torch.testing.assert_close(move, torch.tensor([[0.1, -0.5, 0.0]]))


@pytest.mark.parametrize("linf", [True, False])
def test_projections_meet_the_conditions_of_the_optimum(linf):
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(6, 400, generator=generator)
    points[:, ::7] = points[:, ::7].round()
    normal = torch.randn(6, 400, generator=generator) * torch.rand(6, 400, generator=generator) ** 4
    reach = (normal.abs() * torch.where(normal > 0, 1 - points, points)).sum(1)
    amount = reach * torch.tensor([0.0, 1e-4, 0.05, 0.4, 0.9, 0.9999])
    move = onto_plane(points, normal, amount, *box(points), linf=linf)
    ahead = points + move
    assert ahead.min() >= -1e-7
    assert ahead.max() <= 1 + 1e-7
    torch.testing.assert_close((normal * move).sum(1), amount, rtol=2e-5, atol=1e-6)
    # All values that no bound stops have gone equally far, in units of what the norm weighs.
    free = (ahead > 1e-6) & (ahead < 1 - 1e-6) & (normal != 0)
    gone = move.abs() if linf else move.abs() / normal.abs()
    for row in range(1, 6):
        level = gone[row][free[row]]
        torch.testing.assert_close(level, level.amax().expand_as(level), rtol=1e-4, atol=1e-6)
        stopped = gone[row][~free[row] & (normal[row] != 0)]
        assert (stopped <= level.amax() * (1 + 1e-4)).all()


def test_an_empty_move_and_a_flat_normal():
    points = torch.rand(2, 5)
    for amount, normal in ((0.0, 1.0), (1.0, 0.0)):
        move = onto_plane(points, torch.full((2, 5), normal), torch.full((2,), amount),
                          *box(points), linf=True)  # fmt: skip
        assert not move.any()


@pytest.fixture
def linear_case(linear, videos):
    """A linear model of 5 classes, two videos, and their distances to every boundary."""
    w, clean = weights(4, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    model = linear(w, [0.4, 0.1, -0.3, 0.2])
    z = model.logits(clean)[:, 0]
    labels = z.argmax(1)
    rows = torch.cat([torch.zeros_like(w[:1]), w])
    apart = (rows[labels][:, None] - rows[None]).flatten(2)

    def distances(linf: bool) -> torch.Tensor:
        dual = apart.abs().sum(2) if linf else apart.norm(dim=2)
        gaps = (z.gather(1, labels[:, None]) - z) / dual.clamp_min(1e-9)
        return gaps.scatter(1, labels[:, None], torch.inf)

    return model, clean, labels.tolist(), distances


@pytest.mark.parametrize("linf", [True, False])
@pytest.mark.parametrize("boundary", ["each", "nearest"])
def test_finds_the_distance_to_the_boundary(linf, boundary, contest, linear_case):
    model, clean, labels, distances = linear_case
    params = FabParams(
        boundary=boundary, target_classes=4, steps=12, distance="linf" if linf else "l2"
    )
    outcome = contest(Fab(params), model, clean, labels, threat=FREE, stop="first_success")
    ratio = size(outcome.result - clean, linf) / distances(linf).amin(1)
    assert (ratio >= 1).all()
    assert (ratio <= 1.006).all()
    assert (outcome.predict(outcome.result).argmax(1) != torch.tensor(labels)).all()


@pytest.mark.parametrize("linf", [True, False])
def test_a_target_has_its_own_distance(linf, contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(1, 2, 3, 6, 5)
    model = linear(w, [0.15 - float((clean * w).sum())])
    expected = 0.15 / float(w.abs().sum() if linf else w.norm())
    params = FabParams(steps=12, distance="linf" if linf else "l2")
    outcome = contest(Fab(params), model, clean, [1], targets=[0], threat=FREE)
    assert float(size(outcome.result - clean, linf)) == pytest.approx(expected, rel=0.006)


def test_the_box_lengthens_the_way(contest, linear, videos):
    """Black pixels cannot fall: the exact distance follows from those that can."""
    w, clean = weights(1, 2, 3, 6, 5).abs(), videos(1, 2, 3, 6, 5)
    clean[:, :, :2] = 0.0
    model = linear(w, [0.3 - float((clean * w).sum())])
    expected = 0.3 / float(w[:, :, 2:].sum())
    outcome = contest(Fab(FabParams(steps=12, distance="linf")), model, clean, [1], threat=FREE)
    found = float(size(outcome.result - clean, True))
    assert found == pytest.approx(expected, rel=0.006)
    assert found >= expected


@pytest.mark.parametrize("linf", [True, False])
def test_rounding_does_not_hold_a_video_on_the_boundary(linf, contest, linear):
    """Two levels of every value bring a tie, which is no success of the higher class."""
    w = torch.ones(1, 2, 3, 6, 5) / 180
    clean = torch.full((1, 2, 3, 6, 5), 100 / 255)
    model = linear(w, [-102 / 255])
    threat = Unbounded()
    params = FabParams(steps=12, distance="linf" if linf else "l2")
    outcome = contest(Fab(params), model, clean, [0], threat=threat)
    assert outcome.predict(outcome.result).argmax(1) == 1
    assert float((outcome.result - clean).max()) <= 3.01 / 255


def test_costs(contest, linear_case):
    model, clean, labels, _ = linear_case
    for params, gradients, runs in (
        (FabParams(steps=5), 1, 3),
        (FabParams(steps=5, restarts=2), 1, 6),
        (FabParams(steps=5, boundary="nearest", target_classes=2), 2, 1),
    ):
        outcome = contest(Fab(params), model, clean, labels, threat=FREE)
        for meter in outcome.victim.meters:
            assert meter.backwards <= 5 * gradients * runs
            assert meter.forwards == meter.backwards + 5 * runs + 1


def test_restarts_never_lose(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 8, 8)
    labels = labels_of(tiny, clean)
    sizes = [
        size(contest(Fab(FabParams(steps=4, restarts=n)), tiny, clean, labels, threat=FREE).result
             - clean, False)
        for n in (1, 3)
    ]  # fmt: skip
    assert (sizes[1] <= sizes[0]).all()


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 10])
def test_keeps_budgets_and_its_smallest_success(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 8, 8)
    outcome = contest(Fab(), tiny, clean, labels_of(tiny, clean), threat=FREE,
                      max_forwards=budget)  # fmt: skip
    assert all(m.forwards <= budget for m in outcome.victim.meters)
    assert budget == 0 or not any(m.exhausted for m in outcome.victim.meters)


@pytest.mark.parametrize("threat", [Linf("2/255"), L2(0.3), Linf("4/255", frames=(0, 2))])
def test_keeps_the_ball_on_stored_videos(threat, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 33, 50)
    labels = labels_of(tiny, clean)
    outcome = contest(Fab(FabParams(steps=6)), tiny, clean, labels, threat=threat)
    assert threat.within(outcome.result, clean).all()
    assert torch.equal(contest(Fab(), tiny, clean, labels, threat=Linf(0)).result, clean)


def test_stops_at_the_first_success_where_asked(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 8, 8)
    labels = labels_of(tiny, clean)
    threat = Linf("64/255")
    first = contest(Fab(FabParams(smallest=False)), tiny, clean, labels, threat=threat,
                    stop="first_success")  # fmt: skip
    whole = contest(Fab(), tiny, clean, labels, threat=threat, stop="first_success")
    for one, other in zip(first.victim.meters, whole.victim.meters, strict=True):
        assert one.done
        assert one.queries_to_first_success == one.forwards < other.forwards
    linf = [size(o.result - clean, True) for o in (first, whole)]
    assert (linf[1] <= linf[0]).all()


def test_misclassified_and_flat_videos(contest, tiny, linear, videos, labels_of):
    clean = videos(1, 3, 3, 8, 8)
    wrong = [(labels_of(tiny, clean)[0] + 1) % 5]
    outcome = contest(Fab(), tiny, clean, wrong, threat=FREE)
    assert torch.equal(outcome.result, clean)
    flat = linear(torch.zeros(1, 2, 3, 6, 5), [3.0])
    clean = videos(1, 2, 3, 6, 5)
    outcome = contest(Fab(), flat, clean, [1], threat=FREE)
    assert torch.equal(outcome.result, clean)
    assert outcome.victim.meters[0].forwards == 2


def test_a_video_does_not_see_its_neighbours(contest, tiny, videos, labels_of):
    clean = videos(3, 3, 3, 8, 8)
    labels, ids = labels_of(tiny, clean), ["a", "b", "c"]
    params = FabParams(steps=5, restarts=2)
    together = contest(Fab(params), tiny, clean, labels, threat=FREE, ids=ids).result
    for i in range(3):
        alone = contest(Fab(params), tiny, clean[i : i + 1], labels[i : i + 1], threat=FREE,
                        ids=ids[i : i + 1]).result  # fmt: skip
        torch.testing.assert_close(alone[0], together[i], rtol=0, atol=1e-5)
