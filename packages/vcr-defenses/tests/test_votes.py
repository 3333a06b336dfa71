"""Merging ballots: values, ties, and what a loss sees through a majority."""

from __future__ import annotations

import pytest
import torch
from vcr_defenses.votes import Vote, count_votes, histogram, merge_votes, vote_scores


def ballots(*labels: int, classes: int = 4, seed: int = 0) -> torch.Tensor:
    """Return ``[M, 1, K]`` log-probabilities whose maxima are the labels."""
    logits = torch.rand(len(labels), 1, classes, generator=torch.Generator().manual_seed(seed))
    for row, label in enumerate(labels):
        logits[row, 0, label] += 2
    return logits.log_softmax(dim=-1)


@pytest.mark.parametrize(
    ("labels", "winner"),
    [
        ((1, 1, 2), 1), ((2, 1), 1), ((3, 0, 3, 0), 0), ((3, 2, 1, 0), 0), ((2,), 2),
        ((3, 3, 1, 1, 0), 1),
    ],
)  # fmt: skip
def test_the_majority_wins_and_ties_go_to_the_lower_class(labels, winner):
    for seed in range(5):
        merged = merge_votes(ballots(*labels, seed=seed), "majority")
        assert merged.argmax(dim=1).tolist() == [winner]
        assert torch.isfinite(merged).all()
        assert merged.exp().sum() == pytest.approx(1, abs=1e-5)


def test_shares_are_the_probabilities():
    merged = merge_votes(ballots(1, 1, 2, 1), "majority").exp()[0]
    assert merged[1] == pytest.approx(0.75, abs=1e-3)
    assert merged[2] == pytest.approx(0.25, abs=1e-3)
    counts = torch.tensor([[3, 1, 0, 0], [1, 1, 1, 1]])
    assert vote_scores(counts, torch.float32).exp().sum(dim=1).tolist() == pytest.approx([1, 1])


def test_the_mean_probability():
    given = ballots(0, 1, 1)
    assert torch.allclose(merge_votes(given, "mean-prob").exp(), given.exp().mean(dim=0))


def test_a_loss_sees_the_gradient_of_the_mean_probability():
    """Of a unanimous vote the cross-entropy has the direction that it has without a vote."""
    given = ballots(1, 1, 1, classes=5).double()
    leaf = given.clone().requires_grad_()
    y = torch.tensor([1])
    through = torch.nn.functional.cross_entropy(merge_votes(leaf, "majority"), y)
    (found,) = torch.autograd.grad(through, leaf)
    leaf = given.clone().requires_grad_()
    mean = torch.nn.functional.cross_entropy(merge_votes(leaf, "mean-prob"), y)
    (expected,) = torch.autograd.grad(mean, leaf)
    assert torch.nn.functional.cosine_similarity(
        found.flatten(), expected.flatten(), dim=0
    ) == pytest.approx(1, abs=1e-6)


def test_histograms():
    assert count_votes(ballots(1, 1, 2)).tolist() == [[0, 2, 1, 0]]
    assert histogram(torch.tensor([0, 2, 1, 0])) == {"1": 2, "2": 1}
    vote = Vote(lambda clips: ballots(1, 1, 2), "majority")
    vote(torch.zeros(1, 1, 1, 3, 2, 2))
    assert vote.details() == [{"votes": {"1": 2, "2": 1}}]
