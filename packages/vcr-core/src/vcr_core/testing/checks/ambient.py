"""The random state outside of a component: neither used nor changed by it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from vcr_core.seeding import isolated_random_state
from vcr_core.testing.contract import require


def under_state(seed: int, call: Callable[[], Any], what: str) -> Any:
    """Return ``call()`` made under an ambient random state of our choice.

    Raises:
        AssertionError: if the call changes the state of ``random``, numpy or torch.
    """
    with isolated_random_state(seed):
        before = (random.getstate(), np.random.get_state(), torch.get_rng_state())
        result = call()
        after = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    require(before[0] == after[0], f"{what} changed the state of Python's global random generator")
    same = all(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    require(same, f"{what} changed the state of numpy's global random generator")
    require(
        torch.equal(before[2], after[2]), f"{what} changed the state of torch's global generator"
    )
    return result
