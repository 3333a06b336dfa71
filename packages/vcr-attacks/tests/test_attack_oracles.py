"""Equality with other libraries on one toy model; skipped where they are not installed.

torchattacks pins an old `requests`, so it has to be installed without dependencies; pyautoattack,
a packaged fork of the authors' AutoAttack, asks for more than it needs: install it so, too.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn
from vcr_attacks import apgd
from vcr_attacks.cw import Cw
from vcr_attacks.deepfool import DeepFool
from vcr_attacks.fab import Fab
from vcr_attacks.fgsm import Fgsm
from vcr_attacks.frame_saliency import FrameSaliency
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.mifgsm import Mifgsm
from vcr_attacks.params.gradient import (
    ApgdParams,
    CwParams,
    FabParams,
    FgsmParams,
    IfgsmParams,
    MifgsmParams,
    PgdParams,
)
from vcr_attacks.params.query import SquareParams
from vcr_attacks.pgd import Pgd
from vcr_attacks.square import Square
from vcr_core.threat import L2, Linf, Unbounded

EPS, STEP, STEPS = 8 / 255, 2 / 255, 6
BALL = Linf(EPS, quantize=False)
FREE = Unbounded(quantize=False)


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


def close(found, expected, share=0.999):
    """Equal but for pixels whose gradient is 0 up to rounding, where a sign may be either."""
    same = (found - expected).abs() < 1e-6
    assert same.float().mean() >= share


@pytest.fixture
def in_foolbox(case):
    """A function that runs one of foolbox's attacks."""
    library = pytest.importorskip("foolbox", reason="the oracle needs foolbox")
    model, clean, labels = case
    wrapped = library.PyTorchModel(Plain(model).eval(), bounds=(0, 1), device="cpu")
    criterion = library.criteria.Misclassification(torch.tensor(labels))

    def run(name, eps=None, **options):
        attack = getattr(library.attacks, name)(**options)
        return (
            attack.run(wrapped, clean, criterion, epsilon=eps)
            if eps
            else attack.run(wrapped, clean, criterion)
        )

    return run


@pytest.fixture
def in_art(case):
    """A function that runs one of ART's attacks."""
    pytest.importorskip("art", reason="the oracle needs adversarial-robustness-toolbox")
    from art.attacks import evasion
    from art.estimators.classification import PyTorchClassifier

    model, clean, labels = case
    wrapped = PyTorchClassifier(
        Plain(model).eval(), loss=nn.CrossEntropyLoss(), nb_classes=5,
        input_shape=tuple(clean.shape[1:]), clip_values=(0, 1), device_type="cpu",
    )  # fmt: skip

    def run(name, inner=None, **options):
        first = wrapped if inner is None else (wrapped, inner(evasion, wrapped))
        chosen = first if isinstance(first, tuple) else (first,)
        attack = getattr(evasion, name)(*chosen, **options)
        return torch.from_numpy(attack.generate(clean.numpy(), torch.tensor(labels).numpy()))

    return run


def test_fgsm_equals_three_libraries(contest, case, in_foolbox, in_art):
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    model, clean, labels = case
    own = contest(Fgsm(FgsmParams(keep="last")), model, clean, labels, threat=BALL).result
    theirs = library.FGSM(Plain(model).eval(), eps=EPS)(clean, torch.tensor(labels))
    assert torch.equal(own, theirs)
    assert torch.equal(own, in_foolbox("LinfFastGradientAttack", EPS, random_start=False))
    close(own, in_art("FastGradientMethod", eps=EPS))


def test_ifgsm_and_mifgsm_equal_art(contest, case, in_art):
    model, clean, labels = case
    theirs = in_art("BasicIterativeMethod", eps=EPS, eps_step=STEP, max_iter=STEPS, verbose=False)
    close(ours(contest, case), theirs)
    theirs = in_art(
        "MomentumIterativeMethod", eps=EPS, eps_step=STEP, max_iter=STEPS, decay=1.0, verbose=False
    )
    params = MifgsmParams(steps=STEPS, step=STEP, keep="last")
    close(contest(Mifgsm(params), model, clean, labels, threat=BALL).result, theirs)


def test_mifgsm_equals_torchattacks_on_folded_videos(contest, case):
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    model, clean, labels = case
    attack = library.MIFGSM(Folded(model).eval(), eps=EPS, alpha=STEP, steps=STEPS, decay=1.0)
    theirs = attack(clean.flatten(1, 2), torch.tensor(labels)).unflatten(1, (-1, 3))
    params = MifgsmParams(steps=STEPS, step=STEP, keep="last")
    close(contest(Mifgsm(params), model, clean, labels, threat=BALL).result, theirs)


def test_pgd_equals_torchattacks(contest, case):
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    model, clean, labels = case
    attack = library.PGD(Plain(model).eval(), eps=EPS, alpha=STEP, steps=STEPS, random_start=False)
    theirs = attack(clean, torch.tensor(labels))
    params = PgdParams(steps=STEPS, step=STEP, random_start=False, keep="last")
    assert torch.equal(contest(Pgd(params), model, clean, labels, threat=BALL).result, theirs)


def test_cw_is_as_close_as_foolbox(contest, case, in_foolbox):
    model, clean, labels = case
    theirs = in_foolbox(
        "L2CarliniWagnerAttack", binary_search_steps=5, steps=60, stepsize=0.01, initial_const=0.1
    )
    params = CwParams(rounds=5, steps=60, weight=0.1, lr=0.01)
    own = contest(Cw(params), model, clean, labels, threat=FREE).result
    sizes = [(v - clean).flatten(1).norm(dim=1) for v in (own, theirs)]
    torch.testing.assert_close(sizes[0], sizes[1], rtol=0.02, atol=0)


def test_deepfool_equals_art(contest, case, in_art):
    model, clean, labels = case
    theirs = in_art("DeepFool", max_iter=50, epsilon=0.02, nb_grads=5, verbose=False)
    own = contest(DeepFool(), model, clean, labels, threat=FREE).result
    sizes = [(v - clean).flatten(1).norm(dim=1) for v in (own, theirs)]
    torch.testing.assert_close(sizes[0], sizes[1], rtol=0.02, atol=0)


def test_frame_saliency_touches_the_frames_that_art_touches(contest, case, in_art):
    model, clean, labels = case

    def steps(evasion, wrapped):
        return evasion.FastGradientMethod(wrapped, eps=EPS)

    theirs = in_art("FrameSaliencyAttack", inner=steps, verbose=False)
    outcome = contest(FrameSaliency(), model, clean, labels, threat=BALL, stop="first_success")
    touched = [(v != clean).flatten(2).any(dim=2) for v in (outcome.result, theirs)]
    broken = outcome.predict(theirs).argmax(1) != torch.tensor(labels)
    assert torch.equal(outcome.predict(outcome.result).argmax(1) != torch.tensor(labels), broken)
    assert torch.equal(touched[0][broken], touched[1][broken])
    close(outcome.result[broken], theirs[broken]) if broken.any() else None


@pytest.mark.parametrize("norm", ["Linf", "L2"])
@pytest.mark.parametrize("loss", ["ce", "dlr"])
def test_apgd_takes_the_steps_of_autoattack(norm, loss, contest, case, monkeypatch):
    """From the same start, the clean video: theirs draws from the global generator."""
    pytest.importorskip("pyautoattack", reason="the oracle needs pyautoattack")
    from pyautoattack.autopgd_base import APGDAttack

    model, clean, labels = case
    eps = 2 / 255 if norm == "Linf" else 0.2
    attack = APGDAttack(
        Plain(model).eval(), n_iter=20, norm=norm, eps=eps, seed=0, loss=loss, rho=0.75,
        device="cpu",
    )  # fmt: skip
    y = torch.tensor(labels)
    attack.init_hyperparam(clean)
    with torch.random.fork_rng(devices=[]):
        best, _, reached, _ = attack.attack_single_run(clean, y, x_init=clean)
    monkeypatch.setattr(apgd._Search, "_start", lambda self, random: self._clean.clone())
    threat = {"Linf": Linf, "L2": L2}[norm](eps, quantize=False)
    own = contest(apgd.Apgd(ApgdParams(steps=20, loss=loss)), model, clean, labels, threat=threat)
    lost = own.victim.goals.loss(own.predict(own.result), kind=loss)
    theirs = own.victim.goals.loss(own.predict(best), kind=loss)
    torch.testing.assert_close(theirs, -reached, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(lost, theirs, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("norm", ["Linf", "L2"])
@pytest.mark.parametrize("boundary", ["nearest", "each"])
def test_fab_takes_the_steps_of_autoattack(norm, boundary, contest, case):
    pytest.importorskip("pyautoattack", reason="the oracle needs pyautoattack")
    from pyautoattack.fab_pt import FABAttack_PT

    model, clean, labels = case
    y = torch.tensor(labels)
    attack = FABAttack_PT(Plain(model).eval(), norm=norm, n_iter=15, device="cpu")
    found = []
    for number in (2, 3, 4, 5) if boundary == "each" else (0,):
        attack.target_class = number
        found.append(attack.attack_single_run(clean, y, is_targeted=boundary == "each") - clean)
    params = FabParams(steps=15, boundary=boundary, target_classes=4, distance=norm.lower())
    own = contest(Fab(params), model, clean, labels, threat=FREE).result - clean
    infinite = norm == "Linf"

    def size(change):
        flat = change.flatten(1)
        return flat.abs().amax(1) if infinite else flat.norm(dim=1)

    sizes = torch.stack([size(f) for f in found])
    theirs = sizes.where(sizes > 0, torch.inf).amin(0)
    torch.testing.assert_close(size(own), theirs, rtol=2e-3, atol=0)
