"""An attack that does what the environment says before it does its work."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import torch
from torch import Tensor
from vcr_core.testing.toys.attacks import SignDescent

NOISE = "printed by a component " * 10_000


class Moody(SignDescent):
    """``VCR_E2E_DELAY``: seconds a group takes. ``VCR_E2E_TROUBLE``: ``<what> <video> …``."""

    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        time.sleep(float(os.environ.get("VCR_E2E_DELAY", "0")))
        what, *at = os.environ.get("VCR_E2E_TROUBLE", "").split() or [""]
        if set(at) & set(ctx.ids) and (what != "die-together" or len(ctx.ids) > 1):
            trouble(what)
        return super().attack(victim, video, goals, ctx)


def trouble(what: str) -> None:
    match what:
        case "die" | "die-together":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            sys.exit(7)
        case "raise":
            raise RuntimeError("this attack always fails here")
        case "hang":
            while True:
                time.sleep(0.01)
        case "hang-in-native-code":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            time.sleep(3600)
        case "no-memory":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        case "clock":
            wrong, right = (86_400.0 if os.getpid() % 2 else -86_400.0), time.time
            time.time = lambda: right() + wrong
        case "print":
            print(NOISE, flush=True)
