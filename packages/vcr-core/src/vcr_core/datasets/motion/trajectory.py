"""The pose and the opacity of the object over time: what the motion label means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vcr_core.datasets.motion.labels import MOTION_LABELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pose:
    """Draws shared by all motions.

    Attributes:
        radius: object radius as a fraction of the frame side.
        centre_x: mean position, fraction of the side.
        centre_y: mean position, fraction of the side (down is positive).
        angle: orientation in radians.
        amplitude: size of a movement, fraction of the side.
        phase: phase of periodic movements in radians.
    """

    radius: float
    centre_x: float
    centre_y: float
    angle: float
    amplitude: float
    phase: float


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One value per frame, each array ``[T]`` float64.

    Attributes:
        x: object centre, fraction of the side.
        y: object centre, fraction of the side (down is positive).
        angle: orientation in radians; growing means clockwise on screen.
        radius: fraction of the side.
        opacity: 0 (invisible) to 1.
    """

    x: Array
    y: Array
    angle: Array
    radius: Array
    opacity: Array


def draw_pose(rng: np.random.Generator) -> Pose:
    """Draw what every motion needs, always the same six numbers in the same order."""
    radius = rng.uniform(0.20, 0.32)
    centre_x, centre_y = rng.uniform(0.35, 0.65, size=2)
    angle = rng.uniform(0.0, 2.0 * math.pi)
    amplitude = rng.uniform(0.22, 0.42)
    phase = rng.uniform(0.0, 2.0 * math.pi)
    return Pose(radius, float(centre_x), float(centre_y), angle, amplitude, phase)


def draw_trajectory(label: int, pose: Pose, frames: int, rng: np.random.Generator) -> Trajectory:
    """Draw the movement of a motion class.

    Args:
        label: index into ``MOTION_LABELS``.
        pose: the shared draws.
        frames: number of frames T, at least 2; the movement always spans the whole clip.
        rng: generator of this clip.

    Raises:
        ValueError: unknown label or fewer than two frames.
    """
    if not 0 <= label < len(MOTION_LABELS):
        msg = f"unknown motion label {label}; expected 0..{len(MOTION_LABELS) - 1}"
        raise ValueError(msg)
    if frames < 2:
        msg = f"a motion needs at least 2 frames, got {frames}"
        raise ValueError(msg)
    t = np.linspace(0.0, 1.0, frames)
    s = t - 0.5
    x = np.full(frames, pose.centre_x)
    y = np.full(frames, pose.centre_y)
    angle = np.full(frames, pose.angle)
    radius = np.full(frames, pose.radius)
    opacity = np.ones(frames)
    name = MOTION_LABELS[label]
    sign = 1.0 if name in {"right", "down", "rotate_cw", "orbit_cw", "expand"} else -1.0
    if name in {"left", "right"}:
        x = x + sign * pose.amplitude * s
    elif name in {"up", "down"}:
        y = y + sign * pose.amplitude * s
    elif name in {"rotate_cw", "rotate_ccw"}:
        angle = angle + sign * rng.uniform(0.5, 1.1) * math.pi * t
    elif name in {"expand", "shrink"}:
        radius = radius * rng.uniform(1.5, 2.1) ** (sign * s)
    elif name in {"swing_h", "swing_v"}:
        cycles = rng.uniform(1.4, 2.2)
        swing = 0.45 * pose.amplitude * np.sin(2.0 * math.pi * cycles * t + pose.phase)
        x, y = (x + swing, y) if name == "swing_h" else (x, y + swing)
    elif name in {"orbit_cw", "orbit_ccw"}:
        turn = pose.phase + sign * rng.uniform(0.9, 1.3) * 2.0 * math.pi * t
        x = x + 0.4 * pose.amplitude * np.cos(turn)
        y = y + 0.4 * pose.amplitude * np.sin(turn)
    elif name == "blink":
        cycles = rng.uniform(2.0, 3.5)
        opacity = (np.sin(2.0 * math.pi * cycles * t + pose.phase) >= 0.0).astype(np.float64)
    elif name in {"fade_in", "fade_out"}:
        ramp = t if name == "fade_in" else 1.0 - t
        opacity = np.clip(rng.uniform(0.05, 0.2) + 0.9 * ramp, 0.0, 1.0)
    return Trajectory(x=x, y=y, angle=angle, radius=radius, opacity=opacity)
