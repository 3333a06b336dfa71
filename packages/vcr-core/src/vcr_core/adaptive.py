"""The view of a model: gather, defenses, model, aggregation, and what an attacker gets through it.

An attack on a defended model sees ``d∘f``. Its gradient through each defense is exact, or goes
through a surrogate (forward the defense, backward its stand-in: BPDA, Athalye et al., ICML 2018,
section 4.1). Randomness is averaged over ``eot`` draws by the victim.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.asked import Checked, Examined
from vcr_core.chunking import chunked
from vcr_core.errors import ContractViolation, NotAvailable, NotDifferentiable
from vcr_core.prediction import aggregate
from vcr_core.protocols import (
    Certifier,
    InputDefense,
    SurrogateDefense,
    VideoDefense,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from vcr_core.protocols import ClipFn, Defense, VideoClassifier, VideoFn
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
        # Without the facts, which a detector works out only when it is asked for them.
        return self._chain(random, len(video))[0](video)

    def detailed(self, video: Tensor, random: VideoRandom) -> tuple[Tensor, list[dict[str, Any]]]:
        """Return log-probabilities ``[B, K]`` and what model and defenses tell of each video.

        Arguments as those of a call. Facts come from functions that are asked once in the pass;
        what a defense inside of a vote says of a single ballot does not describe the result.
        """
        bare = Examined(self.examined, len(video))
        predict, chain = self._chain(random, len(video), bare=bare)
        out = predict(video)
        told: list[dict[str, Any]] = [{} for _ in range(len(video))]
        sources: list[Examined | Checked] = [bare, *chain]
        for source in sources:
            for facts, more in zip(told, source.details(), strict=False):
                facts.update(more)
        return out, told

    @property
    def certifies(self) -> bool:
        """Whether the first defense is asked for certificates."""
        first: object = self.links[0].defense if self.links else None
        return isinstance(first, Certifier) and first.certifies

    def certificates(self, video: Tensor, random: VideoRandom) -> list[dict[str, Any]]:
        """Return the first defense's certificate of each video.

        Args:
            video: ``[B, T, C, H, W]``, clean.
            random: one generator per video, seed role ``certify``.

        Raises:
            NotAvailable: if the first defense gives none.
        """
        first: object = self.links[0].defense if self.links else None
        if not isinstance(first, Certifier):
            raise NotAvailable("the first defense gives no certificates")
        predict, _ = self._chain(random, len(video), start=1)
        stream = random.child(f"0:{self.links[0].name}")
        return [dict(facts) for facts in first.certify(predict, video, stream)]

    def _chain(
        self, random: VideoRandom, rows: int, *, start: int = 0, bare: ClipFn | None = None
    ) -> tuple[VideoFn, list[Checked]]:
        """Return the function of videos behind the links from ``start`` on, and its parts."""
        predict: ClipFn = bare or self._undefended
        chain: list[Checked] = []
        for position in range(len(self.links) - 1, start - 1, -1):
            link = self.links[position]
            stream = random.child(f"{position}:{link.name}")
            defense = self._link(link)
            if position == 0 and isinstance(defense, VideoDefense):
                whole = defense.wrap_video(self._gathered(predict), stream)
                checked = Checked(link.name, whole, rows)
                return checked, [*chain, checked]
            predict = Checked(link.name, defense.wrap(predict, stream), rows)
            chain.append(predict)
        return self._gathered(predict), chain

    def _gathered(self, predict: ClipFn) -> VideoFn:
        """Return ``predict`` behind the sampling of clips."""
        return lambda video: predict(self.clips(video))

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
        """Return the bare model's ``[B, K]`` of clips ``[B, V, T', C, H, W]``."""
        logits = chunked(self.model.logits, clips.flatten(0, 1), self.chunk)
        return self._aggregated(logits, *clips.shape[:2])

    def examined(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        """Return the same, and what the model tells of each clip; nothing if it has no word."""
        examine = getattr(self.model, "examine", None)
        if examine is None:
            return self._undefended(clips), ()
        flat = clips.flatten(0, 1)
        parts = [examine(part) for part in torch.split(flat, self.chunk or len(flat))]
        logits = torch.cat([found for found, _ in parts])
        told = [facts for _, several in parts for facts in several]
        return self._aggregated(logits, *clips.shape[:2]), told

    def _aggregated(self, logits: Tensor, batch: int, views: int) -> Tensor:
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
        own = isinstance(defense, SurrogateDefense)
        if not own and not (hasattr(defense, "apply") and hasattr(defense, "surrogate")):
            raise NotDifferentiable(
                f"defense {name!r} has no surrogate: it does not derive from InputDefense"
            )
        self._defense = defense

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` after the defense, differentiable through the surrogate."""
        if isinstance(self._defense, SurrogateDefense):
            return self._defense.wrap_surrogate(predict, random)
        asked = count()

        def run(clips: Tensor) -> Tensor:
            # Both passes see the same draw: a child stream is made anew from the seeds. A vote
            # before this defense asks several times, for a new draw each.
            name = f"draw-{next(asked)}"
            stand_in = self._defense.surrogate(clips, random.child(name))
            with torch.no_grad():
                defended = self._defense.apply(clips.detach(), random.child(name))
            return predict(straight_through(stand_in, defended))

        return run


def straight_through(stand_in: Tensor, value: Tensor) -> Tensor:
    """Return ``value``, bit by bit, with the gradient of ``stand_in`` (BPDA)."""
    swapped: Tensor = _Swap.apply(stand_in, value)
    return swapped


class _Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stand_in: Tensor, value: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0], None
