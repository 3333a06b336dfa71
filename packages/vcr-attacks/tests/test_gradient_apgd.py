"""apgd: pinned checkpoints, strength, cost, and what it does about classes and broken videos."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from vcr_attacks.apgd import Apgd, _Run, checkpoints
from vcr_attacks.fgsm import Fgsm
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.params.gradient import ApgdParams
from vcr_core.errors import IncompatibleComponents, UsageError
from vcr_core.threat import L1, L2, Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


def weights(*shape: int, seed: int = 3) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return drawn / drawn[0].numel() ** 0.5


def final(outcome) -> float:
    return float(outcome.victim.goals.loss(outcome.predict(outcome.result)).mean())


@pytest.mark.golden
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (5, [1, 2, 3, 4, 5]),
        (20, [4, 7, 9, *range(10, 21)]),
        (50, [11, 21, 30, 38, 45]),
        (100, [22, 41, 57, 70, 80, 87, 93, 99]),
        (200, [44, 82, 114, 140, 160, 174, 186, 198]),
    ],
)
def test_published_checkpoints(steps, expected):
    assert checkpoints(steps) == expected


def test_steps_are_halved_by_either_rule():
    points = torch.zeros(3, 1, 1, 1, 1)
    run = _Run.begin(points, 0.75)
    rows = torch.arange(3)
    # Video 0 falls all the time; 1 swings; 2 falls but never below its start.
    for values in ([3.0, 3.0, 0.0], [2.0, 2.0, 3.0], [1.0, 2.5, 2.0], [0.5, 1.5, 1.0]):
        run.note(rows, points, torch.tensor(values), points, points)
    assert run.asked.tolist() == [3, 3, 3]
    assert run.halve(rows).tolist() == [1, 2]
    assert run.share.tolist() == [1, 0.5, 0.5]
    # Nothing better since: a step that was not halved at the last checkpoint is halved now.
    for values in ([0.9] * 3, [0.8] * 3, [0.7] * 3, [0.6] * 3):
        run.note(rows, points, torch.tensor(values), points, points)
    assert run.halve(rows).tolist() == [0]
    assert run.best_loss.tolist() == [0.5, pytest.approx(0.6), 0.0]


@pytest.mark.parametrize("threat", [EXACT, L2(0.5, quantize=False)])
def test_linear_optimum(threat, contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    outcome = contest(Apgd(ApgdParams(steps=50)), linear(w), clean, [1, 1], threat=threat)
    best = clean - (EPS * w.sign() if threat.norm == "linf" else 0.5 * w / w.norm())
    torch.testing.assert_close(outcome.result, best, rtol=0, atol=1e-3)
    assert threat.within(outcome.result, clean).all()
    with pytest.raises(IncompatibleComponents, match="'l1'"):
        contest(Apgd(), linear(w), clean, [1, 1], threat=L1(1.0))


def test_starts_on_the_surface_of_the_ball(contest, tiny, videos):
    clean = videos(2, 3, 3, 12, 10)
    for threat, size in ((EXACT, torch.inf), (L2(0.5, quantize=False), 2)):
        start = contest(Apgd(ApgdParams(steps=1)), tiny, clean, [0, 0], threat=threat).points[0][1]
        distance = torch.linalg.vector_norm((start - clean).flatten(1), size, dim=1)
        torch.testing.assert_close(distance, torch.full((2,), threat.eps), rtol=1e-4, atol=0)


def test_stronger_than_ifgsm_and_fgsm(contest, tiny, videos, labels_of):
    wins = 0
    for seed in range(10):
        clean = videos(1, 3, 3, 16, 14, seed=seed)
        labels = labels_of(tiny, clean)
        apgd, ifgsm, fgsm = (
            final(contest(a, tiny, clean, labels, threat=EXACT, seed=seed))
            for a in (Apgd(), Ifgsm(), Fgsm())
        )
        assert ifgsm <= fgsm
        wins += apgd <= ifgsm
    assert wins >= 8


@pytest.mark.parametrize(
    ("params", "forwards", "backwards"),
    [
        ({"steps": 7}, 8, 7),
        ({"steps": 4, "restarts": 3}, 15, 12),
        ({"steps": 4, "loss": "dlr-targeted", "target_classes": 2}, 11, 8),
        ({"steps": 4, "loss": "dlr-targeted"}, 21, 16),  # 5 classes: 4 wrong ones
    ],
)
def test_costs(params, forwards, backwards, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    outcome = contest(Apgd(ApgdParams(**params)), tiny, clean, labels_of(tiny, clean))
    for meter in outcome.victim.meters:
        assert (meter.forwards, meter.backwards) == (forwards, backwards)


@pytest.mark.parametrize("budget", [1, 2, 10, 1000])
@pytest.mark.parametrize("loss", ["ce", "dlr-targeted"])
def test_budgets_are_kept(budget, loss, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    attack = Apgd(ApgdParams(loss=loss))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), max_forwards=budget)
    assert all(meter.forwards <= budget for meter in outcome.victim.meters)
    assert EXACT.within(outcome.result, clean).all()


def test_each_pseudo_target_is_pulled_up(contest, linear, videos):
    # Runs end at the first wrong class that leads, whichever of the four it is.
    w = weights(4, 2, 3, 6, 5)
    clean = videos(1, 2, 3, 6, 5)
    attack = Apgd(ApgdParams(loss="dlr-targeted", target_classes=4))
    model = linear(w, [0.4, 0.1, -0.3, 0.2])
    label = int(model.logits(clean)[0, 0].argmax())
    outcome = contest(attack, model, clean, [label], threat=Linf("64/255", quantize=False),
                      stop="first_success")  # fmt: skip
    assert outcome.predict(outcome.result).argmax(1).tolist() != [label]


def test_dlr_needs_classes(contest, linear, videos):
    clean = videos(1, 2, 3, 6, 5)
    for loss in ("dlr", "dlr-targeted"):
        with pytest.raises(UsageError, match="classes"):
            contest(Apgd(ApgdParams(loss=loss)), linear(weights(1, 2, 3, 6, 5)), clean, [1])


@pytest.mark.parametrize("loss", ["ce", "dlr", "dlr-targeted"])
def test_targets_are_reached(loss, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    targets = [(y + 1) % 5 for y in labels]
    attack = Apgd(ApgdParams(loss=loss))
    outcome = contest(attack, tiny, clean, labels, targets=targets, threat=Linf("32/255"))
    p = [outcome.predict(v).exp()[range(2), targets] for v in (clean, outcome.result)]
    assert (p[1] > p[0]).all()


def test_a_batch_of_three_equals_three_single_runs(contest, linear, videos):
    w, clean = weights(4, 2, 3, 6, 5), videos(3, 2, 3, 6, 5)
    model = linear(w, [0.4, 0.1, -0.3, 0.2])
    labels = model.logits(clean)[:, 0].argmax(1).tolist()
    ids = ["a", "b", "c"]
    together = contest(Apgd(), model, clean, labels, stop="first_success", ids=ids)
    for i in range(3):
        alone = contest(
            Apgd(), model, clean[i : i + 1], labels[i : i + 1], stop="first_success",
            ids=ids[i : i + 1],
        )  # fmt: skip
        assert torch.equal(alone.result[0], together.result[i])


def test_broken_videos_are_spared(contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(1, 2, 3, 6, 5)
    offset = float(1e-3 - (clean[0] * w[0]).sum())
    attack = Apgd(ApgdParams(restarts=5))
    outcome = contest(attack, linear(w, [offset]), clean, [1], stop="first_success")
    assert outcome.victim.meters[0].done
    assert outcome.victim.meters[0].forwards < 5


def test_odd_sizes_masks_and_flat_models(contest, tiny, linear, videos, labels_of):
    clean = videos(1, 5, 3, 33, 50)
    threat = Linf("8/255", frames=(1, 3))
    result = contest(Apgd(), tiny, clean, labels_of(tiny, clean), threat=threat, views=3).result
    assert torch.equal(result[:, [0, 2, 4]], clean[:, [0, 2, 4]])
    assert int(((result - clean) * 255).round().abs().max()) == 8
    one = videos(1, 1, 3, 6, 5)
    flat = linear(torch.zeros(1, 1, 3, 6, 5), [3.0])
    assert torch.isfinite(contest(Apgd(), flat, one, [1]).result).all()


class Folded(nn.Module):
    """A classifier of pictures with time folded into channels, as other libraries want it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.model.logits(pictures.unflatten(1, (-1, 3)))[:, 0]


@pytest.mark.parametrize(("norm", "eps"), [("Linf", 2 / 255), ("L2", 0.2)])
def test_as_strong_as_torchattacks(norm, eps, contest, tiny, videos, labels_of):
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    clean = videos(4, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    threat = {"Linf": Linf, "L2": L2}[norm](eps, quantize=False)
    outcome = contest(Apgd(), tiny, clean, labels, threat=threat)
    attack = library.APGD(Folded(tiny).eval(), norm=norm, eps=eps, steps=20, seed=0)
    with torch.random.fork_rng(devices=[]):
        pictures, y = clean.flatten(1, 2), torch.tensor(labels)
        theirs = attack.attack_single_run(pictures, y)[0]
    loss = outcome.victim.goals.loss
    drop = [
        float((loss(outcome.predict(clean)) - loss(outcome.predict(v))).mean())
        for v in (outcome.result, theirs.unflatten(1, (-1, 3)).detach())
    ]
    assert drop[0] == pytest.approx(drop[1], rel=0.02)
