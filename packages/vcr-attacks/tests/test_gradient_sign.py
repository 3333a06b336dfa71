"""fgsm and mifgsm: closed forms, pinned numbers, equality with each other and with libraries."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from vcr_attacks.fgsm import Fgsm
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.mifgsm import Mifgsm, Momentum
from vcr_attacks.params.gradient import FgsmParams, IfgsmParams, MifgsmParams, PgdParams
from vcr_attacks.pgd import Pgd
from vcr_core.errors import IncompatibleComponents
from vcr_core.threat import L1, L2, Linf

EPS = 8 / 255
EXACT = Linf(EPS, quantize=False)


def weights(*shape: int, seed: int = 3) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return drawn / drawn[0].numel() ** 0.5


class Folded(nn.Module):
    """A classifier of pictures with time folded into channels, as other libraries want it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.model.logits(pictures.unflatten(1, (-1, 3)))[:, 0]


@pytest.fixture
def case(tiny, videos, labels_of):
    clean = videos(3, 3, 3, 16, 14)
    return tiny, clean, labels_of(tiny, clean)


@pytest.mark.parametrize("targets", [None, True])
def test_fgsm_is_one_step_of_ifgsm(targets, contest, case):
    model, clean, labels = case
    targets = targets and [(y + 1) % 5 for y in labels]
    one = Ifgsm(IfgsmParams(steps=1, step=EPS))
    both = [contest(a, model, clean, labels, targets=targets, threat=EXACT).result
            for a in (Fgsm(), one)]  # fmt: skip
    assert torch.equal(*both)


@pytest.mark.parametrize("attack", [Fgsm(), Mifgsm()])
@pytest.mark.parametrize("views", [1, 3])
def test_linear_optimum(attack, views, contest, linear, videos):
    w = weights(1, 2, 3, 6, 5)
    clean = videos(2, 2, 3, 6, 5)
    outcome = contest(attack, linear(w), clean, [1, 1], threat=EXACT, views=views)
    torch.testing.assert_close(outcome.result, clean - EPS * w.sign(), rtol=0, atol=1e-6)


def test_fgsm_in_l2_goes_along_the_gradient(contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    threat = L2(0.5, quantize=False)
    result = contest(Fgsm(), linear(w), clean, [1, 1], threat=threat).result
    torch.testing.assert_close(result, clean - 0.5 * w / w.norm(), rtol=0, atol=1e-6)
    with pytest.raises(IncompatibleComponents, match="'l1'"):
        contest(Fgsm(), linear(w), clean, [1, 1], threat=L1(1.0))


@pytest.mark.parametrize("attack", [Fgsm(), Pgd(PgdParams(steps=1, step=0.5, random_start=False))])
def test_l2_steps_are_as_long_on_some_frames_as_on_all(attack, contest, linear, videos):
    # What the gradient is on frames that may not change must not shorten the step.
    w, clean = weights(1, 4, 3, 6, 5), videos(1, 4, 3, 6, 5)
    threat = L2(0.5, frames=(2,), quantize=False)
    moved = contest(attack, linear(w), clean, [1], threat=threat).result - clean
    assert float(moved.norm()) == pytest.approx(0.5, rel=1e-4)
    assert not moved[:, [0, 1, 3]].any()


@pytest.mark.parametrize("threat", [EXACT, L2(0.5, quantize=False)])
def test_fgsm_with_a_random_half(threat, contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    attack = Fgsm(FgsmParams(random_start=True, keep="last"))
    first, again, other = (
        contest(attack, linear(w), clean, [1, 1], threat=threat, seed=seed) for seed in (1, 1, 2)
    )
    assert torch.equal(first.result, again.result)
    assert not torch.equal(first.result, other.result)
    assert threat.within(first.result, clean).all()
    start = first.points[0][1]
    half = threat.with_eps(threat.eps / 2)
    assert half.within(start, clean).all()
    assert not torch.equal(start[0] - clean[0], start[1] - clean[1])
    assert half.within(first.result, start).all()


@pytest.mark.parametrize(
    ("attack", "forwards", "backwards"),
    [(Fgsm(), 2, 1), (Mifgsm(), 21, 20), (Mifgsm(MifgsmParams(steps=7)), 8, 7)],
)
def test_costs(attack, forwards, backwards, contest, case):
    for meter in contest(attack, *case).victim.meters:
        assert (meter.forwards, meter.backwards) == (forwards, backwards)


@pytest.mark.golden
def test_pinned_momentum():
    grads = [torch.tensor(g).view(1, 1, 1, 1, 2) for g in ([1.0, -3.0], [-0.2, 0.2])]
    rows = torch.tensor([0])
    for normalize, sums, signs in (
        (True, [-0.25, -0.25], [-1.0, -1.0]),
        (False, [0.8, -2.8], [1.0, -1.0]),
    ):
        momentum = Momentum(torch.zeros(1, 1, 1, 1, 2), 1.0, normalize=normalize)
        for grad in grads:
            moved = momentum(grad.clone(), rows)
        torch.testing.assert_close(momentum._sum.flatten(), torch.tensor(sums))
        assert moved.flatten().tolist() == signs


def test_momentum_of_frames_is_normalised_apart():
    grad = torch.ones(1, 2, 1, 1, 2)
    grad[:, 1] *= 100
    momentum = Momentum(grad, 1.0, scope="frame")
    momentum(grad.clone(), torch.tensor([0]))
    assert momentum._sum.flatten().tolist() == [0.5] * 4


def test_without_decay_mifgsm_is_ifgsm(contest, case):
    both = [contest(a, *case, threat=EXACT).result
            for a in (Mifgsm(MifgsmParams(decay=0.0)), Ifgsm())]  # fmt: skip
    assert torch.equal(*both)


@pytest.mark.parametrize("stop", ["budget", "first_success"])
def test_a_batch_of_three_equals_three_single_runs(stop, contest, linear, videos):
    # The difficulty differs, so videos leave the batch while others go on accumulating.
    w, clean = weights(4, 2, 3, 6, 5), videos(3, 2, 3, 6, 5)
    model = linear(w, [0.4, 0.1, -0.3, 0.2])
    labels = model.logits(clean)[:, 0].argmax(1).tolist()
    together = contest(Mifgsm(), model, clean, labels, stop=stop)
    for i in range(3):
        alone = contest(Mifgsm(), model, clean[i : i + 1], labels[i : i + 1], stop=stop)
        assert torch.equal(alone.result[0], together.result[i])


def test_flat_and_saturated_models(contest, linear, videos):
    clean = videos(1, 2, 3, 6, 5)
    flat = linear(torch.zeros(1, 2, 3, 6, 5), [3.0])
    for attack in (Fgsm(), Mifgsm()):
        assert torch.equal(contest(attack, flat, clean, [1]).result, clean)
        steep = contest(attack, linear(weights(1, 2, 3, 6, 5) * 1e4), clean, [1]).result
        assert torch.isfinite(steep).all()


@pytest.mark.parametrize("attack", [Fgsm(), Mifgsm()])
def test_masks_and_radii_of_frames(attack, contest, tiny, videos, labels_of):
    clean = videos(2, 4, 3, 33, 50)
    labels = labels_of(tiny, clean)
    some = contest(attack, tiny, clean, labels, threat=Linf("8/255", frames=(1, 3))).result
    assert torch.equal(some[:, [0, 2]], clean[:, [0, 2]])
    assert int(((some - clean) * 255).round().abs().max()) == 8
    radii = (0.0, 2 / 255, 0.0, 4 / 255)
    threat = Linf("8/255", per_frame_eps=radii, quantize=False)
    moved = (contest(attack, tiny, clean, labels, threat=threat).result - clean).abs()
    assert moved.amax((0, 2, 3, 4)).tolist() == pytest.approx(radii, abs=1e-6)


def test_fgsm_equals_foolbox_and_torchattacks(contest, case):
    model, clean, labels = case
    y = torch.tensor(labels)
    ours = contest(Fgsm(FgsmParams(keep="last")), model, clean, labels, threat=EXACT).result
    pictures = clean.flatten(1, 2)
    foolbox = pytest.importorskip("foolbox", reason="the oracle needs foolbox")
    wrapped = foolbox.PyTorchModel(Folded(model).eval(), bounds=(0, 1), device="cpu")
    attack = foolbox.attacks.FGSM(random_start=False)
    theirs = attack.run(wrapped, pictures, foolbox.criteria.Misclassification(y), epsilon=EPS)
    assert torch.equal(theirs.view_as(clean), ours)
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    theirs = library.FGSM(Folded(model).eval(), eps=EPS)(pictures, y)
    assert torch.equal(theirs.view_as(clean), ours)


def test_mifgsm_equals_torchattacks(contest, case):
    library = pytest.importorskip("torchattacks", reason="the oracle needs torchattacks")
    model, clean, labels = case
    params = MifgsmParams(steps=8, step=2 / 255, decay=0.7, keep="last")
    ours = contest(Mifgsm(params), model, clean, labels, threat=EXACT).result
    attack = library.MIFGSM(Folded(model).eval(), eps=EPS, alpha=2 / 255, steps=8, decay=0.7)
    theirs = attack(clean.flatten(1, 2), torch.tensor(labels))
    torch.testing.assert_close(theirs.view_as(clean), ours, rtol=0, atol=1e-6)
