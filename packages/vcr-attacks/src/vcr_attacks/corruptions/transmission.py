"""Errors of storage and transmission: bytes that flip, packets that do not arrive.

Yi et al., "Benchmarking the robustness of spatial-temporal models against corruptions", NeurIPS
2021. Only frames are known here, not the file that they came from, so they are encoded first:
H.264 at the encoder's default quality, one key frame in 250 frames.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from vcr_core.protocols import Transformed

from vcr_attacks.corruptions.coding import H264, Packet, Stream, decoded, encoded, need
from vcr_attacks.corruptions.source import SeverityCorruption

if TYPE_CHECKING:
    from vcr_core.protocols import WholeVideo
    from vcr_core.randomness import VideoRandom

    from vcr_attacks.params.corruptions import CorruptionParams

BIT_ERROR = (100_000, 50_000, 30_000, 20_000, 10_000)
"""Bytes per corrupted one."""
PACKET_LOSS = (0.01, 0.02, 0.03, 0.04, 0.06)
"""Part of the packets."""

_SLICE_HEADER = 16
_PICTURE_TYPES = range(1, 6)
"""Types of H.264 units that hold a part of a picture."""


class _Transmitted(SeverityCorruption):
    """Base of types that damage a stream of H.264.

    At least one byte or packet is hit; how many is rounded at random, so that the rate is right on
    average, and more severe levels hit the same ones and others.
    """

    def __init__(self, params: CorruptionParams | None = None) -> None:
        super().__init__(params)
        need(H264, self.type)

    @abstractmethod
    def received(self, stream: Stream, level: int, random: VideoRandom) -> tuple[list[Packet], int]:
        """Return the packets that arrive, and how many places were hit."""

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return what a player shows of the damaged stream."""
        stream = encoded(video.frames, video.fps, H264)
        packets, hit = self.received(stream, level, random)
        shown = decoded(stream, packets)
        facts = {"bytes": stream.size, "hit": hit, "refused": shown.refused}
        return Transformed(shown.frames, shown.sources, {**facts, "missing": shown.missing})


class BitError(_Transmitted):
    """One byte in ``c`` gets another value; parameter sets and the first header are spared.

    Without them nothing could be decoded at all.
    """

    type = "bit-error"

    def received(self, stream: Stream, level: int, random: VideoRandom) -> tuple[list[Packet], int]:
        """See :meth:`_Transmitted.received`."""
        data = np.frombuffer(b"".join(p.data for p in stream.packets), np.uint8).copy()
        spared = first_picture(stream.packets[0].data) + _SLICE_HEADER if stream.packets else 0
        exposed = max(0, len(data) - spared)
        hits = min(exposed, _hits(exposed / BIT_ERROR[level], random))
        places = spared + random.permutation(exposed)[0][:hits].numpy()
        # Other than zero, so that every chosen byte changes.
        data[places] ^= random.integers(1, 256, exposed)[0][:hits].numpy().astype(np.uint8)
        ends = np.cumsum([len(p.data) for p in stream.packets])[:-1]
        parts = np.split(data, ends)
        damaged = zip(stream.packets, parts, strict=True)
        return [replace(p, data=part.tobytes()) for p, part in damaged], hits


class PacketLoss(_Transmitted):
    """A part of the packets does not arrive; the first one, a key frame, always does.

    A packet holds one picture.
    """

    type = "packet-loss"

    def received(self, stream: Stream, level: int, random: VideoRandom) -> tuple[list[Packet], int]:
        """See :meth:`_Transmitted.received`."""
        others = max(0, len(stream.packets) - 1)
        hits = min(others, _hits(others * PACKET_LOSS[level], random))
        lost = {1 + int(i) for i in random.permutation(others)[0][:hits]}
        return [p for i, p in enumerate(stream.packets) if i not in lost], hits


def first_picture(packet: bytes) -> int:
    """Return where the first unit of H.264 with a part of a picture begins, after its start code.

    What comes before it describes the encoder, and flips there would change nothing.
    """
    place = packet.find(b"\x00\x00\x01")
    while place >= 0 and place + 3 < len(packet):
        if packet[place + 3] & 0x1F in _PICTURE_TYPES:
            return place + 3
        place = packet.find(b"\x00\x00\x01", place + 3)
    return len(packet)


def _hits(expected: float, random: VideoRandom) -> int:
    return max(1, math.floor(expected + float(random.uniform())))
