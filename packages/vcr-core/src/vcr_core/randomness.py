"""Random numbers with one generator per video, so that a draw never depends on its neighbours."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor


class VideoRandom:
    """One CPU generator per video; draws are made on the CPU and moved to ``device``.

    Args:
        seeds: one seed per video of the batch.
        device: where the drawn tensors go.

    Example:
        >>> random = VideoRandom([1, 2])
        >>> random.uniform(3).shape
        torch.Size([2, 3])
        >>> bool((random.uniform(3)[0] == VideoRandom([1]).uniform(3)[0]).all())
        False
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.seeds = tuple(seeds)
        self.device = torch.device(device)
        self._made: list[torch.Generator] | None = None

    def __len__(self) -> int:
        """Return the number of videos."""
        return len(self.seeds)

    @property
    def _generators(self) -> list[torch.Generator]:
        # Made when first drawn from: most queries come with a stream that nothing draws from.
        if self._made is None:
            self._made = [torch.Generator().manual_seed(s) for s in self.seeds]
        return self._made

    def generator(self, row: int) -> torch.Generator:
        """Return the generator of one video."""
        return self._generators[row]

    def uniform(
        self, *shape: int, low: float = 0.0, high: float = 1.0, rows: Tensor | None = None
    ) -> Tensor:
        """Return ``[B, *shape]`` uniform in [low, high); with ``rows``, of these videos only."""
        return self._draw(lambda g: torch.rand(shape, generator=g).mul_(high - low).add_(low), rows)

    def normal(self, *shape: int, std: float = 1.0, rows: Tensor | None = None) -> Tensor:
        """Return ``[B, *shape]`` standard normal times ``std``."""
        return self._draw(lambda g: torch.randn(shape, generator=g).mul_(std), rows)

    def integers(self, low: int, high: int, *shape: int, rows: Tensor | None = None) -> Tensor:
        """Return ``[B, *shape]`` int64 in [low, high)."""
        return self._draw(lambda g: torch.randint(low, high, shape, generator=g), rows)

    def signs(self, *shape: int, rows: Tensor | None = None) -> Tensor:
        """Return ``[B, *shape]`` float32 of -1 and +1."""
        return self.integers(0, 2, *shape, rows=rows).to(torch.float32).mul_(2).sub_(1)

    def permutation(self, n: int, rows: Tensor | None = None) -> Tensor:
        """Return ``[B, n]`` int64, a permutation a video."""
        return self._draw(lambda g: torch.randperm(n, generator=g), rows)

    def child(self, name: str) -> VideoRandom:
        """Return an independent stream per video, named; it leaves this one untouched."""
        return VideoRandom([_mix(seed, name) for seed in self.seeds], self.device)

    def select(self, rows: Tensor | Sequence[int]) -> VideoRandom:
        """Return a view of some videos that shares (and advances) their generators."""
        view = VideoRandom.__new__(VideoRandom)
        index = [int(r) for r in rows]
        view.seeds = tuple(self.seeds[i] for i in index)
        view.device = self.device
        view._made = [self._generators[i] for i in index]
        return view

    def _draw(self, draw: Callable[[torch.Generator], Tensor], rows: Tensor | None) -> Tensor:
        chosen = range(len(self)) if rows is None else [int(r) for r in rows]
        drawn = [draw(self._generators[i]) for i in chosen]
        if not drawn:
            return draw(torch.Generator()).unsqueeze(0)[:0].to(self.device)
        return torch.stack(drawn).to(self.device)


def _mix(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8, person=b"vcr-child-v1")
    return int.from_bytes(digest.digest(), "little") & (2**63 - 1)
