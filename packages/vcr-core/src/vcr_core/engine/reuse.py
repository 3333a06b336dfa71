"""Attack once, defend many: what an earlier run has computed is taken over bit for bit.

An attack that knows no defense makes the same videos whatever the defense. What it made of a group
of videos is kept under a key of everything that may change a bit of it: the identity of the attack
without defenses and judgement, the videos' content in their order, code and versions, device,
threads and chunk. The predictions of the bare model and the metrics of the pair (clean,
adversarial) are kept in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.config.command_text import LOCAL
from vcr_core.engine.frames_cache import FramesCache
from vcr_core.engine.reuse_keys import Shelves, group_key
from vcr_core.folders import cache_folder
from vcr_core.reuse_store import FOLDER, REUSED, ReuseStore, Shelf

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.decode import Decoded
    from vcr_core.engine.setup import Parts, Setup

IDENTICAL = "identical"
"""The reason of a null that is no failure."""

GIGABYTE = 1_000_000_000


ATTACK_FIELDS = ("cost", "success", "trace", "perturbation")
"""What an attack leaves in a record, besides flags and notes."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """What one run may take over, and what it keeps for others.

    Attributes:
        store: where things lie.
        run: id of this run.
        began: when it began, which tells it from the same run in another folder.
        keeps: whether it keeps what it makes.
        predictions: shelf of predictions of the bare model on clean videos.
        attack: shelf of the attack; ``None`` where it cannot be shared.
        metrics: shelf of readings; ``None`` likewise.
        frames: decoded frames; ``None`` for videos that are drawn, not decoded.
    """

    store: ReuseStore
    run: str
    began: str
    keeps: bool
    predictions: Shelf
    attack: Shelf | None
    metrics: Shelf | None
    frames: FramesCache | None = None


def reuse_folder(experiment: Experiment) -> Path:
    """Return the folder of what is reused: ``reuse`` in ``paths.cache``, else in the cache."""
    cache = experiment.paths.cache
    return (Path(cache) if cache else cache_folder()) / FOLDER


def open_reuse(
    setup: Setup, parts: Parts | None, manifest: Mapping[str, Any], threads: int
) -> Reuse | None:
    """Return what a run may share with others, ``None`` where it may share nothing.

    Components from Python are known by their class alone, and a class may change: with one of
    them in the contest nothing is shared. Components that were loaded by name and handed over as
    objects are shared only where ``runtime.reuse = true`` asks for it.
    """
    experiment = setup.experiment
    asked = experiment.runtime.reuse
    given = parts is not None and (parts.model is not None or parts.attack is not None)
    known = [experiment.model, *([experiment.attack] if experiment.attack else [])]
    if (
        asked is False
        or (asked == "auto" and given)
        or any(chosen.distribution == LOCAL for chosen in known)
    ):
        return None
    store = ReuseStore(reuse_folder(experiment), int(experiment.runtime.reuse_gb * GIGABYTE))
    ways = Shelves(setup, parts, threads)
    # What an attack on another model leaves is shared by the contest on that model.
    attack = ways.attack() if setup.source is None else None
    frames = ways.frames()
    videos = int((manifest.get("dataset") or {}).get("n") or 1)
    found = Reuse(
        store=store,
        run=str(manifest["run"]),
        began=str(manifest.get("started")),
        keeps=asked is True,
        predictions=ways.predictions(),
        attack=attack,
        metrics=ways.metrics() if attack is not None else None,
        frames=FramesCache(store, frames, asked is True, videos) if frames else None,
    )
    shelves = (found.predictions, found.attack, found.metrics, frames)
    offered = [shelf for shelf in shelves if shelf is not None]
    return found if found.keeps or any(store.has(shelf) for shelf in offered) else None


class GroupReuse:
    """What can be taken over for one group of videos; without ``reuse`` everything is computed.

    Args:
        reuse: the run's part, or ``None``.
        videos: the group.
        chunk: clips that pass the model at once.
        device: where tensors live.
    """

    def __init__(
        self,
        reuse: Reuse | None,
        videos: Sequence[Decoded],
        chunk: int | None,
        device: torch.device,
    ) -> None:
        self._reuse = reuse
        self._device = device
        self._key = group_key(videos, chunk) if reuse is not None else ""

    def clean(self, compute: Callable[[], Tensor]) -> Tensor:
        """Return ``[B, K]`` log-probabilities of the bare model on the clean videos."""
        return self._scores(self._reuse.predictions if self._reuse else None, "clean", compute)

    def attacked(self, compute: Callable[[], Tensor]) -> Tensor:
        """Return ``[B, K]`` log-probabilities of the bare model on the attacked videos."""
        return self._scores(self._reuse.attack if self._reuse else None, "attacked", compute)

    def recall(
        self,
        rows: Sequence[int],
        results: Sequence[dict[str, Any]],
        flags: Sequence[set[str]],
        notes: Sequence[list[str]],
    ) -> tuple[Tensor, float] | None:
        """Put what an equal attack has left into the records of the group, if there is any.

        Args:
            rows: the eligible videos of the group.
            results: fields of the records of the whole group, added to.
            flags: their flags, added to.
            notes: their notes, added to.

        Returns:
            The verified videos ``[b, T, C, H, W]`` of ``rows``, and the seconds that this run has
            spent on them: none, unless it was this very run before it was interrupted.
        """
        reuse = self._reuse
        entry = reuse.store.load(reuse.attack, self._key) if reuse and reuse.attack else None
        if reuse is None or entry is None or entry.facts["rows"] != list(rows):
            return None
        made_by = entry.facts["run"]
        is_own = (made_by, entry.facts["began"]) == (reuse.run, reuse.began)
        for row, told in zip(rows, entry.facts["videos"], strict=True):
            results[row].update(told["fields"])
            flags[row].update(told["flags"])
            notes[row].extend(told["notes"])
            if not is_own:
                notes[row].append(f"{REUSED}: the attack of run {made_by}")
        video = torch.from_numpy(entry.arrays["video"].copy())
        if video.dtype == torch.uint8:
            video = video.to(torch.float32).div_(255)
        return video.to(self._device), float(entry.facts["seconds"] if is_own else 0)

    def keep(
        self,
        rows: Sequence[int],
        results: Sequence[Mapping[str, Any]],
        flags: Sequence[set[str]],
        notes: Sequence[list[str]],
        video: Tensor,
        seconds: float,
    ) -> None:
        """Keep what this run's attack made, if the run keeps anything; see :meth:`recall`.

        Videos are kept as 8-bit levels where these hold every bit of them, else as they are.
        """
        reuse = self._reuse
        if reuse is None or reuse.attack is None or not reuse.keeps:
            return
        exact = video.detach().to("cpu", torch.float32)
        levels = (exact * 255).round().clamp(0, 255).to(torch.uint8)
        same = torch.equal(levels.to(torch.float32).div_(255), exact)
        array = (levels if same else exact).contiguous().numpy()
        facts = {
            "run": reuse.run,
            "began": reuse.began,
            "rows": list(rows),
            "seconds": seconds,
            "videos": [
                {
                    "fields": {k: results[row][k] for k in ATTACK_FIELDS if k in results[row]},
                    "flags": sorted(flags[row]),
                    "notes": notes[row],
                }
                for row in rows
            ],
        }
        reuse.store.save(reuse.attack, self._key, {"video": array}, facts)

    def known_readings(self, rows: Sequence[int]) -> list[dict[str, Any]] | None:
        """Return readings of the given rows that another run has kept, if there are any."""
        reuse = self._reuse
        entry = reuse.store.load(reuse.metrics, self._key) if reuse and reuse.metrics else None
        if entry is None or entry.facts["rows"] != list(rows):
            return None
        found: list[dict[str, Any]] = entry.facts["readings"]
        return found

    def readings(
        self, rows: Sequence[int], compute: Callable[[], list[dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Return the metrics' readings of the given rows, in their order."""
        reuse = self._reuse
        if reuse is None or reuse.metrics is None:
            return compute()
        found = self.known_readings(rows)
        if found is not None:
            return found
        made = compute()
        # A failure may have been of the moment.
        sound = all(
            r["value"] is not None or r.get("reason") == IDENTICAL
            for one in made
            for r in one.values()
        )
        if reuse.keeps and sound:
            told = {"rows": list(rows), "readings": made}
            reuse.store.save(reuse.metrics, self._key, {}, told)
        return made

    def _scores(self, shelf: Shelf | None, name: str, compute: Callable[[], Tensor]) -> Tensor:
        reuse = self._reuse
        if reuse is None or shelf is None:
            return compute()
        key = f"{self._key}-{name}"
        entry = reuse.store.load(shelf, key)
        if entry is not None:
            return torch.from_numpy(entry.arrays["scores"].copy()).to(self._device)
        scores = compute()
        if reuse.keeps:
            reuse.store.save(shelf, key, {"scores": scores.detach().cpu().numpy()})
        return scores
