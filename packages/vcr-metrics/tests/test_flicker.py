from __future__ import annotations

import pytest
import torch
from vcr_core.protocols import ClipInfo
from vcr_metrics.flicker import Flicker

INFO = ClipInfo()


def video(*offsets: int) -> torch.Tensor:
    """Return grey frames ``[T, 3, 8, 9]`` whose level is 100 and the offset."""
    levels = torch.tensor(offsets).view(-1, 1, 1, 1) + 100
    return levels.expand(-1, 3, 8, 9).to(torch.uint8)


def values(reference: torch.Tensor, test: torch.Tensor, info: ClipInfo = INFO) -> list:
    return [reading.value for reading in Flicker().measure(reference, test, info).values()]


@pytest.mark.golden
def test_closed_forms():
    still = video(*[0] * 6)
    assert values(still, video(*[16] * 6)) == [0, 0]
    e = 4
    blinking = values(still, video(*[e, -e] * 3))
    assert blinking == pytest.approx([2 * e, (4 * e**2 + 16 * e**2) / 255**2])
    ramp = values(still, video(0, 1, 2, 3, 4, 5))
    assert ramp == pytest.approx([1, 1 / 255**2])


def test_levels_of_uint8_do_not_wrap():
    assert values(video(0, 0, 0), video(16, -16, 16))[0] == 32


def test_independent_signs_flicker_by_their_size_on_average():
    generator = torch.Generator().manual_seed(0)
    signs = 2 * torch.randint(0, 2, (8, 3, 32, 32), generator=generator) - 1
    clean = torch.full(signs.shape, 100, dtype=torch.uint8)
    assert values(clean, (clean.int() + 5 * signs).to(torch.uint8))[0] == pytest.approx(5, abs=0.1)


def test_the_video_itself_does_not_matter_but_the_order_of_frames_does(patterns):
    clean, delta = patterns["B"].int(), torch.tensor([4, 4, 0, 0, 4, 4, 0, 0]).view(8, 1, 1, 1)
    perturbed = (clean + delta).to(torch.uint8)
    found = values(patterns["B"], perturbed)
    assert found == values(video(*[0] * 8), video(*delta.flatten().tolist()))
    order = [0, 1, 4, 5, 2, 3, 6, 7]
    assert values(patterns["B"][order], perturbed[order])[0] < found[0]


def test_frames_of_different_clips_are_not_compared():
    still, test = video(*[0] * 6), video(0, 0, 0, 9, 9, 9)
    assert values(still, test, ClipInfo(clips=2)) == [0, 0]
    assert values(still, test)[0] == pytest.approx(9 / 5)
    both = values(still, video(0, 2, 0, 0, 2, 0), ClipInfo(clips=2))
    assert both == pytest.approx(values(video(0, 0, 0), video(0, 2, 0)))
    with pytest.raises(ValueError, match="6 frames are not 4 clips"):
        values(still, still, ClipInfo(clips=4))


def test_too_few_frames_have_no_value():
    one = Flicker().measure(video(0), video(1), INFO)
    assert {r.reason for r in one.values()} == {"clips of one frame"}
    two = Flicker().measure(video(0, 0), video(1, 3), INFO)
    assert two["flicker"].value == 2
    assert two["roughness"].reason == "clips of two frames"


def test_chunks_do_not_matter(patterns, monkeypatch):
    whole = values(patterns["B"], patterns["C"])
    monkeypatch.setattr("vcr_metrics.levels._CHUNK_ELEMENTS", 1)
    assert values(patterns["B"], patterns["C"]) == whole
