"""Trading time for memory: blocks whose inner values are computed again in the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from torch import Tensor


class Recomputing(nn.ModuleList):
    """Blocks that run one after another; with ``recompute`` only what passes between them is kept.

    Results and gradients are the same bits either way; the backward pass costs one more forward
    pass.
    """

    recompute = False

    def forward(self, tokens: Tensor) -> Tensor:
        """Return what the last block returns."""
        for block in self:
            tokens = self.step(block, tokens)
        return tokens

    def step(self, block: nn.Module, tokens: Tensor) -> Tensor:
        """Return what one block returns."""
        if self.recompute and torch.is_grad_enabled() and tokens.requires_grad:
            kept: Tensor = checkpoint(block, tokens, use_reentrant=False)
            return kept
        through: Tensor = block(tokens)
        return through


def recompute(network: nn.Module, *, on: bool) -> int:
    """Switch recomputing of every :class:`Recomputing` in a network; return how many there are."""
    found = [module for module in network.modules() if isinstance(module, Recomputing)]
    for module in found:
        module.recompute = on
    return len(found)
