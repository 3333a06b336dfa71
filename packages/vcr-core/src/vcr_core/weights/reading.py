"""Reading weight files without running what is in them."""

from __future__ import annotations

import argparse
import pickle
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from pathlib import Path


def read_checkpoint(path: Path, *, trust_pickle: bool = False) -> Any:
    """Return what a checkpoint file holds, on the CPU.

    ``.safetensors`` files, TorchScript archives (their state) and pickles that hold nothing but
    tensors, numbers, text, NumPy scalars and argument lists are read without running code.

    Args:
        path: the file.
        trust_pickle: unpickle whatever is in it. Such a file can do anything that you can do.

    Raises:
        ComponentUnavailable: if the file is damaged or holds anything else.
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        if trust_pickle:
            # Asked for in so many words, by a parameter.
            return torch.load(path, map_location="cpu", weights_only=False)  # noqa: TID251
        with torch.serialization.safe_globals(_harmless()), warnings.catch_warnings():
            # It says that it will look at a TorchScript archive otherwise, which is done below.
            warnings.filterwarnings("ignore", message=r".*TorchScript archive")
            return torch.load(path, map_location="cpu", weights_only=True)  # noqa: TID251
    except pickle.UnpicklingError as error:
        raise ComponentUnavailable(
            f"{path} holds more than weights ({_first_line(error)}), and reading that can run "
            "code; if you trust whoever made the file, set the model's parameter trust_pickle"
        ) from error
    except RuntimeError as error:
        if "TorchScript" in str(error):
            return _script_state(path)
        raise ComponentUnavailable(f"{path} cannot be read: {_first_line(error)}") from error
    except (OSError, EOFError, ValueError, KeyError, ImportError, AttributeError) as error:
        raise ComponentUnavailable(f"{path} cannot be read: {_first_line(error)}") from error
    except Exception as error:
        # safetensors has an error class of its own that derives from Exception alone.
        if type(error).__name__ != "SafetensorError":
            raise
        raise ComponentUnavailable(f"{path} cannot be read: {_first_line(error)}") from error


def state_of(content: Any, roots: tuple[str, ...], path: Path) -> dict[str, Tensor]:
    """Return the state dictionary of a checkpoint.

    Args:
        content: what :func:`read_checkpoint` returned.
        roots: keys under which the state may lie, the first that is there is taken; a checkpoint
            without any of them is the state itself.
        path: for messages.

    Raises:
        ComponentUnavailable: if there is no dictionary of tensors.
    """
    for root in roots:
        if isinstance(content, Mapping) and isinstance(content.get(root), Mapping):
            content = content[root]
            break
    tensors = isinstance(content, Mapping) and content
    if not tensors or not all(isinstance(value, Tensor) for value in content.values()):
        held = ", ".join(map(str, list(content)[:6])) if isinstance(content, Mapping) else ""
        raise ComponentUnavailable(
            f"{path} holds no weights under {' or '.join(roots) or 'its top level'}"
            + (f"; its keys are {held}" if held else f"; it holds a {type(content).__name__}")
        )
    return {str(key): value for key, value in content.items()}


def _script_state(path: Path) -> Any:
    with warnings.catch_warnings():
        # Old official files are of this kind; that new ones should not be is not the reader's task.
        warnings.filterwarnings("ignore", message=r".*torch\.jit")
        return torch.jit.load(str(path), map_location="cpu").state_dict()  # type: ignore[no-untyped-call]


def _harmless() -> list[Any]:
    """Types that official checkpoints hold beside tensors and that run nothing when read."""
    import numpy as np
    from numpy._core import multiarray

    numbers = [type(np.dtype(kind)) for kind in "?bBhHiIlLqQefdg"]
    return [
        multiarray.scalar,
        multiarray._reconstruct,
        np.dtype,
        np.ndarray,
        argparse.Namespace,
        *dict.fromkeys(numbers),
    ]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
