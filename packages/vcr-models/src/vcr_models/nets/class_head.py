"""The classifier behind a backbone, under mmaction2's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from torch import Tensor


class ClassHead(nn.Module):
    """One linear map.

    Args:
        width: channels of a feature.
        classes: number of classes.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.fc_cls = nn.Linear(width, classes)

    def forward(self, features: Tensor) -> Tensor:
        """Return ``[N, classes]`` of ``[N, width]``."""
        out: Tensor = self.fc_cls(features)
        return out
