from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from vcr_core.reporters.clips import KeptClip, amplified_difference, kept_clips, load_clip
from vcr_core.reporters.strips import GAP, choose_scale, make_strip

np = pytest.importorskip("numpy")
image_module = pytest.importorskip("PIL.Image")


def pixels(uri: str) -> Any:
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    return np.asarray(image_module.open(io.BytesIO(data)))


def loaded(run: Any, number: int = 0) -> KeptClip:
    clip = load_clip(run, kept_clips(run)[number])
    assert clip is not None
    return clip


def test_rows_are_enlarged_frames_side_by_side(make_run: Any, keep_clips: Any) -> None:
    run = make_run()
    keep_clips(run, ["v0"])
    strip = make_strip(loaded(run))
    assert strip.frames == (0, 1, 3, 4, 5, 6, 8, 9)
    assert strip.total == 10
    clean, adversarial, difference = (pixels(row.uri) for row in strip.rows)
    assert clean.shape == (96, 8 * (144 + GAP) - GAP, 3)
    assert (clean.shape[1], clean.shape[0]) == (strip.rows[0].width, strip.rows[0].height)
    assert (adversarial[:12, :12, 0] == 104).all()
    assert adversarial[12, 0, 0] == 100
    # Gain 127 / 8 levels: a change of 4 levels is half of the reach.
    assert (difference[:12, :12, 0] == 128 + round(4 * 127 / 8)).all()
    assert (difference[:12, :12, 1:] == 128).all()


def test_captions_name_both_predictions_where_there_is_a_defense(
    make_run: Any, keep_clips: Any
) -> None:
    run = make_run(defense="median")
    keep_clips(run, ["v0"])
    strip = make_strip(loaded(run))
    assert strip.rows[0].caption.endswith("Defended: predicted walk, p = 0.80")
    assert strip.rows[1].caption == (
        "bare model: predicted <b>clap</b>, p = 0.70; true class p = 0.20. "
        "Defended: predicted run & jump, p = 0.80; true class p = 0.10"
    )


@pytest.mark.parametrize(
    ("change", "eps", "gain", "pixel"),
    [
        (8, 8 / 255, 127 / 8, 255),
        (-8, 8 / 255, 127 / 8, 1),
        (4, None, 127 / 4, 255),
        (16, 8 / 255, 127 / 16, 255),
        (0, 8 / 255, None, 128),
    ],
)
def test_difference_reaches_the_ends_at_the_radius(
    change: int, eps: float | None, gain: float | None, pixel: int
) -> None:
    clean = np.full((1, 2, 2, 3), 100, np.uint8)
    adversarial = (clean.astype(int) + change).astype(np.uint8)
    picture, found = amplified_difference(clean, adversarial, eps)
    assert found == (None if gain is None else pytest.approx(gain))
    assert (picture == pixel).all()


def test_large_frames_are_thinned_not_averaged() -> None:
    assert choose_scale(240, 320) == -2
    assert choose_scale(720, 1280) == -5
    assert choose_scale(160, 160) == 1


def test_unreadable_clips_are_left_out(make_run: Any, keep_clips: Any, caplog: Any) -> None:
    run = make_run()
    keep_clips(run, ["v0", "v1", "v2"])
    folder = run.folder / "artifacts"
    (folder / "c0.npz").write_bytes(b"torn")
    np.savez(folder / "c1.npz", clean=np.zeros((2, 4, 4, 3)), adversarial=np.zeros((2, 4, 4, 3)))
    (folder / "c2.npz").unlink()
    assert [load_clip(run, entry) for entry in kept_clips(run)] == [None, None, None]
    assert "c0.npz" in caplog.text
    assert "not uint8 [T, H, W, 3]" in caplog.text


def test_sidecar_cannot_point_outside_its_folder(make_run: Any, keep_clips: Any) -> None:
    run = make_run()
    keep_clips(run, ["v0"])
    (run.folder / "artifacts" / "c0.npz").rename(run.folder / "c0.npz")
    (entry,) = kept_clips(run)
    assert load_clip(run, {**entry, "file": "../c0.npz"}) is None


def test_pickled_arrays_are_refused(make_run: Any, keep_clips: Any) -> None:
    run = make_run()
    keep_clips(run, ["v0"])
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(run.folder / "artifacts" / "c0.npz", clean=objects, adversarial=objects)
    (entry,) = kept_clips(run)
    assert load_clip(run, entry) is None


@pytest.mark.parametrize("content", ["{", json.dumps({"clips": [{"video": "v"}]}), "[1]"])
def test_damaged_sidecar_gives_no_clips(make_run: Any, content: str) -> None:
    run = make_run()
    (run.folder / "artifacts").mkdir()
    (run.folder / "artifacts" / "clips.json").write_text(content, encoding="utf-8")
    assert kept_clips(run) == []
