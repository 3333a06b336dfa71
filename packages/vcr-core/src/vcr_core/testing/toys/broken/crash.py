"""An attack that takes its process down, as native code does."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.testing.toys.attacks import SignDescent

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

FOLDER_VARIABLE = "VCR_TOY_CRASH_FOLDER"
"""Names a folder; the process dies while the folder holds a file ``armed``, and disarms it."""


class Crash:
    """Kills its process once, then does what :class:`SignDescent` does."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the best points, unless the process is to die."""
        armed = Path(os.environ.get(FOLDER_VARIABLE, ".")) / "armed"
        if FOLDER_VARIABLE in os.environ and armed.exists():
            armed.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return SignDescent().attack(victim, video, goals, ctx)
