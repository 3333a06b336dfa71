"""Parsimonious attack: which blocks go up and which go down."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.query import ParsimoniousParams
from vcr_attacks.query_loop import Queries, score_loss

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

Block = tuple[slice, slice, slice, slice]
"""Frames, channel, rows and columns that have the same sign."""


class Vertex:
    """One video's point, every value at the lower or upper end of its interval.

    Args:
        queries: how to ask.
        row: which video.
        low: ``[T, C, H, W]``, lowest values.
        high: highest values.
        limit: queries that the search may ask.
    """

    def __init__(self, queries: Queries, row: int, low: Tensor, high: Tensor, limit: int) -> None:
        self._queries = queries
        self._left = limit
        self._row = row
        self._low = low
        self._high = high
        self.raised = torch.zeros_like(low, dtype=torch.bool)
        self.loss = float("inf")

    def can_ask(self) -> bool:
        """Return whether another candidate may be asked; note where the budget is why not."""
        return self._left > 0 and bool((self._queries.going_on(1) == self._row).any())

    def look(self) -> None:
        """Ask for the loss of the point itself."""
        self.loss = self._ask([self._high.where(self.raised, self._low)])[0]

    def free(self, block: Block) -> bool:
        """Return whether the block's values can change at all."""
        return bool((self._high[block] > self._low[block]).any())

    def is_raised(self, block: Block) -> bool:
        """Return on which end the block is."""
        return bool(self.raised[block].flatten()[0])

    def turn(self, block: Block, loss: float) -> None:
        """Move a block to its other end, where the loss is known."""
        self.raised[block] = ~self.raised[block]
        self.loss = loss

    def losses_after(self, blocks: Sequence[Block]) -> list[float]:
        """Return the loss after turning each block, as many as the budget allows."""
        here = self._high.where(self.raised, self._low)
        candidates = []
        for block in blocks:
            candidate = here.clone()
            end = self._low if self.is_raised(block) else self._high
            candidate[block] = end[block]
            candidates.append(candidate)
        return self._ask(candidates)

    def _ask(self, candidates: list[Tensor]) -> list[float]:
        left = self._queries.victim.remaining(self._row)
        candidates = candidates[: self._left if left is None else min(left, self._left)]
        self._left -= len(candidates)
        rows = torch.full((len(candidates),), self._row, device=self._low.device)
        found: list[float] = self._queries.losses(torch.stack(candidates), rows).tolist()
        return found


@dataclass(order=True, slots=True)
class _Gain:
    """How much turning a block changed the loss, and after how many turns that was asked."""

    change: float
    block: int
    asked_at: int


def turn_greedily(vertex: Vertex, blocks: Sequence[Block], *, raised: bool, chunk: int) -> int:
    """Turn blocks of one end while that lowers the loss, the best first; return how many.

    Lazy greedy search: a block's gain of long ago bounds, roughly, what it gains now, so only the
    first of the queue is asked again, until one stays first.

    Args:
        vertex: where the search stands.
        blocks: the blocks.
        raised: on which end they have to be.
        chunk: candidates of one call.
    """
    here = [block for block in blocks if vertex.is_raised(block) == raised]
    queue: list[_Gain] = []
    for first in range(0, len(here), chunk):
        if not vertex.can_ask():
            return 0
        losses = vertex.losses_after(here[first : first + chunk])
        queue += [_Gain(x - vertex.loss, first + i, 0) for i, x in enumerate(losses)]
    heapq.heapify(queue)
    turns = 0
    while queue and vertex.can_ask():
        gain = heapq.heappop(queue)
        if gain.asked_at < turns:
            (loss,) = vertex.losses_after([here[gain.block]])
            gain = _Gain(loss - vertex.loss, gain.block, turns)
            if queue and queue[0].change < gain.change:
                heapq.heappush(queue, gain)
                continue
        if not gain.change < 0:
            break
        vertex.turn(here[gain.block], vertex.loss + gain.change)
        turns += 1
    return turns


def cut(shape: Sequence[int], side: int, times: int | None) -> Iterator[Block]:
    """Yield blocks of a video ``[T, C, H, W]``; the last ones in a direction may be smaller."""
    frames, channels, height, width = shape
    groups = min(times or frames, frames)
    borders = [frames * k // groups for k in range(groups + 1)]
    for group, channel, top, left in product(
        range(groups), range(channels), range(0, height, side), range(0, width, side)
    ):
        yield (
            slice(borders[group], borders[group + 1]),
            slice(channel, channel + 1),
            slice(top, top + side),
            slice(left, left + side),
        )


class Parsimonious(BaseVideoAttack):
    """Parsimonious attack in the L-infinity ball.

    Moon, An, Song, "Parsimonious Black-Box Adversarial Attacks via Efficient Combinatorial
    Optimization", ICML 2019, algorithms 1 to 3: every value sits at ``-eps`` or ``+eps``, and which
    blocks go up is found by lazy greedy insertion, then deletion; then blocks are halved. Blocks
    are taken in random groups of ``batch``. Blocks span groups of frames (``times``).

    Asks ``queries`` queries at most: it ends before if a round of the smallest blocks turns
    nothing. Videos are searched one after another; candidates of one video share a call, and
    each one counts.

    Differs from the published code: there, blocks cover a picture; here, the group's first gain is
    asked for once and not again before anything has turned.
    """

    def __init__(self, params: ParsimoniousParams | None = None) -> None:
        self.params = params or ParsimoniousParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: score access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``linf``, and one generator per video.

        Raises:
            IncompatibleComponents: for another norm.
        """
        threat = ctx.threat
        if threat.norm != "linf":
            raise IncompatibleComponents(
                f"parsimonious is defined for threat.norm 'linf', not {threat.norm!r}"
            )
        if threat.is_zero:
            return video.clone()
        queries = Queries(victim, goals, threat, video, score_loss(self.params.loss, goals))
        low, high = threat.bounds(video)
        for row in victim.active().tolist():
            vertex = Vertex(queries, row, low[row], high[row], self.params.queries)
            vertex.look()
            self._search(vertex, video.shape[1:], ctx.random.select([row]))
        return victim.best()

    def _search(self, vertex: Vertex, shape: Sequence[int], random: VideoRandom) -> None:
        params = self.params
        side = params.block
        while vertex.can_ask():
            blocks = [b for b in cut(shape, side, params.times) if vertex.free(b)]
            order = random.permutation(len(blocks))[0].tolist()
            turns = 0
            for first in range(0, len(order), params.batch):
                group = [blocks[i] for i in order[first : first + params.batch]]
                for raised in (False, True):
                    turns += turn_greedily(vertex, group, raised=raised, chunk=params.chunk)
                if not vertex.can_ask():
                    return
            if side == params.least_block and not turns:
                return
            side = max(side // 2, params.least_block)
