"""A dataset whose decoder does what the environment says before it does its work."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from vcr_core.protocols import VideoItem
from vcr_core.testing.toys.shapes import ShapesDataset

from vcr_e2e.attacks import trouble


@dataclass(frozen=True)
class MoodySource:
    """``VCR_E2E_DECODER``: ``<what> <video> …``."""

    video: str
    source: Any

    @property
    def name(self) -> str:
        return str(self.source.name)

    def read(self, sampler: Any) -> Any:
        what, *at = os.environ.get("VCR_E2E_DECODER", "").split() or [""]
        if self.video in at:
            trouble(what)
        return self.source.read(sampler)

    def sha256(self) -> str:
        return str(self.source.sha256())


class MoodyShapes(ShapesDataset):
    def item(self, video_id: str) -> VideoItem:
        item = super().item(video_id)
        return VideoItem(item.id, item.label, MoodySource(video_id, item.source))
