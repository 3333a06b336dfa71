"""Attacks on few frames: which frames change, and at what cost."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.frame_saliency import FrameSaliency
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.one_frame import OneFrame
from vcr_attacks.params.gradient import (
    FrameSaliencyParams,
    IfgsmParams,
    OneFrameParams,
    SparseParams,
)
from vcr_attacks.smallest import l21
from vcr_attacks.sparse import Sparse
from vcr_core.errors import UsageError
from vcr_core.threat import Linf, Unbounded

EXACT = Linf(8 / 255, quantize=False)
FREE = Unbounded(quantize=False)


def weights(*shape: int, seed: int = 3) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return drawn / drawn[0].numel() ** 0.5


@pytest.fixture
def graded(linear, videos):
    """A linear model that looks hardest at frame 2, then 0, 3, 1, and two videos of class 1."""
    w = weights(1, 4, 3, 6, 5) * torch.tensor([0.7, 0.1, 1.0, 0.4]).view(1, 4, 1, 1, 1)
    clean = videos(2, 4, 3, 6, 5)
    clean[1] = clean[0]
    gap = float((clean[0] * w[0]).sum())
    return lambda margin: (linear(w, [margin - gap]), clean, w)


def touched(result, clean):
    return [row.nonzero().flatten().tolist() for row in (result != clean).flatten(2).any(2)]


def test_one_frame_takes_the_best(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    labels = labels_of(tiny, clean)
    outcome = contest(OneFrame(), tiny, clean, labels, threat=EXACT)
    assert [len(t) for t in touched(outcome.result, clean)] == [1, 1]
    assert [(m.forwards, m.backwards) for m in outcome.victim.meters] == [(63, 60)] * 2
    loss = outcome.victim.goals.loss
    singles = []
    for frame in range(3):
        attack = OneFrame(OneFrameParams(frame=frame))
        single = contest(attack, tiny, clean, labels, threat=EXACT).result
        assert touched(single, clean) == [[frame]] * 2
        threat = Linf(8 / 255, frames=(frame,), quantize=False)
        masked = contest(Ifgsm(), tiny, clean, labels, threat=threat).result
        assert torch.equal(single, masked)
        singles.append(loss(outcome.predict(single)))
    best = torch.stack(singles).amin(0)
    torch.testing.assert_close(loss(outcome.predict(outcome.result)), best)


def test_one_frame_of_the_largest_gradient(contest, graded):
    model, clean, _ = graded(0.5)
    attack = OneFrame(OneFrameParams(frame="gradient", steps=5))
    outcome = contest(attack, model, clean, [1, 1], threat=EXACT)
    assert touched(outcome.result, clean) == [[2], [2]]
    assert [(m.forwards, m.backwards) for m in outcome.victim.meters] == [(7, 6)] * 2
    threat = Linf(8 / 255, frames=(1, 3), quantize=False)
    assert touched(contest(attack, model, clean, [1, 1], threat=threat).result, clean) == [[3]] * 2


def test_one_frame_refuses_frames_that_are_not_free(contest, graded):
    model, clean, _ = graded(0.5)
    with pytest.raises(UsageError, match=r"attack\.frame = 7"):
        contest(OneFrame(OneFrameParams(frame=7)), model, clean, [1, 1])
    with pytest.raises(UsageError, match="1, 3"):
        contest(OneFrame(OneFrameParams(frame=0)), model, clean, [1, 1], threat=Linf(frames=(1, 3)))


def test_a_single_frame_is_the_whole_video(contest, tiny, videos, labels_of):
    clean = videos(1, 1, 3, 33, 50)
    labels = labels_of(tiny, clean)
    whole = contest(Ifgsm(), tiny, clean, labels, threat=EXACT).result
    assert torch.equal(contest(OneFrame(), tiny, clean, labels, threat=EXACT).result, whole)


@pytest.mark.parametrize("refresh", [False, True])
def test_frames_fall_in_the_order_of_saliency(refresh, contest, graded):
    attack = FrameSaliency(FrameSaliencyParams(refresh=refresh))
    eps = 8 / 255
    order = [2, 0, 3, 1]
    for count in range(1, 5):
        model, clean, w = graded(0.0)
        gain = [eps * float(w[0, t].abs().sum()) for t in order]
        model, clean, w = graded(sum(gain[:count]) - gain[count - 1] / 2)
        outcome = contest(attack, model, clean, [1, 1], threat=EXACT, stop="first_success")
        assert touched(outcome.result, clean) == [sorted(order[:count])] * 2
        assert outcome.predict(outcome.result).argmax(1).tolist() == [0, 0]
        for meter in outcome.victim.meters:
            assert meter.forwards == 1 + count
            assert meter.backwards == (1 if not refresh else min(1 + count, 4))


def test_frame_saliency_goes_through_all_frames_with_a_budget(contest, tiny, videos, labels_of):
    clean = videos(2, 5, 3, 33, 50)
    threat = Linf("8/255", frames=(1, 3))
    outcome = contest(FrameSaliency(), tiny, clean, labels_of(tiny, clean), threat=threat)
    assert touched(outcome.result, clean) == [[1, 3]] * 2
    assert int(((outcome.result - clean) * 255).round().abs().max()) == 8
    assert [m.forwards for m in outcome.victim.meters] == [3, 3]


def test_a_single_salient_frame_is_fgsm_there(contest, tiny, videos, labels_of):
    clean = videos(1, 1, 3, 12, 10)
    labels = labels_of(tiny, clean)
    one = contest(Ifgsm(IfgsmParams(steps=1, step=8 / 255)), tiny, clean, labels, threat=EXACT)
    result = contest(FrameSaliency(), tiny, clean, labels, threat=EXACT).result
    assert torch.equal(result, one.result)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ("first:2", [0, 1]),
        ("every:2", [0, 2]),
        ("saliency:1", [2]),
        ([1, 3], [1, 3]),
        ("all", [0, 1, 2, 3]),
    ],
)
def test_sparse_changes_chosen_frames_only(frames, expected, contest, graded):
    model, clean, _ = graded(0.1)
    attack = Sparse(SparseParams(frames=frames, weight=0.0, steps=30))
    outcome = contest(attack, model, clean, [1, 1], threat=FREE)
    assert touched(outcome.result, clean) == [expected] * 2
    assert outcome.predict(outcome.result).argmax(1).tolist() == [0, 0]


def test_sparse_refuses_frames_that_are_not_free(contest, graded):
    model, clean, _ = graded(0.1)
    attack = Sparse(SparseParams(frames=[0, 3]))
    with pytest.raises(UsageError, match="frame 0"):
        contest(attack, model, clean, [1, 1], threat=Unbounded(frames=(2, 3)))


def test_a_heavier_penalty_leaves_less(contest, graded):
    # Root mean squares of the frames' gradients, relative to the video's: 1.1, 0.2, 1.6, 0.6.
    model, clean, _ = graded(0.3)
    sizes = []
    for weight, frames in (
        (0.0, [0, 1, 2, 3]), (0.3, [0, 2, 3]), (0.8, [0, 2]), (1.3, [2]), (5.0, []),
    ):  # fmt: skip
        attack = Sparse(SparseParams(weight=weight, steps=60))
        outcome = contest(attack, model, clean[:1], [1], threat=FREE)
        assert touched(outcome.result, clean[:1]) == [frames]
        sizes.append(float(l21(outcome.result - clean[:1])))
    assert sizes == sorted(sizes, reverse=True)


def test_the_search_beats_no_penalty(contest, graded):
    model, clean, _ = graded(0.3)
    sizes = []
    for params in (SparseParams(steps=40), SparseParams(weight=0.0, steps=40)):
        outcome = contest(Sparse(params), model, clean, [1, 1], threat=FREE, stop="first_success")
        assert outcome.predict(outcome.result).argmax(1).tolist() == [0, 0]
        sizes.append(l21(outcome.result - clean))
        assert all(m.backwards <= 200 for m in outcome.victim.meters)
    assert (sizes[0] < sizes[1]).all()


@pytest.mark.parametrize("budget", [1, 10])
@pytest.mark.parametrize("attack", [OneFrame(), FrameSaliency(), Sparse()])
def test_budgets_and_balls_are_kept(attack, budget, contest, tiny, videos, labels_of):
    clean = videos(2, 4, 3, 12, 10)
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), max_forwards=budget)
    assert all(m.forwards <= budget for m in outcome.victim.meters)
    assert EXACT.within(outcome.result, clean).all()


@pytest.mark.parametrize("attack", [OneFrame(), FrameSaliency(), Sparse()])
def test_radius_zero_is_the_identity_without_a_query(attack, contest, tiny, videos):
    clean = videos(1, 3, 3, 12, 10)
    outcome = contest(attack, tiny, clean, [0], threat=Linf(0))
    assert torch.equal(outcome.result, clean)
    assert outcome.victim.meters[0].forwards == 0
