"""cw and deepfool: how close they come to the exact distance of a linear boundary."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.cw import Cw
from vcr_attacks.deepfool import DeepFool
from vcr_attacks.params.gradient import CwParams, DeepFoolParams
from vcr_core.threat import L2, Linf, Unbounded

FREE = Unbounded(quantize=False)
FREE_SECOND = Unbounded(frames=(1,), quantize=False)
SHORT = CwParams(rounds=5, steps=40, weight=0.1)


def weights(*shape: int, seed: int = 3) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return drawn / drawn[0].numel() ** 0.5


@pytest.fixture
def binary(linear, videos):
    """A linear model, two videos of class 1 and their distances to the boundary."""
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    clean[1] = clean[0] + 0.02 * w[0].sign()
    model = linear(w, [0.15 - float((clean[0] * w[0]).sum())])
    gaps = model.logits(clean)[:, 0, 1]
    return model, clean, gaps / w.norm()


def sizes(outcome, clean):
    return (outcome.result - clean).flatten(1).norm(dim=1)


def test_cw_finds_the_distance_to_the_boundary(contest, binary):
    model, clean, distances = binary
    outcome = contest(Cw(), model, clean, [1, 1], threat=FREE, stop="first_success")
    ratio = sizes(outcome, clean) / distances
    assert (ratio >= 1).all()
    assert (ratio <= 1.01).all()
    assert outcome.predict(outcome.result).argmax(1).tolist() == [0, 0]


def test_cw_asks_for_more_margin(contest, binary):
    model, clean, _ = binary
    attack = Cw(CwParams(rounds=6, steps=60, weight=0.1, kappa=0.5))
    outcome = contest(attack, model, clean, [1, 1], threat=FREE)
    z = outcome.predict(outcome.result)
    assert (z[:, 1] - z[:, 0] <= -0.5 + 1e-5).all()


def test_cw_answers_with_the_smallest_success_also_in_8_bits(contest, binary):
    model, clean, _ = binary
    outcome = contest(Cw(SHORT), model, clean, [1, 1], threat=Unbounded(), stop="first_success")
    levels = outcome.result * 255
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=1e-4)
    assert outcome.predict(outcome.result).argmax(1).tolist() == [0, 0]
    first = (outcome.victim.best() - clean).flatten(1).norm(dim=1)
    assert (sizes(outcome, clean) <= first).all()


def test_cw_raises_the_weight_of_failing_videos_only(contest, binary):
    model, clean, _ = binary
    together = contest(Cw(SHORT), model, clean, [1, 1], threat=FREE).result
    for i in range(2):
        alone = contest(Cw(SHORT), model, clean[i : i + 1], [1], threat=FREE).result
        torch.testing.assert_close(alone[0], together[i], rtol=0, atol=1e-6)


def test_cw_reaches_a_target_from_black_and_white(contest, linear):
    w = weights(2, 2, 3, 6, 5)
    clean = torch.zeros(1, 2, 3, 6, 5)
    clean[..., 3:] = 1
    attack = Cw(CwParams(rounds=4, steps=60, weight=10.0, lr=0.1))
    outcome = contest(attack, linear(w), clean, [0], targets=[2], threat=FREE)
    assert torch.isfinite(outcome.result).all()
    z = outcome.predict(torch.cat([clean, outcome.result]))
    assert z[1, 2] > z[0, 2]


def test_cw_costs_and_stays_within_its_budget(contest, binary):
    model, clean, _ = binary
    params = CwParams(rounds=2, steps=10, abort_early=False)
    for meter in contest(Cw(params), model, clean, [1, 1], threat=FREE).victim.meters:
        assert (meter.forwards, meter.backwards) == (20, 20)
    params = CwParams(rounds=3, steps=50, abort_early=False)
    outcome = contest(Cw(params), model, clean, [1, 1], threat=FREE, max_forwards=100)
    assert [m.forwards for m in outcome.victim.meters] == [100, 100]
    assert not any(m.exhausted for m in outcome.victim.meters)


def test_cw_keeps_a_radius_and_frames(contest, binary):
    model, clean, distances = binary
    threat = L2(float(distances[0]) * 0.5, quantize=False)
    outcome = contest(Cw(SHORT), model, clean, [1, 1], threat=threat)
    assert threat.within(outcome.result, clean).all()
    assert not any(m.achieved for m in outcome.victim.meters)
    assert torch.equal(contest(Cw(SHORT), model, clean, [1, 1], threat=L2(0)).result, clean)
    some = contest(Cw(SHORT), model, clean, [1, 1], threat=FREE_SECOND).result
    assert torch.equal(some[:, 0], clean[:, 0])
    assert not torch.equal(some[:, 1], clean[:, 1])


@pytest.mark.parametrize("norm", ["none", "l2", "linf"])
def test_deepfool_is_exact_on_linear_models(norm, contest, linear, videos):
    w, clean = weights(4, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    model = linear(w, [0.4, 0.1, -0.3, 0.2])
    z = model.logits(clean)[:, 0]
    labels = z.argmax(1)
    rows = torch.cat([torch.zeros_like(w[:1]), w])
    apart = (rows[labels][:, None] - rows[None]).flatten(2)
    size = apart.abs().sum(2) if norm == "linf" else apart.norm(dim=2)
    gaps = (z.gather(1, labels[:, None]) - z) / size.clamp_min(1e-9)
    expected = gaps.scatter(1, labels[:, None], torch.inf).amin(1)
    threat = {
        "none": FREE, "l2": L2(5.0, quantize=False), "linf": Linf(0.5, quantize=False),
    }[norm]  # fmt: skip
    outcome = contest(DeepFool(), model, clean, labels.tolist(), threat=threat)
    moved = (outcome.result - clean).flatten(1)
    found = moved.abs().amax(1) if norm == "linf" else moved.norm(dim=1)
    torch.testing.assert_close(found, 1.02 * expected, rtol=1e-4, atol=0)
    assert (outcome.predict(outcome.result).argmax(1) != labels).all()
    # One step of 4 gradients (5 classes), and the first of the next step, which sees the success.
    assert [m.backwards for m in outcome.victim.meters] == [5, 5]


def test_deepfool_looks_at_the_likeliest_classes(contest, linear, videos):
    w, clean = weights(4, 2, 3, 6, 5), videos(1, 2, 3, 6, 5)
    model = linear(w, [0.4, 0.1, -0.3, 0.2])
    label = int(model.logits(clean)[0, 0].argmax())
    outcome = contest(DeepFool(DeepFoolParams(classes=2)), model, clean, [label], threat=FREE)
    runner_up = model.logits(clean)[0, 0].topk(2).indices[1]
    assert outcome.predict(outcome.result).argmax(1) == runner_up
    assert outcome.victim.meters[0].backwards == 2


def test_deepfool_flips_a_curved_model(contest, tiny, videos, labels_of):
    clean = videos(2, 5, 3, 33, 50)
    labels = labels_of(tiny, clean)
    for threat in (Unbounded(), Linf("64/255", frames=(0, 2))):
        outcome = contest(DeepFool(), tiny, clean, labels, threat=threat, stop="first_success")
        assert (outcome.predict(outcome.result).argmax(1) != torch.tensor(labels)).all()
        assert threat.within(outcome.result, clean).all()
    assert torch.equal(outcome.result[:, [1, 3, 4]], clean[:, [1, 3, 4]])


def test_deepfool_stops_where_there_is_no_gradient(contest, linear, videos):
    clean = videos(1, 2, 3, 6, 5)
    flat = linear(torch.zeros(1, 2, 3, 6, 5), [3.0])
    outcome = contest(DeepFool(), flat, clean, [1], threat=FREE)
    assert torch.equal(outcome.result, clean)
    assert outcome.victim.meters[0].forwards == 1


@pytest.mark.parametrize("budget", [1, 2, 10])
def test_deepfool_keeps_budgets(budget, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    threat = Linf("1/255")
    outcome = contest(DeepFool(), tiny, clean, labels_of(tiny, clean), threat=threat,
                      max_forwards=budget)  # fmt: skip
    assert [m.forwards for m in outcome.victim.meters] == [budget] * 2


def test_deepfool_equals_foolbox(contest, tiny, videos, labels_of):
    library = pytest.importorskip("foolbox", reason="the oracle needs foolbox")
    clean = videos(2, 3, 3, 16, 14)
    labels = labels_of(tiny, clean)
    outcome = contest(DeepFool(), tiny, clean, labels, threat=FREE)

    class Plain(torch.nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return tiny.logits(inputs)[:, 0]

    wrapped = library.PyTorchModel(Plain().eval(), bounds=(0, 1), device="cpu")
    attack = library.attacks.L2DeepFoolAttack(steps=50, candidates=10, overshoot=0.02)
    criterion = library.criteria.Misclassification(torch.tensor(labels))
    theirs = (attack.run(wrapped, clean, criterion) - clean).flatten(1).norm(dim=1)
    torch.testing.assert_close(sizes(outcome, clean), theirs, rtol=0.02, atol=0)


def test_nothing_is_left_to_pay_with(contest, binary):
    model, clean, _ = binary
    outcome = contest(DeepFool(), model, clean, [1, 1], threat=FREE, max_forwards=0)
    assert torch.equal(outcome.result, clean)
