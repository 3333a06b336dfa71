"""Previews play, show the frames as they are, and say what they show."""

from __future__ import annotations

import av
import numpy as np
import pytest
from vcr_core.export_videos.panels import Panel, choose_scale, side_by_side
from vcr_core.export_videos.previews import panels_of
from vcr_core.video.preview import encode_preview


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)


def decode(path):
    with av.open(str(path)) as container:
        return np.stack([f.to_ndarray(format="rgb24") for f in container.decode(video=0)])


@pytest.mark.parametrize("options", [{}, {"defense": "toy-noise"}, {"attack": "toy-drop-one"}])
def test_previews_play(options, evaluate, tmp_path):
    result = evaluate(limit=1, **options)
    [folder] = result.export_videos(tmp_path, previews=["mp4", "gif", "webm"])
    names = {path.name for path in folder.glob("*_preview.*")}
    pictures = {"side-by-side"} if "attack" in options else {"side-by-side", "difference"}
    assert names == {f"{p}_preview.{f}" for p in pictures for f in ("mp4", "gif", "webm")}
    shown = {name: decode(folder / name) for name in names}
    panels = 2 + ("defense" in options) + ("attack" not in options)
    for name, frames in shown.items():
        wide = 4 * (panels - 1) + 224 * panels if name.startswith("side") else 224
        assert frames.shape == (4, 224 + 76, wide, 3)


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 200), (200, 1), (33, 51), (240, 320), (7, 1500), (1080, 1920)]
)
def test_any_size_becomes_a_picture(size):
    panels = [Panel(("clean", "x" * 500), noise(2, *size)), Panel((), noise(3, *size))]
    frames = side_by_side(panels)
    assert len(frames) == 3
    assert max(frames.shape[1:3]) <= 2 * 640 + 4 + 76
    scale = choose_scale(*size)
    left = panels[0].frames
    left = left.repeat(scale, 1).repeat(scale, 2) if scale > 0 else left[:, ::-scale, ::-scale]
    # Not a pixel of a frame is covered, and the last frame of the shorter one stays.
    height, width = left.shape[1:3]
    np.testing.assert_array_equal(frames[:2, 76 : 76 + height, :width], left)
    np.testing.assert_array_equal(frames[2, 76 : 76 + height, :width], left[-1])
    for format_ in ("mp4", "gif"):
        assert encode_preview(frames[:1], 8, format=format_)


def test_panels_say_what_they_show(evaluate, tmp_path):
    from vcr_core.export_videos.layout import Layout, Layouts
    from vcr_core.export_videos.sources import kept_files, load_pair

    result = evaluate(limit=1, targeted=True)
    [record] = result.records
    [path] = kept_files(result.view).values()
    pair = load_pair(path, "kept")
    layout = Layout((0, 2, 4, 6), ((0, 1, 2, 3),), None, None, None)
    panels = panels_of(result.view, record, pair, Layouts(layout, layout), None, eps=8 / 255)
    names = result.view.manifest["dataset"]["labels"]
    assert [panel.lines[0] for panel in panels] == [
        "clean", "after toy-descent", "difference, amplified x 15.9",
    ]  # fmt: skip
    assert panels[0].lines[2] == f"true class: {names[record['label']]}"
    assert panels[1].lines[1].startswith(f"predicted: {names[record['attacked']['pred']]}, p = 0.")
    assert panels[1].lines[2] == f"target: {names[record['target']]}"
    delta = pair.adversarial.astype(int) - pair.clean
    expected = np.clip(np.rint(128 + 127 / 8 * delta), 0, 255)
    np.testing.assert_array_equal(panels[2].frames, expected)


def test_captions_are_cut_and_strange_letters_do_no_harm():
    strange = "\u202e\u6253\u0000\n\U0001f600 " + "w" * 400
    frames = side_by_side([Panel((strange,) * 9, noise(1, 224, 224))])
    assert frames.shape[1:3] == (300, 224)
    caption = frames[0, :76]
    assert (caption < 100).any()
    assert (caption[:, :4] == caption[0, 0]).all()
    assert (caption[:, -4:] == caption[0, 0]).all()
