"""Time by stage."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class Clock:
    """Seconds per stage; the device is synchronised at stage borders only."""

    device: torch.device
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0

    def start(self) -> None:
        """Begin a stage."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self._since = time.perf_counter()

    def stop(self, stage: str) -> None:
        """End it, adding its seconds."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - self._since
