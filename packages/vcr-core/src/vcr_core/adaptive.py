"""The view of a model: gather, defenses, model, aggregation, and what an attacker gets through it.

An attack on a defended model sees ``d∘f``. Its gradient through each defense is exact, or goes
through a surrogate (forward the defense, backward its stand-in: BPDA, Athalye et al., ICML 2018,
section 4.1). Randomness is averaged over ``eot`` draws by the victim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.chunking import chunked
from vcr_core.errors import ContractViolation, NotAvailable, NotDifferentiable
from vcr_core.prediction import aggregate
from vcr_core.protocols import InputDefense

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from vcr_core.protocols import ClipFn, Defense, VideoClassifier
    from vcr_core.randomness import VideoRandom
    from vcr_core.specs import Gradient


@dataclass(frozen=True, slots=True)
class DefenseLink:
    """One defense of a chain.

    Attributes:
        name: its reference, for messages and random streams.
        defense: the component.
        gradient: what it gives to an adaptive attacker.
        stochastic: whether it draws random numbers.
    """

    name: str
    defense: Defense
    gradient: Gradient
    stochastic: bool


class View:
    """A function from a video to aggregated log-probabilities.

    Args:
        model: the classifier.
        gather: ``[V, T']`` int64 positions of the clips' frames in the video.
        links: defenses, the first one sees the clips first.
        chunk: clips that pass the model at once, ``None`` for all.
        gradient: ``auto`` takes each defense's best; ``exact`` and ``surrogate`` insist;
            ``none`` refuses gradients.
    """

    def __init__(
        self,
        model: VideoClassifier,
        gather: Tensor,
        links: Sequence[DefenseLink] = (),
        *,
        chunk: int | None = None,
        gradient: str = "auto",
    ) -> None:
        self.model = model
        self.gather = gather
        self.links = tuple(links)
        self.chunk = chunk
        self.gradient = gradient
        count = gather.numel()
        self._in_order = bool((gather.flatten().cpu() == torch.arange(count, device="cpu")).all())

    @property
    def stochastic(self) -> bool:
        """Whether two calls may differ."""
        return any(link.stochastic for link in self.links)

    def clips(self, video: Tensor) -> Tensor:
        """Return ``[B, V, T', C, H, W]`` gathered from ``[B, T, C, H, W]``; its backward sums."""
        if self._in_order and video.shape[1] == self.gather.numel():
            return video.reshape(len(video), *self.gather.shape, *video.shape[2:])
        return video[:, self.gather]

    def __call__(self, video: Tensor, random: VideoRandom) -> Tensor:
        """Return ``[B, K]`` aggregated log-probabilities.

        Args:
            video: ``[B, T, C, H, W]``.
            random: one generator per video for the defenses' draws.
        """
        predict: ClipFn = self._undefended
        for position in range(len(self.links) - 1, -1, -1):
            link = self.links[position]
            stream = random.child(f"{position}:{link.name}")
            predict = _checked(link, self._link(link).wrap(predict, stream))
        return predict(self.clips(video))

    def features(self, video: Tensor, random: VideoRandom, inner: ClipFn) -> Tensor:
        """Return what ``inner`` makes of the defended clips ``[N, T', C, H, W]``.

        Args:
            video: ``[B, T, C, H, W]``.
            random: one generator per video for the defenses' draws.
            inner: a part of the model, for instance up to a layer.

        Raises:
            NotAvailable: behind a defense that does more than to change the clips.
        """
        predict: ClipFn = lambda clips: inner(clips.flatten(0, 1))  # noqa: E731
        for position in range(len(self.links) - 1, -1, -1):
            link = self.links[position]
            if getattr(type(link.defense), "wrap", None) is not InputDefense.wrap:
                raise NotAvailable(f"there are no features behind defense {link.name!r}")
            predict = self._link(link).wrap(predict, random.child(f"{position}:{link.name}"))
        return predict(self.clips(video))

    def _undefended(self, clips: Tensor) -> Tensor:
        batch, views = clips.shape[:2]
        logits = chunked(self.model.logits, clips.flatten(0, 1), self.chunk)
        if logits.dim() != 3 or logits.shape[0] != batch * views:
            raise ContractViolation(
                f"the model returned logits of shape {list(logits.shape)} for {batch * views} "
                "clips; the contract is [N, V_crop, K]"
            )
        return aggregate(logits.reshape(batch, -1, logits.shape[-1]))

    def _link(self, link: DefenseLink) -> Defense:
        if not torch.is_grad_enabled():
            return link.defense
        if "none" in (self.gradient, link.gradient):
            raise NotDifferentiable(
                f"defense {link.name!r} gives no gradient to an adaptive attack"
            )
        if self.gradient == "exact" and link.gradient != "exact":
            raise NotDifferentiable(
                f"defense {link.name!r} has a surrogate gradient only; "
                "set protocol.gradient = 'surrogate' or 'auto'"
            )
        if link.gradient == "surrogate" or self.gradient == "surrogate":
            return StraightThrough(link.defense, link.name)
        return link.defense


class StraightThrough:
    """A defense whose forward pass is its own and whose backward pass is its surrogate's."""

    def __init__(self, defense: Any, name: str) -> None:
        if not (hasattr(defense, "apply") and hasattr(defense, "surrogate")):
            raise NotDifferentiable(
                f"defense {name!r} has no surrogate: it does not derive from InputDefense"
            )
        self._defense = defense

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` after the defense, differentiable through the surrogate."""

        def run(clips: Tensor) -> Tensor:
            # Both passes see the same draw: a child stream is made anew from the seeds.
            stand_in = self._defense.surrogate(clips, random.child("draw"))
            with torch.no_grad():
                defended = self._defense.apply(clips.detach(), random.child("draw"))
            swapped: Tensor = _Swap.apply(stand_in, defended)
            return predict(swapped)

        return run


class _Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stand_in: Tensor, value: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0], None


def _checked(link: DefenseLink, predict: ClipFn) -> ClipFn:
    def run(clips: Tensor) -> Tensor:
        out = predict(clips)
        if not bool(torch.isfinite(out).any(dim=1).all()) or bool(torch.isnan(out).any()):
            raise ContractViolation(
                f"defense {link.name!r} led to predictions that are not finite; "
                "NaN is an error, not a prediction"
            )
        return out

    return run
