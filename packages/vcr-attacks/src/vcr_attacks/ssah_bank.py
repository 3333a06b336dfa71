"""Features of reference videos, prepared beforehand: what SSAH moves towards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch
import torch.nn.functional as F
from safetensors.torch import load, save
from vcr_core.atomic import write_bytes
from vcr_core.errors import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor
    from vcr_core.protocols import PrepareContext
    from vcr_core.victim import Victim

BANK_FILE: Final = "bank.safetensors"
STATE_FILE: Final = "state.safetensors"

_ROUND: Final = 16
"""Videos between two notes of what has been reached."""


@dataclass(frozen=True, slots=True)
class FeatureBank:
    """Reference videos as a model sees them.

    Attributes:
        features: ``[N, D]`` float32, pooled.
        labels: ``[N]`` int64, classes of the model.
        confidence: ``[N]``, the model's probability of that class.
    """

    features: Tensor
    labels: Tensor
    confidence: Tensor

    def least_similar(self, own: Tensor) -> Tensor:
        """Return, for features ``[B, D]``, those in the bank with the lowest cosine to each."""
        bank = self.features.to(own)
        likeness = torch.stack([F.cosine_similarity(one[None], bank, dim=1) for one in own])
        return bank[likeness.argmin(dim=1)]

    def surest(self, targets: Tensor, like: Tensor) -> Tensor:
        """Return, for classes ``[B]``, the features of the video that the model is surest of.

        Raises:
            NotAvailable: for a class that no reference video has.
        """
        chosen = []
        for target in targets.tolist():
            members = (self.labels == target).nonzero().squeeze(1)
            if not members.numel():
                have = ", ".join(map(str, sorted({*self.labels.tolist()})))
                raise NotAvailable(
                    f"ssah: no reference video has class {target}, which a video is to be moved "
                    f"to (there are those of classes {have}); prepare with more videos "
                    "(prepare.videos)"
                )
            chosen.append(members[self.confidence[members].argmax()])
        return self.features.to(like)[torch.stack(chosen).to(like.device)]


def read_bank(folder: Path | None) -> FeatureBank:
    """Return what :func:`collect` wrote.

    Raises:
        NotAvailable: if there is nothing.
    """
    if folder is None or not (folder / BANK_FILE).is_file():
        raise NotAvailable(
            "attack ssah has no features of other videos to move towards; collect them with 'vcr "
            "prepare ssah' and the options of the run, or set attack.negatives = 'own'"
        )
    return _loaded(folder / BANK_FILE)


def collect(ctx: PrepareContext, features: Callable[[Victim, Tensor], Tensor], layer: str) -> None:
    """Write the features of every training video.

    Args:
        ctx: where to write, and what from.
        features: from a victim and videos ``[1, T, C, H, W]`` to ``[1, D]``.
        layer: name of the layer, for the manifest.
    """
    state = ctx.folder / STATE_FILE
    bank = _loaded(state) if state.exists() else None
    rows = (
        [] if bank is None else list(zip(bank.features, bank.labels, bank.confidence, strict=True))
    )
    total = len(ctx.items)
    for number in range(len(rows), total):
        # One by one: features must not depend on who else is in a batch.
        (batch,) = ctx.load([ctx.items[number]])
        victim = ctx.victim(batch)
        with torch.no_grad():
            found = features(victim, batch.videos)[0].detach().float().cpu()
        chance = victim.scores(batch.videos)[0, batch.labels[0]].exp().cpu()
        rows.append((found, batch.labels[0].cpu(), chance))
        if (number + 1) % _ROUND == 0 and number + 1 < total:
            write_bytes(state, _saved(rows))
        ctx.progress(number + 1, total)
    ctx.facts.update(
        {
            "layer": layer,
            "classes": sorted({int(label) for _, label, _ in rows}),
            "dimensions": len(rows[0][0]),
        }
    )
    write_bytes(ctx.folder / BANK_FILE, _saved(rows))
    state.unlink(missing_ok=True)


def _saved(rows: list[tuple[Tensor, Tensor, Tensor]]) -> bytes:
    features, labels, confidence = (torch.stack(part) for part in zip(*rows, strict=True))
    data: bytes = save({"features": features, "labels": labels, "confidence": confidence})
    return data


def _loaded(file: Path) -> FeatureBank:
    kept = load(file.read_bytes())
    return FeatureBank(kept["features"], kept["labels"], kept["confidence"])
