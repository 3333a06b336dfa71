"""The toy shapes from a decoder that does what the environment says."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from vcr_core.protocols import Sampler, VideoItem
from vcr_core.testing.toys.shapes import ShapesDataset, ShapeSource
from vcr_core.video.info import Clip

from vcr_e2e.attacks import trouble


@dataclass(frozen=True, slots=True)
class MoodySource:
    """``VCR_E2E_DECODER``: ``<what> <video> …``."""

    id: str
    source: ShapeSource

    @property
    def name(self) -> str:
        return self.source.name

    def read(self, sampler: Sampler) -> Clip:
        what, *at = os.environ.get("VCR_E2E_DECODER", "").split() or [""]
        if self.id in at:
            trouble(what)
        return self.source.read(sampler)

    def sha256(self) -> str:
        return self.source.sha256()


class MoodyShapes(ShapesDataset):
    def item(self, video_id: str) -> VideoItem:
        item = super().item(video_id)
        return replace(item, source=MoodySource(video_id, item.source))
