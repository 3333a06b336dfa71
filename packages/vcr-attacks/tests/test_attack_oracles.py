"""Equality with other libraries on one toy model; skipped where they are not installed.

torchattacks pins an old `requests`, so it has to be installed without dependencies.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.params.gradient import IfgsmParams, PgdParams
from vcr_attacks.params.query import SquareParams
from vcr_attacks.pgd import Pgd
from vcr_attacks.square import Square
from vcr_core.threat import L2, Linf

EPS, STEP, STEPS = 8 / 255, 2 / 255, 6


class Plain(nn.Module):
    """A classifier of videos ``[B, T, C, H, W]`` as other libraries want it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, videos: torch.Tensor) -> torch.Tensor:
        return self.model.logits(videos)[:, 0]


class Folded(Plain):
    """The same with time folded into channels, for libraries that know pictures only."""

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return super().forward(pictures.unflatten(1, (-1, 3)))


@pytest.fixture
def case(tiny, videos, labels_of):
    clean = videos(3, 3, 3, 16, 14)
    return tiny, clean, labels_of(tiny, clean)


def ours(contest, case, targets=None):
    model, clean, labels = case
    attack = Ifgsm(IfgsmParams(steps=STEPS, step=STEP, keep="last"))
    threat = Linf(EPS, quantize=False)
    return contest(attack, model, clean, labels, targets=targets, threat=threat).result


def test_ifgsm_equals_torchattacks(contest, case):
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    model, clean, labels = case
    attack = library.BIM(Plain(model).eval(), eps=EPS, alpha=STEP, steps=STEPS)
    assert torch.equal(attack(clean, torch.tensor(labels)), ours(contest, case))
    targets = [(y + 1) % 5 for y in labels]
    attack.set_mode_targeted_by_label(quiet=True)
    assert torch.equal(attack(clean, torch.tensor(targets)), ours(contest, case, targets))


def test_ifgsm_equals_foolbox(contest, case):
    library = pytest.importorskip("foolbox", reason="the oracle needs foolbox")
    model, clean, labels = case
    attack = library.attacks.LinfBasicIterativeAttack(
        abs_stepsize=STEP, steps=STEPS, random_start=False
    )
    wrapped = library.PyTorchModel(Plain(model).eval(), bounds=(0, 1), device="cpu")
    expected = attack.run(
        wrapped, clean, library.criteria.Misclassification(torch.tensor(labels)), epsilon=EPS
    )
    assert torch.equal(expected, ours(contest, case))


def test_l2_pgd_equals_foolbox(contest, case):
    library = pytest.importorskip("foolbox", reason="the oracle needs foolbox")
    model, clean, labels = case
    attack = library.attacks.L2PGD(abs_stepsize=0.2, steps=STEPS, random_start=False)
    wrapped = library.PyTorchModel(Plain(model).eval(), bounds=(0, 1), device="cpu")
    expected = attack.run(
        wrapped, clean, library.criteria.Misclassification(torch.tensor(labels)), epsilon=0.7
    )
    params = PgdParams(steps=STEPS, step=0.2, random_start=False, keep="last")
    threat = L2(0.7, quantize=False)
    result = contest(Pgd(params), model, clean, labels, threat=threat).result
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", ["Linf", "L2"])
def test_square_is_as_strong_as_torchattacks(norm, contest, case):
    """The draws differ (theirs never reach the last row), so means over seeds are compared."""
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    model, clean, labels = case
    clean, labels = clean[:1], labels[:1]
    y = torch.tensor(labels)
    eps = 4 / 255 if norm == "Linf" else 0.5
    threat = {"Linf": Linf, "L2": L2}[norm](eps, quantize=False)
    folded = Folded(model).eval()
    theirs, own = [], []
    for seed in range(10):
        attack = library.Square(folded, norm=norm, eps=eps, n_queries=79, p_init=0.8, loss="margin")
        pictures = clean.flatten(1, 2)
        attack.init_hyperparam(pictures)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            picture = attack.attack_single_run(pictures, y)[1].unflatten(1, (-1, 3))
        params = SquareParams(iterations=79, temporal="fold", loss="margin")
        outcome = contest(
            Square(params), model, clean, labels, access="score", seed=seed, threat=threat
        )
        margins = [
            float(outcome.victim.goals.loss(outcome.predict(v), kind="margin"))
            for v in (clean, picture, outcome.result)
        ]
        assert margins[1] > 0  # or theirs would have stopped early
        theirs.append(margins[0] - margins[1])
        own.append(margins[0] - margins[2])
    assert min(own) > 0
    assert sum(own) == pytest.approx(sum(theirs), rel=0.15)
