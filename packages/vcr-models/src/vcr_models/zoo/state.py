"""From checkpoint files to the state of a network: where it lies, what its keys are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import torch
from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.reading import read_checkpoint, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor, nn

IGNORED: Final = re.compile(r"(data_preprocessor|train_aug|augment)\..*|.*\.total_(ops|params)")
"""Entries that belong to a trainer and no network."""

PREFIXES: Final = ("module.", "model.", "encoder.", "backbone.")

MMACTION_VIT: Final = (
    (re.compile(r"^backbone\.patch_embed\.projection\."), "patch_embed.proj."),
    (re.compile(r"^backbone\.(blocks\.\d+\.mlp)\.layers\.0\.0\."), r"\1.fc1."),
    (re.compile(r"^backbone\.(blocks\.\d+\.mlp)\.layers\.1\."), r"\1.fc2."),
    (re.compile(r"^backbone\.(fc_norm|norm)\."), "fc_norm."),
    (re.compile(r"^cls_head\.fc_cls\."), "head."),
    (re.compile(r"^backbone\.pos_embed$"), "pos_embed"),
    (re.compile(r"^backbone\."), ""),
)
"""mmaction2's names of a video ViT, and the official ones; every key is renamed at most once."""


def renamed_from_mmaction(key: str) -> str:
    """Return the official name of a key of mmaction2's video ViT."""
    for pattern, to in MMACTION_VIT:
        new, count = pattern.subn(to, key)
        if count:
            return new
    return key


def read_state(path: Path, roots: tuple[str, ...], *, trust_pickle: bool) -> dict[str, Tensor]:
    """Return the weights in a checkpoint, without what belongs to its trainer.

    Raises:
        ComponentUnavailable: if the file is damaged, holds more than weights, or none.
    """
    state = state_of(read_checkpoint(path, trust_pickle=trust_pickle), roots, path)
    return {key: value for key, value in state.items() if not IGNORED.fullmatch(key)}


def without_prefix(state: Mapping[str, Tensor], wanted: set[str]) -> dict[str, Tensor]:
    """Return a state without the prefix that a trainer put in front of every key, if it did."""
    for prefix in PREFIXES:
        if not any(key in wanted for key in state) and all(k.startswith(prefix) for k in state):
            state = {key.removeprefix(prefix): value for key, value in state.items()}
    return dict(state)


def load_strictly(
    network: nn.Module,
    state: Mapping[str, Tensor],
    path: Path,
    *,
    rename: Callable[[str], str] | None = None,
    spare: frozenset[str] = frozenset(),
    precision: str = "float32",
) -> None:
    """Put a state into a network; every key must have its place.

    Tensors become the network's own without a copy, so a network on the meta device is filled.

    Args:
        network: with the names of the state, or on the meta device.
        state: of the file.
        path: for messages.
        rename: from names of the file to names of the network.
        spare: names of the network that the file may have although the network has not.
        precision: what the weights become, tensor by tensor. Files in half precision become float32
            as well, because gradients of attacks would be coarse otherwise.

    Raises:
        ComponentUnavailable: naming the keys that are missing, unknown or of another shape.
    """
    own = network.state_dict()
    named = {rename(key) if rename else key: value for key, value in state.items()}
    if len(named) != len(state):
        raise ComponentUnavailable(f"{path}: two of its keys have the same name in the network")
    named = without_prefix(named, set(own))
    named = {key: value for key, value in named.items() if key in own or key not in spare}
    counters = {key for key in own if key.endswith("num_batches_tracked")}
    missing = sorted(set(own) - set(named) - counters)
    unknown = sorted(set(named) - set(own))
    shapes = [
        f"{key} is {list(named[key].shape)}, needed {list(own[key].shape)}"
        for key in own
        if key in named and named[key].shape != own[key].shape
    ]
    wrong = [
        *(f"missing: {_some(missing)}" for _ in missing[:1]),
        *(f"unknown: {_some(unknown)}" for _ in unknown[:1]),
        *(f"other shapes: {_some(shapes)}" for _ in shapes[:1]),
    ]
    if wrong:
        raise ComponentUnavailable(
            f"{path} does not fit {type(network).__name__}, and nothing is loaded in part\n  "
            + "\n  ".join(wrong)
        )
    dtype = getattr(torch, precision)
    exact = {key: v.to(dtype) if v.is_floating_point() else v for key, v in named.items()}
    for key in counters - set(named):
        exact[key] = own[key].new_zeros((), device="cpu")
    network.load_state_dict(exact, strict=True, assign=True)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
