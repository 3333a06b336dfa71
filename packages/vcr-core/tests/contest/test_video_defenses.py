"""Defenses in front of the sampling, votes that ask several draws at once, certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from vcr_core.adaptive import DefenseLink, View
from vcr_core.errors import NotAvailable
from vcr_core.protocols import InputDefense
from vcr_core.randomness import VideoRandom
from vcr_core.testing.toys.defenses import Darken, Grain

GATHER = torch.tensor([[0, 1, 2], [1, 2, 3]])


class Watching:
    """A model that keeps the clips it is shown; logits are means of the first frame's rows."""

    labels = ("a", "b")

    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def logits(self, clips: Tensor) -> Tensor:
        self.seen.append(clips.detach().clone())
        return clips.mean(dim=(1, 2, 4))[:, None, :2]


class NoiseOnVideo:
    """Noise on whatever it is given; says where it stood."""

    certifies = True

    def __init__(self, draws: int = 3) -> None:
        self.draws = draws
        self.shapes: list[tuple[int, ...]] = []

    def wrap(self, predict: Any, random: VideoRandom) -> Any:
        def run(shown: Tensor) -> Tensor:
            self.shapes.append(tuple(shown.shape))
            copies = [
                shown + random.child(f"{i}").normal(*shown.shape[1:], std=0.01)
                for i in range(self.draws)
            ]
            out: Tensor = predict(torch.cat(copies))
            return out.view(self.draws, len(shown), -1).logsumexp(dim=0)

        return run

    def wrap_video(self, predict: Any, random: VideoRandom) -> Any:
        return self.wrap(predict, random)

    def certify(
        self, predict: Any, video: Tensor, random: VideoRandom
    ) -> Sequence[Mapping[str, Any]]:
        out = self.wrap(predict, random)(video)
        return [{"class": int(row.argmax()), "shape": tuple(video.shape)} for row in out]


def link(defense: Any, name: str = "d", *, stochastic: bool = True) -> DefenseLink:
    return DefenseLink(name, defense, "exact", stochastic=stochastic)


@pytest.fixture
def video() -> Tensor:
    return torch.rand(2, 4, 3, 5, 6, generator=torch.Generator().manual_seed(1))


def test_the_first_defense_sees_the_video_and_shared_frames_stay_equal(video: Tensor) -> None:
    model, defense = Watching(), NoiseOnVideo()
    View(model, GATHER, [link(defense)])(video, VideoRandom([1, 2]))
    assert defense.shapes == [(2, 4, 3, 5, 6)]
    clips = torch.cat(model.seen).view(3, 2, 2, 3, 3, 5, 6)
    assert torch.equal(clips[:, :, 0, 1:], clips[:, :, 1, :2])


def test_further_back_it_sees_clips(video: Tensor) -> None:
    model, defense = Watching(), NoiseOnVideo()
    view = View(model, GATHER, [link(Darken(), stochastic=False), link(defense)])
    view(video, VideoRandom([1, 2]))
    assert defense.shapes == [(2, 2, 3, 3, 5, 6)]
    clips = torch.cat(model.seen).view(3, 2, 2, 3, 3, 5, 6)
    assert not torch.equal(clips[:, :, 0, 1:], clips[:, :, 1, :2])


def test_a_random_defense_behind_a_vote_draws_for_every_ballot(video: Tensor) -> None:
    model = Watching()
    view = View(model, GATHER, [link(NoiseOnVideo(4), "vote"), link(Grain(), "grain")])
    view(video, VideoRandom([1, 2]))
    # Four ballots of two videos; a defense draws for the videos, so it gets one ballot at a time.
    assert [len(clips) for clips in model.seen] == [4, 4, 4, 4]
    rough = [clips - model.seen[0] for clips in model.seen[1:]]
    assert all(float(difference.abs().max()) > 0.05 for difference in rough)


def test_alone_a_vote_passes_the_model_at_once(video: Tensor) -> None:
    model = Watching()
    View(model, GATHER, [link(NoiseOnVideo(4))])(video, VideoRandom([1, 2]))
    assert [len(clips) for clips in model.seen] == [16]


def test_a_video_s_draws_do_not_depend_on_its_neighbours(video: Tensor) -> None:
    chain = [link(NoiseOnVideo(), "vote"), link(Grain(), "grain")]
    together = View(Watching(), GATHER, chain)(video, VideoRandom([1, 2]))
    alone = View(Watching(), GATHER, chain)(video[1:], VideoRandom([2]))
    torch.testing.assert_close(alone[0], together[1])


class Rounds(InputDefense):
    """A random shift with a surrogate gradient."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        shift = random.uniform(high=0.5).view(-1, 1, 1, 1, 1, 1)
        return ((clips + shift) * 15).round() / 15


def test_a_surrogate_behind_a_vote_draws_for_every_ballot(video: Tensor) -> None:
    model = Watching()
    surrogate = DefenseLink("s", Rounds(), "surrogate", stochastic=True)
    leaf = video.clone().requires_grad_()
    out = View(model, GATHER, [link(NoiseOnVideo(3), "vote"), surrogate])(leaf, VideoRandom([1, 2]))
    (gradient,) = torch.autograd.grad(out.sum(), leaf)
    assert float(gradient.abs().sum()) > 0
    assert len({round(float(clips.mean()), 3) for clips in model.seen}) == 3


def test_gradients_pass_through_a_vote_in_front_of_the_sampling(video: Tensor) -> None:
    leaf = video.double().requires_grad_()

    def view(shown: Tensor) -> Tensor:
        return View(Watching(), GATHER, [link(NoiseOnVideo(2))])(shown, VideoRandom([1, 2]))

    small = leaf[:, :, :, :2, :2].detach().requires_grad_()
    assert torch.autograd.gradcheck(view, small)


def test_certificates_come_from_the_first_defense(video: Tensor) -> None:
    view = View(Watching(), GATHER, [link(NoiseOnVideo()), link(Grain())])
    assert view.certifies
    found = view.certificates(video, VideoRandom([1, 2]))
    assert [facts["shape"] for facts in found] == [(2, 4, 3, 5, 6)] * 2
    again = view.certificates(video, VideoRandom([1, 2]))
    assert again == found


def test_without_a_certifier_in_front_there_are_none(video: Tensor) -> None:
    for chain in ([], [link(Darken())], [link(Darken()), link(NoiseOnVideo())]):
        view = View(Watching(), GATHER, chain)
        assert not view.certifies
        with pytest.raises(NotAvailable, match="first defense"):
            view.certificates(video, VideoRandom([1, 2]))
