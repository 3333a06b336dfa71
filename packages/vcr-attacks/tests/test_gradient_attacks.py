"""ifgsm and pgd against closed forms, costs and the shared rules of attacks."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.params.gradient import IfgsmParams, PgdParams
from vcr_attacks.pgd import Pgd, random_point
from vcr_attacks.sign_loop import step_sizes, unit_l2
from vcr_core.errors import IncompatibleComponents
from vcr_core.randomness import VideoRandom
from vcr_core.threat import L1, L2, Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)
BOTH = [
    pytest.param(Ifgsm(), id="ifgsm"),
    pytest.param(Pgd(), id="pgd"),
    pytest.param(Pgd(PgdParams(random_start=False)), id="pgd-from-clean"),
]


def weights(*shape: int, seed: int = 3) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return drawn / drawn[0].numel() ** 0.5


@pytest.mark.golden
@pytest.mark.parametrize(
    ("steps", "expected"),
    [(1, [0.16, 0.54, 0.9]), (2, [0.12, 0.58, 0.9]), (3, [0.1, 0.6, 0.9])],
)
def test_published_steps(steps, expected, contest, linear):
    model = linear(torch.tensor([1.0, -2.0, 0.0]).view(1, 1, 1, 1, 3))
    clean = torch.tensor([0.2, 0.5, 0.9]).view(1, 1, 1, 1, 3)
    attack = Ifgsm(IfgsmParams(steps=steps, step=0.04))
    outcome = contest(attack, model, clean, [1], threat=Linf(0.1, quantize=False))
    torch.testing.assert_close(outcome.result.flatten(), torch.tensor(expected))


@pytest.mark.parametrize("attack", BOTH)
@pytest.mark.parametrize("views", [1, 3])
def test_linear_optimum(attack, views, contest, linear, videos):
    w = weights(1, 2, 3, 6, 5)
    clean = videos(2, 2, 3, 6, 5)
    outcome = contest(attack, linear(w), clean, [1, 1], threat=EXACT, views=views)
    torch.testing.assert_close(outcome.result, clean - EPS * w.sign(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("attack", BOTH)
def test_linear_optimum_of_a_target_without_any_probability(attack, contest, linear, videos):
    # log p of the target is about -46: a clamped logarithm would have no gradient here.
    w = weights(1, 2, 3, 6, 5)
    clean = videos(1, 2, 3, 6, 5)
    offset = float(-46 - (clean * w).sum())
    outcome = contest(attack, linear(w, [offset]), clean, [0], targets=[1], threat=EXACT)
    torch.testing.assert_close(outcome.result, clean + EPS * w.sign(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("attack", BOTH)
def test_clamps_to_the_pixel_range(attack, contest, linear):
    w = weights(1, 1, 3, 6, 5)
    clean = torch.zeros(1, 1, 3, 6, 5)
    clean[..., 3:] = 1
    outcome = contest(attack, linear(w), clean, [1], threat=EXACT)
    expected = (clean - EPS * w.sign()).clamp(0, 1)
    torch.testing.assert_close(outcome.result, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 3, 8, 20])
def test_distance_grows_by_a_step_until_the_radius(steps, contest, linear, videos):
    clean = videos(1, 2, 3, 6, 5)
    attack = Ifgsm(IfgsmParams(steps=steps, step=1 / 255))
    outcome = contest(attack, linear(weights(1, 2, 3, 6, 5)), clean, [1], threat=EXACT)
    distance = float((outcome.result - clean).abs().max())
    assert distance == pytest.approx(min(steps / 255, EPS), abs=1e-6)


def test_l2_linear_optimum(contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    for start in (True, False):
        attack = Pgd(PgdParams(random_start=start, steps=60, step=0.05))
        outcome = contest(attack, linear(w), clean, [1, 1], threat=L2(0.5, quantize=False))
        expected = clean - 0.5 * w / w.norm()
        torch.testing.assert_close(outcome.result, expected, rtol=0, atol=2e-3 if start else 1e-6)
        assert EXACT.with_eps(1.0).within(outcome.result, clean).all()


def test_pgd_without_a_random_start_is_ifgsm(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    one = contest(Ifgsm(), tiny, clean, labels, threat=EXACT)
    attack = Pgd(PgdParams(random_start=False, step=1 / 255))
    assert torch.equal(contest(attack, tiny, clean, labels, threat=EXACT).result, one.result)


@pytest.mark.parametrize(
    ("attack", "forwards", "backwards"),
    [
        (Ifgsm(IfgsmParams(steps=7)), 8, 7),
        (Pgd(PgdParams(steps=5)), 6, 5),
        (Pgd(PgdParams(steps=5, restarts=3)), 18, 15),
    ],
)
def test_costs(attack, forwards, backwards, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean))
    for meter in outcome.victim.meters:
        assert (meter.forwards, meter.backwards) == (forwards, backwards)


@pytest.mark.parametrize("attack", BOTH)
@pytest.mark.parametrize("budget", [1, 2, 10, 1000])
def test_budgets_are_kept(attack, budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), max_forwards=budget)
    assert [m.forwards for m in outcome.victim.meters] == [min(budget, 21)] * 2
    assert EXACT.within(outcome.result, clean).all()


@pytest.mark.parametrize("attack", BOTH)
@pytest.mark.parametrize("stop", ["budget", "first_success"])
@pytest.mark.parametrize("targeted", [False, True])
def test_a_batch_of_three_equals_three_single_runs(attack, stop, targeted, contest, linear, videos):
    # Videos of different difficulty: each stops at another step.
    w, clean = weights(4, 2, 3, 6, 5), videos(3, 2, 3, 6, 5)
    model = linear(w, [0.4, 0.1, -0.3, 0.2])
    with torch.no_grad():
        order = model.logits(clean)[:, 0].argsort(dim=1, descending=True)
    labels = order[:, 0].tolist()
    targets = order[:, 1].tolist() if targeted else None
    ids = ["a", "b", "c"]
    together = contest(attack, model, clean, labels, targets=targets, stop=stop, ids=ids)
    spent = set()
    for i in range(3):
        alone = contest(
            attack, model, clean[i : i + 1], labels[i : i + 1], stop=stop, ids=ids[i : i + 1],
            targets=targets and targets[i : i + 1],
        )  # fmt: skip
        assert torch.equal(alone.result[0], together.result[i])
        assert alone.victim.meters[0].forwards == together.victim.meters[i].forwards
        spent.add(alone.victim.meters[0].forwards)
    if stop == "first_success":
        assert len(spent) > 1


@pytest.mark.parametrize("attack", [Ifgsm(IfgsmParams(step="auto")), Pgd()])
def test_returns_the_point_that_was_tested(attack, contest, tiny, videos, labels_of):
    clean = videos(3, 3, 3, 16, 14)
    labels = torch.tensor(labels_of(tiny, clean))
    outcome = contest(attack, tiny, clean, labels.tolist(), stop="first_success",
                      threat=Linf("64/255"))  # fmt: skip
    assert (outcome.predict(outcome.result).argmax(1) != labels).all()
    # Stopped at the first success: no point after it was looked at.
    for i, meter in enumerate(outcome.victim.meters):
        asked = [video[rows.tolist().index(i)] for rows, video in outcome.points if i in rows]
        assert len(asked) == meter.queries_to_first_success == meter.forwards
        stored = Linf("64/255").store(asked[-1][None], clean[i : i + 1])
        torch.testing.assert_close(stored[0], outcome.result[i], rtol=0, atol=1e-7)


@pytest.mark.parametrize("attack", BOTH)
def test_radius_zero_is_the_identity_without_a_query(attack, contest, tiny, videos):
    clean = videos(1, 3, 3, 12, 10)
    for threat in (Linf(0), L2(0)):
        outcome = contest(attack, tiny, clean, [0], threat=threat)
        assert torch.equal(outcome.result, clean)
        assert outcome.victim.meters[0].forwards == 0


@pytest.mark.parametrize("attack", BOTH)
@pytest.mark.parametrize("frames", [1, 5])
@pytest.mark.parametrize("views", [1, 3])
def test_odd_sizes_and_8_bits(attack, frames, views, contest, tiny, videos, labels_of):
    clean = videos(1, frames, 3, 33, 50)
    threat = Linf("8/255")
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), views=views, threat=threat)
    assert outcome.result.shape == clean.shape
    assert outcome.result.dtype == torch.float32
    moved = (outcome.result * 255).round() - (clean * 255).round()
    assert int(moved.abs().max()) == 8


@pytest.mark.parametrize("attack", BOTH)
def test_masks_and_radii_of_frames_and_videos(attack, contest, tiny, videos, labels_of):
    clean = videos(2, 4, 3, 12, 10)
    labels = labels_of(tiny, clean)
    some = contest(attack, tiny, clean, labels, threat=Linf("8/255", frames=(1, 3))).result
    assert torch.equal(some[:, [0, 2]], clean[:, [0, 2]])
    assert not torch.equal(some[:, [1, 3]], clean[:, [1, 3]])
    per_frame = Linf("8/255", per_frame_eps=(0.0, 2 / 255, 0.0, 4 / 255), quantize=False)
    moved = (contest(attack, tiny, clean, labels, threat=per_frame).result - clean).abs()
    assert moved.amax((0, 2, 3, 4)).tolist() == pytest.approx([0, 2 / 255, 0, 4 / 255], abs=1e-6)
    each = EXACT.with_eps(torch.tensor([2 / 255, 8 / 255]))
    moved = (contest(attack, tiny, clean, labels, threat=each).result - clean).abs()
    assert moved.flatten(1).amax(1).tolist() == pytest.approx([2 / 255, 8 / 255], abs=1e-6)


@pytest.mark.parametrize("attack", BOTH)
def test_loss_falls_and_more_radius_is_never_worse(attack, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    losses = []
    for levels in (0.25, 2, 4, 8, 16):
        threat = Linf(levels / 255, quantize=False)
        outcome = contest(attack, tiny, clean, labels, threat=threat)
        losses.append(float(outcome.victim.goals.loss(outcome.predict(outcome.result)).mean()))
    assert losses == sorted(losses, reverse=True)
    clean_loss = float(outcome.victim.goals.loss(outcome.predict(clean)).mean())
    assert losses[0] < clean_loss


def test_flat_and_saturated_models(contest, linear, videos):
    clean = videos(1, 2, 3, 6, 5)
    flat = linear(torch.zeros(1, 2, 3, 6, 5), [3.0])
    outcome = contest(Ifgsm(), flat, clean, [1])
    assert torch.equal(outcome.result, clean)
    assert outcome.victim.meters[0].zero_gradients == 20
    steep = linear(weights(1, 2, 3, 6, 5) * 1e4)
    for threat in (EXACT, L2(0.5, quantize=False)):
        result = contest(Pgd(), steep, clean, [1], threat=threat).result
        assert torch.isfinite(result).all()
        assert threat.within(result, clean).all()


def test_keep_last_returns_the_last_point(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    for keep in ("best", "last"):
        attack = Pgd(PgdParams(steps=4, step=0.08, keep=keep))
        outcome = contest(attack, tiny, clean, labels, threat=Linf(0.1, quantize=False))
        queried = torch.cat([video for _, video in outcome.points])
        losses = outcome.victim.goals.loss(
            outcome.predict(queried), torch.zeros(len(queried), dtype=torch.int64)
        )
        wanted = queried[-1] if keep == "last" else queried[int(losses.argmin())]
        assert torch.equal(outcome.result[0], wanted)


def test_more_restarts_only_add_runs(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    runs = [
        contest(Pgd(PgdParams(steps=3, restarts=r)), tiny, clean, labels, threat=EXACT)
        for r in (1, 2)
    ]
    first, second = (run.points for run in runs)
    assert all(torch.equal(a[1], b[1]) for a, b in zip(first, second[:4], strict=True))
    assert not torch.equal(second[4][1], first[0][1])
    losses = [float(r.victim.goals.loss(r.predict(r.result))) for r in runs]
    assert losses[1] <= losses[0]


def test_restarts_spare_videos_that_are_broken(contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    value = float((clean[0] * w[0]).sum())
    clean[1] = clean[0] + 0.3 * w[0].sign()
    outcome = contest(
        Pgd(PgdParams(steps=4, restarts=3)),
        linear(w, [1e-3 - value]),
        clean,
        [1, 1],
        stop="first_success",
    )
    easy, hard = outcome.victim.meters
    assert easy.done
    assert not hard.achieved
    assert easy.forwards < 5
    assert hard.forwards == 15


def test_random_starts_fill_the_ball(videos):
    clean = videos(4, 2, 3, 20, 20)
    point = random_point(EXACT, clean, VideoRandom([1, 2, 3, 4]))
    offset = (point - clean) / EPS
    assert float(offset.abs().max()) <= 1 + 1e-5
    assert abs(float(offset.mean())) < 0.02
    assert float(offset.std()) == pytest.approx(1 / 3**0.5, abs=0.01)
    assert not torch.equal(offset[0], offset[1])
    threat = L2(2.0, quantize=False)
    distance = (random_point(threat, clean, VideoRandom(range(4))) - clean).flatten(1).norm(dim=1)
    assert (distance <= 2.0 + 1e-5).all()
    assert (distance > 1.98).all()  # 2400 dimensions: nearly all of the volume is at the edge


def test_seeds(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    attack = Pgd(PgdParams(steps=2, step=0.001))
    first, again, other = (contest(attack, tiny, clean, labels, seed=s).result for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_norms_without_a_gradient_step_are_refused(contest, tiny, videos):
    with pytest.raises(IncompatibleComponents, match="'l1'"):
        contest(Pgd(), tiny, videos(1, 3, 3, 12, 10), [0], threat=L1(1.0))


def test_step_sizes(videos):
    clean = videos(2, 3, 3, 4, 4)
    assert step_sizes(0.1, 20, EXACT, clean).shape == (2, 1, 1, 1, 1)
    auto = step_sizes("auto", 20, EXACT, clean)
    torch.testing.assert_close(auto.flatten(), torch.full((2,), 1 / 255))
    auto = step_sizes("auto", 10, L2(2.0), clean)
    torch.testing.assert_close(auto.flatten(), torch.full((2,), 0.5))
    frames = step_sizes("auto", 10, Linf(0.5, per_frame_eps=(0.0, 0.1, 0.2)), clean)
    torch.testing.assert_close(frames.flatten(1), torch.tensor([[0.0, 0.025, 0.05]] * 2))


def test_unit_l2_of_tiny_and_zero_gradients():
    grads = torch.zeros(3, 1, 1, 1, 2)
    grads[0, ..., 0], grads[1, ..., 0], grads[1, ..., 1] = 1e-30, 3e-25, 4e-25
    units = unit_l2(grads).flatten(1)
    torch.testing.assert_close(units, torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 0.0]]))
