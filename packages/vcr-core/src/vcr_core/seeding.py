"""Seeds from (run seed, video id, role, repeat), and isolation of ambient random state."""

from __future__ import annotations

import hashlib
import random
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Role: TypeAlias = Literal[
    "clean",
    "attack",
    "target",
    "eval",
    "metric",
    "defense",
    "certify",
    "subset",
    "prepare",
    "tamper",
]


def derive_seed(run_seed: int, video_id: str, role: str, repeat: int | str = 0) -> int:
    """Return a 63-bit seed that depends on these four values only.

    Example:
        >>> derive_seed(42, "a", "attack") == derive_seed(42, "a", "attack", 0)
        True
        >>> derive_seed(42, "a", "attack") == derive_seed(42, "a", "eval")
        False
    """
    digest = hashlib.blake2b(digest_size=8, person=b"vcr-seed-v1")
    for part in (str(run_seed), video_id, role, str(repeat)):
        data = part.encode()
        digest.update(len(data).to_bytes(4, "little") + data)
    return int.from_bytes(digest.digest(), "little") & (2**63 - 1)


def subset_order(ids: Iterable[str], run_seed: int) -> list[str]:
    """Return ``ids`` in the order in which subsets take them: 8 videos are a prefix of 100."""
    return sorted(ids, key=lambda i: (derive_seed(run_seed, i, "subset"), i))


@contextmanager
def isolated_random_state(seed: int) -> Iterator[None]:
    """Seed ``random``, numpy and torch inside the block and restore their state after it.

    Our own components never use these global generators; third-party code may. numpy and torch
    are touched only if something has imported them already.
    """
    np = sys.modules.get("numpy")
    torch = sys.modules.get("torch")
    python_state = random.getstate()
    numpy_state = np.random.get_state() if np is not None else None
    torch_state = torch.get_rng_state() if torch is not None else None
    cuda_states = (
        torch.cuda.get_rng_state_all()
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
        else None
    )
    random.seed(seed)
    if np is not None:
        np.random.seed(seed & 0xFFFFFFFF)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python_state)
        if np is not None and numpy_state is not None:
            np.random.set_state(numpy_state)
        if torch is not None and torch_state is not None:
            torch.set_rng_state(torch_state)
            if cuda_states is not None:
                torch.cuda.set_rng_state_all(cuda_states)
