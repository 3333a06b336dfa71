"""Files for looking at: all versions of a video side by side, and the amplified difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vcr_core.atomic import write_bytes
from vcr_core.export_videos.panels import Panel, side_by_side
from vcr_core.reporters.clips import amplified_difference, label_name

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.export_videos.judge import Reached
    from vcr_core.export_videos.layout import Layouts
    from vcr_core.export_videos.sources import Pair
    from vcr_core.summary import RunView
    from vcr_core.video.preview import PreviewFormat

SLOWEST: Final = 4
FASTEST: Final = 60
USUAL: Final = 8
"""Frames a second where the source does not say."""

_METRICS_SHOWN: Final = 2


def write_previews(
    folder: Path,
    run: RunView,
    record: Mapping[str, Any],
    pair: Pair,
    layouts: Layouts,
    reached: Reached | None,
    formats: Sequence[PreviewFormat],
    *,
    eps: float | None,
) -> list[str]:
    """Write previews of one video and return the names of the files.

    Args:
        folder: where to write.
        run: the run.
        record: the video's record.
        pair: its frames.
        layouts: how they were sampled.
        reached: what the defenses let through, if there are any.
        formats: one file of each for each picture; nothing is written if empty.
        eps: L-infinity radius, a fraction of the range; ``None`` for other constraints.

    Raises:
        ComponentUnavailable: if Pillow is not installed.
    """
    from vcr_core.video.preview import encode_preview

    if not formats:
        return []
    panels = panels_of(run, record, pair, layouts, reached, eps=eps)
    pictures = {"side-by-side": panels}
    if panels[-1].lines[0].startswith("difference"):
        pictures["difference"] = [panels[-1]]
    rate = _rate(layouts.attacked.fps)
    names = []
    for name, shown in pictures.items():
        frames = side_by_side(shown)
        for format_ in formats:
            path = folder / f"{name}_preview.{format_}"
            write_bytes(path, encode_preview(frames, rate, format=format_))
            names.append(path.name)
    return names


def panels_of(
    run: RunView,
    record: Mapping[str, Any],
    pair: Pair,
    layouts: Layouts,
    reached: Reached | None,
    *,
    eps: float | None,
) -> list[Panel]:
    """Return the panels: clean, adversarial, defended and difference, where they exist.

    Arguments as those of :func:`write_previews`.
    """
    names = (run.manifest.get("dataset") or {}).get("labels") or ()
    clean, adversarial = pair.clean, pair.adversarial
    if reached is not None and not (layouts.clean.is_plain and layouts.attacked.is_plain):
        # The defenses saw clips; the others are shown in the same cut.
        clean = clean[list(layouts.clean.played)]
        adversarial = adversarial[list(layouts.attacked.played)]
    who = "predicted" if reached is None else "bare model"
    panels = [
        Panel(
            _lines(
                "clean",
                _said(record.get("clean"), names, who),
                f"true class: {label_name(record.get('label'), names)}",
            ),
            clean,
        ),
        Panel(
            _lines(
                f"after {run.attack}",
                _said(record.get("attacked"), names, who),
                _target(record, names),
                _metrics(record),
            ),
            adversarial,
        ),
    ]
    if reached is not None:
        draws = record.get("attacked_defended") or [None]
        lines = _lines(
            f"as {' + '.join(run.defenses)} leaves it",
            _said(draws[0], names, "predicted"),
            f"the first of {len(draws)} draws" if len(draws) > 1 else "",
            f"the first of {reached.others + 1} versions" if reached.others else "",
        )
        panels.append(Panel(lines, reached.frames))
    if is_aligned(record) and clean.shape == adversarial.shape:
        panels.append(_difference(clean, adversarial, eps))
    return panels


def is_aligned(record: Mapping[str, Any]) -> bool:
    """Return whether the frames of both versions belong together one by one."""
    return record.get("status") == "ineligible" or record.get("perturbation") is not None


def _difference(
    clean: NDArray[np.uint8], adversarial: NDArray[np.uint8], eps: float | None
) -> Panel:
    """Return ``128 + gain * difference``; the gain is that of the radius where there is one."""
    frames, gain = amplified_difference(clean, adversarial, eps)
    if gain is None:
        return Panel(("difference", "there is none"), frames)
    return Panel((f"difference, amplified x {gain:.3g}", "mid gray: no change"), frames)


def _lines(*lines: str) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


def _said(corner: Any, names: Sequence[str], who: str) -> str:
    """Return what is predicted and how surely."""
    if not isinstance(corner, Mapping):
        return ""
    if corner.get("pred") is None:
        return "no prediction: the defense abstained"
    text = f"{who}: {label_name(corner['pred'], names)}"
    p = corner.get("p_pred")
    return f"{text}, p = {p:.3f}" if isinstance(p, int | float) else text


def _target(record: Mapping[str, Any], names: Sequence[str]) -> str:
    if record.get("target") is not None:
        return f"target: {label_name(record['target'], names)}"
    return "not attacked: predicted wrongly before" if record.get("status") == "ineligible" else ""


def _metrics(record: Mapping[str, Any]) -> str:
    found = []
    for name, reading in (record.get("metrics") or {}).items():
        value = reading.get("value") if isinstance(reading, Mapping) else None
        if isinstance(value, int | float):
            found.append(f"{name} {value:.3g}")
    return ", ".join(found[:_METRICS_SHOWN])


def _rate(fps: Fraction | None) -> float:
    return USUAL if fps is None else min(max(float(fps), SLOWEST), FASTEST)
