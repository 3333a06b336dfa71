"""SynthMotion clips, generator version ``motion/v1``.

A clip is a pure function of ``(base_seed, split, index, frames, size, hardness)``: it draws from
its own generator, so clips may be made alone, in any order and in any process. A drawn
distribution never changes under the same version.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from vcr_core.datasets.motion.labels import APPEARANCE_LABELS, MOTION_LABELS
from vcr_core.datasets.motion.shapes import ASYMMETRIC_SHAPES, signed_distance
from vcr_core.datasets.motion.textures import contrasting_base, draw_texture, wave_field
from vcr_core.datasets.motion.trajectory import Pose, Trajectory, draw_pose, draw_trajectory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vcr_core.datasets.motion.textures import Texture

    Float = NDArray[np.float32]
    Double = NDArray[np.float64]

GENERATOR_VERSION: Final = "motion/v1"
DEFAULT_SEED: Final = 0

SPLITS: Final[dict[str, tuple[int, int]]] = {"train": (1, 3200), "val": (2, 480), "test": (3, 960)}
"""Split name to (stream code, default number of clips)."""

TINY_SIZES: Final[dict[str, int]] = {"train": 160, "val": 64, "test": 64}
"""Numbers of clips of the ``tiny`` variant; its clips are the first ones of the full splits."""

_JITTER = 0.004
_DRIFT = 0.08
_NOISE = 0.02


@dataclass(frozen=True, slots=True)
class MotionClip:
    """One labelled clip.

    Attributes:
        frames: ``[T, S, S, 3]`` uint8 RGB.
        motion: index into ``MOTION_LABELS``.
        shape: index into ``APPEARANCE_LABELS``.
    """

    frames: NDArray[np.uint8]
    motion: int
    shape: int


@dataclass(frozen=True, slots=True)
class _Distractor:
    shape: int
    pose: Pose
    colour: Double


@dataclass(frozen=True, slots=True)
class _Scene:
    """Every draw of a clip except the sensor noise."""

    shape: int
    trajectory: Trajectory
    jitter: Double
    gain: Double
    distractors: tuple[_Distractor, ...]
    background: Texture
    texture: Texture
    base: Double


def split_size(split: str, *, tiny: bool = False) -> int:
    """Default number of clips of a split.

    Raises:
        ValueError: unknown split.
    """
    _split_code(split)
    return TINY_SIZES[split] if tiny else SPLITS[split][1]


def clip_id(split: str, index: int) -> str:
    """Name of a clip, for instance ``motion-v1-test-000123``.

    Raises:
        ValueError: unknown split.
    """
    _split_code(split)
    return f"{GENERATOR_VERSION.replace('/', '-')}-{split}-{index:06d}"


def clip_labels(split: str, index: int, *, base_seed: int = DEFAULT_SEED) -> tuple[int, int]:
    """Motion and shape label of a clip without drawing its pixels (microseconds).

    Args:
        split: ``train``, ``val`` or ``test``.
        index: clip number, at least 0.
        base_seed: seed of the whole data set.

    Raises:
        ValueError: unknown split or negative index.
    """
    rng = _clip_rng(split, index, base_seed)
    motion = index % len(MOTION_LABELS)
    return motion, _draw_shape(motion, rng)


def generate_clip(
    split: str,
    index: int,
    *,
    base_seed: int = DEFAULT_SEED,
    frames: int = 16,
    size: int = 64,
    hardness: float = 1.0,
) -> MotionClip:
    """Draw one clip.

    Args:
        split: ``train``, ``val`` or ``test``; the splits never share a random stream.
        index: clip number, at least 0; the motion label is ``index % 16``.
        base_seed: seed of the whole data set.
        frames: number of frames T, 2..32; a movement always spans the whole clip.
        size: frame side S in pixels, 16..112.
        hardness: factor on camera jitter, gain drift and sensor noise, at least 0.

    Raises:
        ValueError: unknown split or a number out of range.

    Example:
        >>> clip = generate_clip("val", 17, frames=8, size=32)
        >>> clip.frames.shape, clip.motion
        ((8, 32, 32, 3), 1)
    """
    _check_geometry(frames, size, hardness)
    rng = _clip_rng(split, index, base_seed)
    motion = index % len(MOTION_LABELS)
    scene = _draw_scene(motion, frames, hardness, rng)
    image = _render(scene, frames, size)
    noise = rng.standard_normal((frames, 3, size, size), dtype=np.float32)
    image += noise * np.float32(_NOISE * hardness)
    np.clip(image, 0.0, 1.0, out=image)
    image *= np.float32(255.0)
    pixels = np.rint(image, out=image).astype(np.uint8).transpose(0, 2, 3, 1)
    return MotionClip(np.ascontiguousarray(pixels), motion, scene.shape)


def _split_code(split: str) -> int:
    if split not in SPLITS:
        msg = f"unknown split {split!r}; expected one of {', '.join(SPLITS)}"
        raise ValueError(msg)
    return SPLITS[split][0]


def _clip_rng(split: str, index: int, base_seed: int) -> np.random.Generator:
    code = _split_code(split)
    if index < 0 or base_seed < 0:
        msg = f"index and base_seed must not be negative, got {index} and {base_seed}"
        raise ValueError(msg)
    # PCG64 by name: default_rng may change its bit generator, the version must not.
    return np.random.Generator(np.random.PCG64([base_seed, code, index]))


def _check_geometry(frames: int, size: int, hardness: float) -> None:
    if not 2 <= frames <= 32:
        msg = f"frames must be in 2..32, got {frames}"
        raise ValueError(msg)
    if not 16 <= size <= 112:
        msg = f"size must be in 16..112, got {size}"
        raise ValueError(msg)
    if not (math.isfinite(hardness) and hardness >= 0.0):
        msg = f"hardness must be finite and not negative, got {hardness}"
        raise ValueError(msg)


def _draw_shape(motion: int, rng: np.random.Generator) -> int:
    if MOTION_LABELS[motion].startswith("rotate"):
        return ASYMMETRIC_SHAPES[int(rng.integers(len(ASYMMETRIC_SHAPES)))]
    return int(rng.integers(len(APPEARANCE_LABELS)))


def _draw_scene(motion: int, frames: int, hardness: float, rng: np.random.Generator) -> _Scene:
    # The order of the draws is part of the version.
    shape = _draw_shape(motion, rng)
    pose = draw_pose(rng)
    trajectory = draw_trajectory(motion, pose, frames, rng)
    jitter = np.cumsum(rng.normal(0.0, _JITTER * hardness, size=(frames, 2)), axis=0)
    cycles = rng.uniform(0.3, 1.0)
    drift_phase = rng.uniform(0.0, 2.0 * math.pi)
    t = np.linspace(0.0, 1.0, frames)
    gain = 1.0 + _DRIFT * hardness * np.sin(2.0 * math.pi * cycles * t + drift_phase)
    distractors = tuple(_draw_distractor(rng) for _ in range(int(rng.integers(3))))
    background = draw_texture(rng, 1.5, 6.0)
    texture = draw_texture(rng, 0.6, 2.5)
    base = contrasting_base(background.base, texture.base)
    return _Scene(shape, trajectory, jitter, gain, distractors, background, texture, base)


def _draw_distractor(rng: np.random.Generator) -> _Distractor:
    shape = int(rng.integers(len(APPEARANCE_LABELS)))
    radius = rng.uniform(0.06, 0.12)
    x, y = rng.uniform(0.1, 0.9, size=2)
    angle = rng.uniform(0.0, 2.0 * math.pi)
    colour = rng.uniform(0.0, 1.0, size=3)
    return _Distractor(shape, Pose(radius, float(x), float(y), angle, 0.0, 0.0), colour)


def _render(scene: _Scene, frames: int, size: int) -> Float:
    """Noise-free clip ``[T, 3, S, S]`` float32, not yet clipped to [0, 1]."""
    ones = np.ones(frames)
    zeros = np.zeros(frames)
    pixel = 1.0 / size
    first = 0.5 * pixel - scene.jitter
    step_x = np.stack([pixel * ones, zeros], axis=1)
    step_y = np.stack([zeros, pixel * ones], axis=1)
    image = wave_field(scene.background, first, step_x, step_y, size)
    image += scene.background.base.astype(np.float32)[:, None, None]
    for item in scene.distractors:
        still = Trajectory(
            x=item.pose.centre_x * ones,
            y=item.pose.centre_y * ones,
            angle=item.pose.angle * ones,
            radius=item.pose.radius * ones,
            opacity=ones,
        )
        alpha = _coverage(item.shape, still, scene.jitter, size)
        colour = item.colour.astype(np.float32)[:, None, None]
        image += alpha[:, None] * (colour - image)
    alpha = _coverage(scene.shape, scene.trajectory, scene.jitter, size)
    origin, object_x, object_y = _object_axes(scene.trajectory, scene.jitter, size)
    surface = wave_field(scene.texture, origin, object_x, object_y, size)
    surface += scene.base.astype(np.float32)[:, None, None]
    surface -= image
    surface *= alpha[:, None]
    image += surface
    image *= scene.gain.astype(np.float32)[:, None, None, None]
    return image


def _object_axes(path: Trajectory, jitter: Double, size: int) -> tuple[Double, Double, Double]:
    """Object coordinates of the first pixel and their change per column and row, ``[T, 2]``."""
    cos, sin = np.cos(path.angle), np.sin(path.angle)
    step = 1.0 / (size * path.radius)
    step_x = np.stack([cos * step, -sin * step], axis=1)
    step_y = np.stack([sin * step, cos * step], axis=1)
    left = (0.5 - (path.x + jitter[:, 0]) * size)[:, None]
    top = (0.5 - (path.y + jitter[:, 1]) * size)[:, None]
    return left * step_x + top * step_y, step_x, step_y


def _coverage(shape: int, path: Trajectory, jitter: Double, size: int) -> Float:
    """Anti-aliased coverage times opacity, ``[T, S, S]`` float32 in [0, 1]."""
    origin, step_x, step_y = _object_axes(path, jitter, size)
    pixel = np.arange(size)
    along_x = origin[:, None, :] + step_x[:, None, :] * pixel[:, None]
    along_y = step_y[:, None, :] * pixel[:, None]
    u = (along_x[:, None, :, 0] + along_y[:, :, None, 0]).astype(np.float32)
    v = (along_x[:, None, :, 1] + along_y[:, :, None, 1]).astype(np.float32)
    distance = signed_distance(shape, u, v)
    distance *= -(path.radius * size).astype(np.float32)[:, None, None]
    distance += np.float32(0.5)
    np.clip(distance, 0.0, 1.0, out=distance)
    distance *= path.opacity.astype(np.float32)[:, None, None]
    return distance
