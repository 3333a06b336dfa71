"""Label names of SynthMotion and the exact label maps of its symmetries."""

from __future__ import annotations

from typing import Final, Literal

LabelMode = Literal["motion", "appearance", "joint"]

MOTION_LABELS: Final[tuple[str, ...]] = (
    "left",
    "right",
    "up",
    "down",
    "rotate_cw",
    "rotate_ccw",
    "expand",
    "shrink",
    "swing_h",
    "swing_v",
    "orbit_cw",
    "orbit_ccw",
    "blink",
    "fade_in",
    "fade_out",
    "still",
)
"""Motion classes in index order. Image y points down, so ``cw`` means a growing angle."""

APPEARANCE_LABELS: Final[tuple[str, ...]] = (
    "disc",
    "square",
    "triangle",
    "plus",
    "ring",
    "star",
    "bar",
    "crescent",
)
"""Shape classes in index order, drawn independently of the motion."""

JOINT_LABELS: Final[tuple[str, ...]] = tuple(
    f"{motion}-{shape}" for motion in MOTION_LABELS for shape in APPEARANCE_LABELS
)
"""Pairs of motion and shape; index = motion * 8 + shape."""

_NAMES: Final[dict[LabelMode, tuple[str, ...]]] = {
    "motion": MOTION_LABELS,
    "appearance": APPEARANCE_LABELS,
    "joint": JOINT_LABELS,
}


def _permutation(*pairs: tuple[int, int]) -> tuple[int, ...]:
    table = list(range(len(MOTION_LABELS)))
    for first, second in pairs:
        table[first], table[second] = second, first
    return tuple(table)


TIME_REVERSAL: Final[tuple[int, ...]] = _permutation(
    (0, 1), (2, 3), (4, 5), (6, 7), (10, 11), (13, 14)
)
"""``TIME_REVERSAL[label]`` is the motion label of the clip played backwards."""

MIRROR_X: Final[tuple[int, ...]] = _permutation((0, 1), (4, 5), (10, 11))
"""``MIRROR_X[label]`` is the motion label of the clip with its columns reversed."""

MIRROR_Y: Final[tuple[int, ...]] = _permutation((2, 3), (4, 5), (10, 11))
"""``MIRROR_Y[label]`` is the motion label of the clip with its rows reversed."""


def label_space_id(mode: LabelMode) -> str:
    """Id of a label space, shared by the data set and by the classifiers trained on it.

    Args:
        mode: ``motion``, ``appearance`` or ``joint``.

    Raises:
        ValueError: unknown mode.
    """
    names = label_names(mode)
    return f"motion-{len(names)}" if mode == "motion" else f"motion-{mode}-{len(names)}"


def label_names(mode: LabelMode) -> tuple[str, ...]:
    """Names of a label space in index order.

    Args:
        mode: ``motion`` (16 names), ``appearance`` (8) or ``joint`` (128).

    Raises:
        ValueError: unknown mode.
    """
    if mode not in _NAMES:
        msg = f"unknown label mode {mode!r}; expected one of {', '.join(_NAMES)}"
        raise ValueError(msg)
    return _NAMES[mode]


def label_index(mode: LabelMode, motion: int, shape: int) -> int:
    """Index of a clip in a label space, from its motion and its shape.

    Args:
        mode: the label space.
        motion: motion index, 0..15.
        shape: shape index, 0..7.

    Raises:
        ValueError: unknown mode, or an index out of range.
    """
    if not 0 <= motion < len(MOTION_LABELS) or not 0 <= shape < len(APPEARANCE_LABELS):
        msg = f"motion {motion} or shape {shape} is out of range"
        raise ValueError(msg)
    indices: dict[LabelMode, int] = {
        "motion": motion,
        "appearance": shape,
        "joint": motion * len(APPEARANCE_LABELS) + shape,
    }
    if mode not in indices:
        msg = f"unknown label mode {mode!r}; expected one of {', '.join(indices)}"
        raise ValueError(msg)
    return indices[mode]
