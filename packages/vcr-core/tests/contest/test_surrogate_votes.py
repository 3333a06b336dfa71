"""A defense that votes over candidates without a gradient, attacked adaptively."""

from __future__ import annotations

import pytest
import torch
from vcr_core.adaptive import straight_through
from vcr_core.errors import NotDifferentiable
from vcr_core.protocols import InputDefense
from vcr_core.randomness import VideoRandom


class Levels(InputDefense):
    """The mean prediction over clips of 8 and of 16 levels."""

    def apply(self, clips, random):
        return (clips * 15).round() / 15

    def wrap(self, predict, random):
        return self._mean(predict)

    def wrap_surrogate(self, predict, random):
        return self._mean(predict)

    def _mean(self, predict):
        def run(clips):
            seen = [(clips.detach() * n).round() / n for n in (7, 15)]
            return sum(predict(straight_through(clips, one)) for one in seen) / 2

        return run


def test_the_attacker_differentiates_the_whole_vote(make_view):
    video = torch.rand(2, 5, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    view, random = make_view((Levels(), "surrogate", False)), VideoRandom([1, 2])
    leaf = video.clone().requires_grad_()
    out = view(leaf, random)
    with torch.no_grad():
        assert torch.equal(view(video, random), out)
    gradient = torch.autograd.grad(out[:, 1].sum(), leaf)[0]
    bare, total = make_view(), torch.zeros_like(video)
    for n in (7, 15):
        one = ((video * n).round() / n).requires_grad_()
        total += torch.autograd.grad(bare(one, random)[:, 1].sum(), one)[0] / 2
    torch.testing.assert_close(gradient, total)


def test_an_exact_gradient_is_still_refused(make_view):
    view = make_view((Levels(), "surrogate", False), gradient="exact")
    with pytest.raises(NotDifferentiable, match="surrogate gradient only"):
        view(torch.rand(1, 5, 3, 6, 6, requires_grad=True), VideoRandom([1]))
