"""The SynthMotion generator: symmetries, determinism, cache and export."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from vcr_core.datasets.motion import cache
from vcr_core.datasets.motion.cache import cache_name, load_split
from vcr_core.datasets.motion.export import export_split, write_video
from vcr_core.datasets.motion.generator import (
    SPLITS,
    TINY_SIZES,
    clip_id,
    clip_labels,
    generate_clip,
    split_size,
)
from vcr_core.datasets.motion.labels import (
    APPEARANCE_LABELS,
    MIRROR_X,
    MIRROR_Y,
    MOTION_LABELS,
    TIME_REVERSAL,
    label_index,
    label_names,
    label_space_id,
)
from vcr_core.datasets.motion.shapes import signed_distance
from vcr_core.datasets.motion.textures import contrasting_base, draw_texture, wave_field
from vcr_core.datasets.motion.trajectory import Trajectory, draw_pose, draw_trajectory

GOLDEN = Path(__file__).parent / "data" / "motion_v1.npz"


def trajectory(label: int, seed: int = 0, frames: int = 16) -> Trajectory:
    rng = np.random.default_rng([seed, label])
    return draw_trajectory(label, draw_pose(rng), frames, rng)


def reversed_in_time(path: Trajectory) -> Trajectory:
    return Trajectory(
        path.x[::-1], path.y[::-1], path.angle[::-1], path.radius[::-1], path.opacity[::-1]
    )


def mirrored_x(path: Trajectory) -> Trajectory:
    return Trajectory(1.0 - path.x, path.y, math.pi - path.angle, path.radius, path.opacity)


def mirrored_y(path: Trajectory) -> Trajectory:
    return Trajectory(path.x, 1.0 - path.y, -path.angle, path.radius, path.opacity)


def turning(path: Trajectory) -> float:
    """Signed area that the velocity sweeps; positive for a clockwise path on screen."""
    dx, dy = np.diff(path.x), np.diff(path.y)
    return float(np.sum(dx[:-1] * dy[1:] - dx[1:] * dy[:-1]))


def recognised(path: Trajectory) -> str:
    """Name of a motion from its path alone, written independently of the generator."""
    moves_x, moves_y = np.ptp(path.x) > 1e-9, np.ptp(path.y) > 1e-9
    if moves_x and moves_y:
        return "orbit_cw" if turning(path) > 0 else "orbit_ccw"
    for moves, values, back, forth, swing in (
        (moves_x, path.x, "left", "right", "swing_h"),
        (moves_y, path.y, "up", "down", "swing_v"),
    ):
        if moves:
            steps = np.diff(values)
            if (steps > 0).all():
                return forth
            return back if (steps < 0).all() else swing
    for values, less, more in (
        (path.angle, "rotate_ccw", "rotate_cw"),
        (path.radius, "shrink", "expand"),
    ):
        if np.ptp(values) > 1e-9:
            return more if values[-1] > values[0] else less
    if np.ptp(path.opacity) > 1e-9:
        if set(path.opacity) == {0.0, 1.0}:
            return "blink"
        return "fade_in" if path.opacity[-1] > path.opacity[0] else "fade_out"
    return "still"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("label", range(16))
def test_trajectory_means_its_label_and_obeys_the_symmetry_tables(label: int, seed: int) -> None:
    path = trajectory(label, seed)
    names = MOTION_LABELS
    assert recognised(path) == names[label]
    assert recognised(reversed_in_time(path)) == names[TIME_REVERSAL[label]]
    assert recognised(mirrored_x(path)) == names[MIRROR_X[label]]
    assert recognised(mirrored_y(path)) == names[MIRROR_Y[label]]


def test_symmetry_tables_are_commuting_involutions() -> None:
    tables = (TIME_REVERSAL, MIRROR_X, MIRROR_Y)
    for first in tables:
        assert [first[first[i]] for i in range(16)] == list(range(16))
        for second in tables:
            assert [first[second[i]] for i in range(16)] == [second[first[i]] for i in range(16)]
    moved = [sum(table[i] != i for i in range(16)) for table in tables]
    assert moved == [12, 6, 6]


def test_ranges_of_the_draws() -> None:
    for seed in range(50):
        left = trajectory(0, seed)
        assert 0.22 <= left.x[0] - left.x[-1] <= 0.42
        assert 0.20 <= left.radius[0] <= 0.32
        expand = trajectory(6, seed)
        assert 1.5 <= expand.radius[-1] / expand.radius[0] <= 2.1
        rotate = trajectory(4, seed)
        assert 0.5 * math.pi <= rotate.angle[-1] - rotate.angle[0] <= 1.1 * math.pi


@pytest.mark.parametrize("frames", [2, 5, 32])
def test_movement_spans_the_clip_at_any_length(frames: int) -> None:
    few, many = trajectory(1, 3, frames), trajectory(1, 3, 16)
    assert few.x[[0, -1]] == pytest.approx(many.x[[0, -1]], abs=1e-12)


def test_trajectory_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="unknown motion label 16"):
        trajectory(16)
    with pytest.raises(ValueError, match="at least 2 frames"):
        trajectory(0, 0, 1)


def test_clip_is_a_pure_function_of_its_address() -> None:
    alone = generate_clip("val", 21)
    for index in (3, 21, 4):
        again = generate_clip("val", index)
    assert not np.array_equal(again.frames, alone.frames)
    state = np.random.get_state()[1].copy()
    assert np.array_equal(generate_clip("val", 21).frames, alone.frames)
    assert np.array_equal(np.random.get_state()[1], state)
    assert alone.frames.shape == (16, 64, 64, 3)
    assert alone.frames.dtype == np.uint8
    assert alone.frames.flags.c_contiguous
    assert (alone.motion, alone.shape) == clip_labels("val", 21)


def test_every_argument_matters() -> None:
    clip = generate_clip("val", 0, size=32).frames
    assert not np.array_equal(clip, generate_clip("val", 0, size=32, base_seed=1).frames)
    assert not np.array_equal(clip, generate_clip("val", 16, size=32).frames)
    assert not np.array_equal(clip, generate_clip("val", 0, size=32, hardness=0.5).frames)
    assert generate_clip("val", 0, size=48, frames=7).frames.shape == (7, 48, 48, 3)


def test_splits_use_disjoint_streams() -> None:
    assert len({code for code, _ in SPLITS.values()}) == len(SPLITS)
    clips = [
        generate_clip(split, i, size=16, frames=2).frames.tobytes()
        for split in SPLITS
        for i in range(16)
    ]
    assert len(set(clips)) == len(clips)


def test_split_sizes() -> None:
    assert {name: split_size(name) for name in SPLITS} == {"train": 3200, "val": 480, "test": 960}
    assert {name: split_size(name, tiny=True) for name in SPLITS} == TINY_SIZES
    assert all(size % 16 == 0 for size in TINY_SIZES.values())
    assert clip_id("test", 123) == "motion-v1-test-000123"
    with pytest.raises(ValueError, match="unknown split"):
        clip_id("dev", 0)


def test_labels_are_balanced_and_shapes_are_independent_of_the_motion() -> None:
    labels = np.array([clip_labels("train", i) for i in range(3200)])
    assert (np.bincount(labels[:, 0]) == 200).all()
    shapes = np.bincount(labels[:, 1], minlength=8)
    assert shapes.min() > 300
    rotating = labels[np.isin(labels[:, 0], (4, 5)), 1]
    assert not np.isin(rotating, (0, 4)).any()


def test_label_spaces() -> None:
    assert [len(label_names(mode)) for mode in ("motion", "appearance", "joint")] == [16, 8, 128]
    assert label_names("joint")[label_index("joint", 3, 7)] == "down-crescent"
    assert label_index("motion", 3, 7) == 3
    assert label_index("appearance", 3, 7) == 7
    assert label_space_id("motion") == "motion-16"
    assert label_space_id("joint") == "motion-joint-128"
    with pytest.raises(ValueError, match="unknown label mode"):
        label_names("colour")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="out of range"):
        label_index("joint", 16, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": "dev"}, "unknown split"),
        ({"index": -1}, "must not be negative"),
        ({"frames": 1}, "frames must be in"),
        ({"size": 200}, "size must be in"),
        ({"hardness": math.nan}, "hardness must be"),
    ],
)
def test_generator_refuses_nonsense(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"split": "val", "index": 0} | change
    with pytest.raises(ValueError, match=message):
        generate_clip(**arguments)  # type: ignore[arg-type]


def test_without_nuisance_a_still_clip_is_still() -> None:
    clip = generate_clip("val", MOTION_LABELS.index("still"), hardness=0.0).frames
    assert (clip == clip[0]).all()


def test_shapes_fill_their_circle_and_no_more() -> None:
    grid = np.linspace(-1.5, 1.5, 301, dtype=np.float32)
    v, u = np.meshgrid(grid, grid, indexing="ij")
    for shape, name in enumerate(APPEARANCE_LABELS):
        distance = signed_distance(shape, u, v)
        assert distance.dtype == np.float32
        inside = np.hypot(u, v)[distance <= 0.0]
        assert 0.95 <= inside.max() <= 1.15, name
        assert 0.15 < (distance <= 0.0).mean() * 9.0 / math.pi <= 1.01, name
    with pytest.raises(ValueError, match="unknown shape"):
        signed_distance(8, u, v)


def test_separable_waves_equal_the_direct_sum() -> None:
    rng = np.random.default_rng(0)
    texture = draw_texture(rng, 1.0, 3.0)
    origin, step_x, step_y = (rng.uniform(-0.1, 0.1, size=(4, 2)) for _ in range(3))
    field = wave_field(texture, origin, step_x, step_y, 8)
    i, j = np.meshgrid(np.arange(8), np.arange(8), indexing="ij")
    for t in range(4):
        p = origin[t] + j[..., None] * step_x[t] + i[..., None] * step_y[t]
        angle = p @ np.stack([texture.wave_x, texture.wave_y]) + texture.phase
        direct = np.sin(angle) @ texture.colour
        assert field[t].transpose(1, 2, 0) == pytest.approx(direct, abs=1e-5)


def test_object_always_contrasts_with_the_background() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        background, base = rng.uniform(0.15, 0.85, size=(2, 3))
        result = contrasting_base(background, base)
        assert np.abs(result - background).max() >= 0.30
        assert ((result >= 0.0) & (result <= 1.0)).all()


@pytest.mark.golden
def test_golden_clips() -> None:
    """Stored pixels; sin and cos may differ in the last place between numpy builds."""
    with np.load(GOLDEN, allow_pickle=False) as stored:
        for key in stored.files:
            split, index = key.split("-")
            clip = generate_clip(split, int(index), frames=6, size=32)
            difference = np.abs(clip.frames.astype(int) - stored[key].astype(int))
            assert difference.max() <= 1, key
            assert difference.mean() < 1e-3, key


def test_cache_equals_direct_generation(tmp_path: Path) -> None:
    arrays = load_split(tmp_path / "new", "test", count=20, frames=4, size=24)
    assert arrays.clips.shape == (20, 4, 24, 24, 3)
    assert not arrays.clips.flags.writeable
    for index in (0, 7, 19):
        clip = generate_clip("test", index, frames=4, size=24)
        assert np.array_equal(arrays.clips[index], clip.frames)
        assert (arrays.motion[index], arrays.shape[index]) == (clip.motion, clip.shape)
    assert [p.name for p in (tmp_path / "new").iterdir()] == [arrays.path.name]


def test_cache_is_reused_and_keyed_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_split(tmp_path, "val", count=2, frames=2, size=16)
    other = load_split(tmp_path, "val", count=2, frames=2, size=16, base_seed=5)
    assert first.path != other.path
    monkeypatch.setattr(cache, "generate_clip", None)
    again = load_split(tmp_path, "val", count=2, frames=2, size=16)
    assert np.array_equal(again.clips, first.clips)
    names = {
        cache_name("val", 2, base_seed=s, frames=t, size=w, hardness=h)
        for s, t, w, h in ((0, 2, 16, 1.0), (1, 2, 16, 1.0), (0, 3, 16, 1.0), (0, 2, 17, 1.0))
    }
    assert len(names) == 4
    with pytest.raises(ValueError, match="at least 1"):
        load_split(tmp_path, "val", count=0)


def test_interrupted_cache_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_later(split: str, index: int, **options: object) -> object:
        if index == 2:
            raise KeyboardInterrupt
        return generate_clip(split, index, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "generate_clip", fail_later)
    with pytest.raises(KeyboardInterrupt):
        load_split(tmp_path, "val", count=4, frames=2, size=16)
    assert list(tmp_path.iterdir()) == []


def decoded(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.stack([f.to_ndarray(format="rgb24") for f in container.decode(video=0)])


def test_exact_export_round_trip(tmp_path: Path) -> None:
    table = export_split(tmp_path, "val", count=17, frames=4, size=33)
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["path", "label", "id", "split"]
    assert len(rows) == 17
    assert rows[16]["id"] == "motion-v1-val-000016"
    for row in (rows[0], rows[5], rows[16]):
        index = int(row["id"].rpartition("-")[2])
        assert row["path"].split("/")[0] == row["label"] == MOTION_LABELS[index % 16]
        clip = generate_clip("val", index, frames=4, size=33)
        assert np.array_equal(decoded(tmp_path / row["path"]), clip.frames)
    about = json.loads((tmp_path / "dataset.json").read_text(encoding="utf-8"))
    assert about["generator"] == "motion/v1"
    assert about["lossy"] is False


def test_lossy_export_says_so(tmp_path: Path) -> None:
    table = export_split(tmp_path, "val", count=1, format="mp4", labels="appearance")
    row = table.read_text(encoding="utf-8").splitlines()[1]
    assert row.startswith(APPEARANCE_LABELS[clip_labels("val", 0)[1]] + "/")
    assert "_preview.mp4" in row
    assert json.loads((tmp_path / "dataset.json").read_text(encoding="utf-8"))["lossy"] is True
    pixels = decoded(tmp_path / row.split(",")[0])
    clean = generate_clip("val", 0).frames
    assert pixels.shape == clean.shape
    assert 0.0 < np.abs(pixels.astype(int) - clean.astype(int)).mean() < 20.0


def test_export_refuses_nonsense(tmp_path: Path) -> None:
    frames = np.zeros((2, 15, 16, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match="even sides"):
        write_video(tmp_path / "a.mp4", frames, "mp4")
    with pytest.raises(ValueError, match="unknown export format"):
        write_video(tmp_path / "a.gif", frames, "gif")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected uint8 frames"):
        write_video(tmp_path / "a.mkv", frames[..., :2])
    with pytest.raises(ValueError, match="at least 1"):
        export_split(tmp_path, "val", count=0)
    assert list(tmp_path.iterdir()) == []


def test_generator_imports_no_torch() -> None:
    code = (
        "import sys, vcr_core.datasets.motion.cache as c;"
        "sys.exit('torch' in sys.modules or 'av' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
