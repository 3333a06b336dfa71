"""Reading the reference outputs of ``golden/``: weights by rule, inputs by seed, and comparisons.

The rules are those of ``golden/README.md``.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

FOLDER = Path(__file__).parents[1] / "golden"
TABLES = re.compile(
    "pos_emb|positional_embedding|position_embedding|temporal_embedding|cls_token"
    "|class_embedding|cls_embedding"
)


def facts(name: str) -> dict[str, Any]:
    """Return a JSON fixture by file name."""
    path = FOLDER / name
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)


def arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"{name}.tiny.npz") as content:
        return {key: content[key] for key in content.files}


def value(name: str, shape: tuple[int, ...]) -> np.ndarray:
    leaf = name.rsplit(".", 1)[-1]
    seed = np.random.PCG64(zlib.crc32(name.encode()))
    z = np.random.Generator(seed).standard_normal(shape).astype(np.float32)
    tenth = np.float32(0.1)
    if leaf == "running_var":
        return 1 + tenth * np.abs(z)
    if leaf == "running_mean":
        return tenth * z
    if TABLES.search(name):
        return np.float32(0.5) * z
    if len(shape) <= 1:
        return float(leaf == "weight" or "gamma" in name) + tenth * z
    return z / np.float32(np.sqrt(np.prod(shape[1:])))


def ruled(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a state with the values of the weight rule."""
    made = {}
    for key, tensor in state.items():
        if key.endswith("num_batches_tracked"):
            made[key] = torch.zeros_like(tensor)
        elif tensor.is_floating_point():
            made[key] = torch.from_numpy(np.array(value(key, tuple(tensor.shape)), np.float32))
        else:
            made[key] = tensor
    return made


def fill(network: nn.Module) -> nn.Module:
    network.load_state_dict(ruled(network.state_dict()), strict=True)
    return network.eval().requires_grad_(False)


def clips(given: dict[str, Any]) -> Tensor:
    """Return the normalised input ``[N, C, T, H, W]`` that a fixture's ``input`` describes."""
    shape = tuple(given["shape_NCTHW"])
    x = np.random.Generator(np.random.PCG64(0)).random(shape).astype(np.float32)
    mean, std = (np.array(given[k], np.float32).reshape(1, -1, 1, 1, 1) for k in ("mean", "std"))
    return torch.from_numpy((x - mean) / std)


def gap(found: Tensor | np.ndarray, wanted: np.ndarray | list[float]) -> float:
    """Return the largest difference over the largest wanted value."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
