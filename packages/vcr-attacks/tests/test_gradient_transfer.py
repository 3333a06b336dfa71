"""tt: pinned kernels, and what it is on surrogates that do and do not see a shift."""

from __future__ import annotations

import msgspec
import pytest
import torch
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.params.gradient import IfgsmParams, TtParams
from vcr_attacks.tt import TemporalTranslation, kernel
from vcr_core.threat import Linf

EXACT = Linf(8 / 255, quantize=False)


class Timeless(torch.nn.Module):
    """A model of the mean frame: rolling the frames changes nothing."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model, self.labels, self.clip = model, model.labels, model.clip

    def logits(self, clips: torch.Tensor) -> torch.Tensor:
        return self.model.logits(clips.mean(1, keepdim=True).expand_as(clips))


def transfer(contest, params, model, clean, labels, **options):
    return contest(
        TemporalTranslation(params), model, clean, labels, access="transfer",
        threat=options.pop("threat", EXACT), surrogates={"tiny-r3d": model}, **options,
    )  # fmt: skip


@pytest.fixture
def case(tiny, videos, labels_of):
    clean = videos(2, 6, 3, 12, 10)
    return tiny, clean, labels_of(tiny, clean)


@pytest.mark.golden
def test_published_kernels():
    half = [0.17118, 0.15616, 0.11855, 0.0749, 0.03938, 0.01723, 0.00628, 0.0019]
    assert kernel(15, "gaussian")[7:] == pytest.approx(half, abs=1e-5)
    assert kernel(15, "linear")[7:] == pytest.approx([(8 - s) / 64 for s in range(8)])
    assert kernel(15, "uniform") == pytest.approx([1 / 15] * 15)
    for shape in ("gaussian", "linear", "uniform"):
        for length in (1, 3, 15):
            weights = kernel(length, shape)
            assert sum(weights) == pytest.approx(1)
            assert weights == pytest.approx(weights[::-1])


def test_one_shift_is_ifgsm_on_the_surrogate(contest, case):
    ours = transfer(contest, TtParams(kernel=1), *case)
    ifgsm = Ifgsm(IfgsmParams(steps=10, step=0.8 / 255, keep="last"))
    theirs = contest(ifgsm, *case, threat=EXACT)
    torch.testing.assert_close(ours.result, theirs.result, rtol=0, atol=1e-6)
    exact = transfer(contest, TtParams(kernel=1, step=1 / 255), *case)
    ifgsm = Ifgsm(IfgsmParams(steps=10, step=1 / 255, keep="last"))
    assert torch.equal(exact.result, contest(ifgsm, *case, threat=EXACT).result)


def test_a_surrogate_that_sees_no_shift(contest, case):
    tiny, clean, labels = case
    model = Timeless(tiny)
    one, many = (
        transfer(contest, TtParams(kernel=k, steps=4), model, clean, labels).result for k in (1, 7)
    )
    torch.testing.assert_close(one, many, rtol=0, atol=1e-6)


def test_gradients_are_rolled_back(contest, linear, videos):
    # The gradient of a linear model is its weights wherever it is asked: rolled back by s.
    w = torch.zeros(1, 4, 3, 6, 5)
    w[0, 1] = torch.randn(3, 6, 5, generator=torch.Generator().manual_seed(0)) / 100
    clean = videos(1, 4, 3, 6, 5)
    params = TtParams(kernel=3, weights="linear", steps=1, step=2 / 255)
    moved = (transfer(contest, params, linear(w), clean, [1]).result - clean)[0]
    sign = w[0, 1].sign() * 2 / 255
    for frame in (0, 1, 2):
        torch.testing.assert_close(moved[frame], -sign, rtol=0, atol=1e-6)
    assert not moved[3].any()


def test_the_victim_is_not_asked_and_the_surrogate_is_metered(contest, case):
    outcome = transfer(contest, TtParams(kernel=3, steps=4), *case)
    assert [m.forwards for m in outcome.victim.meters] == [0, 0]
    meters = outcome.surrogates["tiny-r3d"].meters
    assert [(m.forwards, m.backwards) for m in meters] == [(12, 12)] * 2


@pytest.mark.parametrize("shifts", ["adjacent", "remote", "random"])
@pytest.mark.parametrize("decay", [0.0, 1.0])
def test_balls_frames_and_losses(shifts, decay, contest, case):
    tiny, clean, labels = case
    threat = Linf("8/255", frames=(0, 2, 3))
    params = TtParams(kernel=15, steps=2, shifts=shifts, decay=decay)
    first, again = (transfer(contest, params, tiny, clean, labels, threat=threat) for _ in range(2))
    assert torch.equal(first.result, again.result)
    assert threat.within(first.result, clean).all()
    assert torch.equal(first.result[:, [1, 4, 5]], clean[:, [1, 4, 5]])
    loss = first.victim.goals.loss
    assert (loss(first.predict(first.result)) < loss(first.predict(clean))).all()


@pytest.mark.parametrize("frames", [1, 2])
def test_fewer_frames_than_shifts(frames, contest, tiny, videos, labels_of):
    clean = videos(1, frames, 3, 33, 50)
    outcome = transfer(contest, TtParams(steps=2), tiny, clean, labels_of(tiny, clean))
    assert outcome.result.shape == clean.shape


def test_targets(contest, case):
    tiny, clean, labels = case
    targets = [(y + 1) % 5 for y in labels]
    outcome = transfer(contest, TtParams(kernel=3), tiny, clean, labels, targets=targets)
    p = [outcome.predict(v).exp()[range(2), targets] for v in (clean, outcome.result)]
    assert (p[1] > p[0]).all()


def test_radius_zero_and_bad_kernels(contest, case):
    outcome = transfer(contest, TtParams(), *case, threat=Linf(0))
    assert torch.equal(outcome.result, case[1])
    assert outcome.surrogates["tiny-r3d"].meters[0].forwards == 0
    with pytest.raises(msgspec.ValidationError, match="odd"):
        msgspec.convert({"kernel": 4}, TtParams)
