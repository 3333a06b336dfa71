"""The dataset ``tamper``: every video of another dataset, as it is and once for each effect.

The task is that of MVTamperBench (Agarwal et al., arXiv 2412.19794): is this video tampered with,
and how? The label is the effect, so a detector is an ordinary model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from vcr_core.components import build
from vcr_core.config.objects import choose_component
from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace, TransformContext, VideoItem
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.video.info import Clip
from vcr_core.video.planning import ask
from vcr_core.video.sampling import whole_video
from vcr_core.whole_videos import check_transformed, donor, whole_of

from vcr_attacks.params.tamper_dataset import TamperDatasetParams
from vcr_attacks.tampering.effects import ORIGINAL, Effect, effects_of, segment_params

if TYPE_CHECKING:
    from fractions import Fraction

    from vcr_core.protocols import Sampler, Transformed, VideoDataset

_MARK = "#"


class TamperDataset:
    """The videos of a dataset and what tampering makes of them.

    Ids are ``<id of the source>#<effect>``, with ``original`` for the source itself; the videos
    of one source follow each other and are one group. What is drawn depends on the seed and the
    source's id alone: the effects of one source have the same segment and, where they need one,
    the same donor.

    Args:
        params: which dataset, which effects, where.
        base: a dataset object in the place of ``params.base``.

    Raises:
        ConfigError: if an effect or a parameter of the base is wrong.
    """

    def __init__(
        self, params: TamperDatasetParams | None = None, *, base: VideoDataset | None = None
    ) -> None:
        self.params = params or TamperDatasetParams()
        self.base: VideoDataset = base if base is not None else _built(self.params.base)
        segment = segment_params(self.params)
        effects = effects_of(self.params.effects, segment, self.params.operators)
        self._effects = {effect.name: effect for effect in effects}
        names = (ORIGINAL, *self._effects)
        asked = self.params.effects
        suite = asked if isinstance(asked, str) else "+".join(self._effects)
        self.labels = LabelSpace(f"tamper-{suite}", names)
        self._index = {name: index for index, name in enumerate(names)}
        self._last: tuple[str, Clip] | None = None

    def ids(self) -> Sequence[str]:
        """Return every id, those of one source one after the other."""
        return [f"{video}{_MARK}{name}" for video in self.base.ids() for name in self._index]

    def item(self, video_id: str) -> VideoItem:
        """Return one video without decoding or changing anything.

        Raises:
            KeyError: for an id that :meth:`ids` does not list.
        """
        source_id, _, name = video_id.rpartition(_MARK)
        if name not in self._index:
            raise KeyError(video_id)
        source = self.base.item(source_id)
        facts = {"tamper": {"type": name}}
        if name == ORIGINAL:
            return VideoItem(video_id, self._index[name], source.source, source.id, facts)
        made = TamperedSource(self, source, self._effects[name])
        return VideoItem(video_id, self._index[name], made, source.id, facts)

    def seed_of(self, source: VideoItem) -> int:
        """Return the seed of everything that is drawn for a source."""
        return derive_seed(self.params.seed, source.id, "tamper")

    def whole(self, source: VideoItem) -> Clip:
        """Return all frames of a source; the last one read is kept for its other effects."""
        if self._last is None or self._last[0] != source.id:
            self._last = (source.id, source.source.read(whole_video))
        return self._last[1]

    def tampered(self, source: VideoItem, effect: Effect) -> Transformed:
        """Return what an effect makes of a source.

        Raises:
            ContractViolation: if the operator does not keep to its contract.
            IncompatibleComponents: if the frame rate is needed and not known.
            NotAvailable: if there is no donor.
            VideoReadError: if the source cannot be read.
        """
        whole = whole_of(source, self.whole(source))
        seed = self.seed_of(source)
        context = TransformContext(
            VideoRandom([seed]),
            lambda other: donor(self.base, source, seed, other_label=other),
        )
        changed = effect.operator.transform(whole, context)
        check_transformed(f"effect {effect.name!r}", changed, whole)
        return changed


@dataclass(frozen=True, slots=True)
class TamperedSource:
    """A source after one effect; made when it is read.

    Attributes:
        dataset: what knows how.
        source: the video as it was.
        effect: what is done to it.
    """

    dataset: TamperDataset = field(repr=False)
    source: VideoItem
    effect: Effect

    @property
    def name(self) -> str:
        """The source's name with the effect, for messages."""
        return f"{self.source.source.name} ({self.effect.name})"

    def read(self, sampler: Sampler) -> Clip:
        """Decode the whole source, change it, and return what the sampler's plan uses.

        Raises:
            VideoReadError: if the source cannot be read.
        """
        changed = self.dataset.tampered(self.source, self.effect)
        clip = self.dataset.whole(self.source)
        plan = ask(sampler, len(changed.frames), self.name)
        fps = clip.fps
        indices = plan.distinct
        return replace(
            clip,
            frames=np.ascontiguousarray(changed.frames[indices]),
            plan=plan,
            indices=indices,
            pts_s=indices / float(fps) if fps else np.full(len(indices), np.nan),
            n_decoded=len(changed.frames),
            pts_monotonic=fps is not None,
            info=replace(clip.info, path=self.name, header_frames=None, duration_s=None),
            facts={**clip.facts, "tamper": _told(self.effect, changed, fps)},
        )

    def sha256(self) -> str | None:
        """Return a hash of the source's content and of everything that changes it."""
        content = self.source.source.sha256()
        if content is None:
            return None
        seed = self.dataset.seed_of(self.source)
        told = [content, self.effect.name, self.effect.params, seed]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _built(base: str | Mapping[str, Any]) -> VideoDataset:
    """Build the dataset that is tampered with.

    Raises:
        ConfigError: if it is wrong or another ``tamper``.
    """
    table = {"name": base} if isinstance(base, str) else {"name": "motion", **base}
    name = table.pop("name")
    try:
        chosen = choose_component("dataset", name, table)
    except ConfigError as error:
        problems = [f"dataset.base: {problem}" for problem in error.problems]
        raise ConfigError(problems) from error
    if chosen.spec.target.endswith(f":{TamperDataset.__name__}"):
        raise ConfigError(f"dataset.base: found {name!r}; allowed: a dataset that is not tampered")
    dataset: VideoDataset = build(chosen)
    return dataset


def _told(effect: Effect, changed: Transformed, fps: Fraction | None) -> dict[str, Any]:
    """Return the record's facts about what was done, times in seconds of the result."""
    facts = dict(changed.facts)
    start, end = facts.get("start"), facts.get("end")
    return {
        "type": effect.name,
        **facts,
        "start_s": None if start is None or not fps else float(start / fps),
        "end_s": None if end is None or not fps else float(end / fps),
        "fps": None if fps is None else float(fps),
        "frames": len(changed.frames),
        "params": effect.params,
    }
