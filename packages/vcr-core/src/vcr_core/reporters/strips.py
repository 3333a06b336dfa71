"""Strips of frames from kept clips: clean, adversarial, and their difference, amplified."""

from __future__ import annotations

import base64
import io
import json
import logging
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.errors import ComponentUnavailable
from vcr_core.manifest import table
from vcr_core.reporters.cells import MISSING
from vcr_core.reporters.rows import threat_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.summary import RunView

logger = logging.getLogger(__name__)

MIN_PANEL = 96
MAX_PANEL = 160
GAP = 2
GAP_GREY = 160
TIMES = "\u00d7"


@dataclass(frozen=True, slots=True, kw_only=True)
class StripRow:
    """One row of frames.

    Attributes:
        title: ``clean``, ``adversarial``, ``defended`` or ``difference`` with its gain.
        caption: what the model says about this clip, or how to read the row.
        uri: PNG as a ``data:`` address.
        width: width of the image in pixels.
        height: height of the image in pixels.
    """

    title: str
    caption: str
    uri: str
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The rows of one video of one run.

    Attributes:
        run: run id.
        video: video id.
        label: name of the true class.
        threat: the constraint in words.
        frames: positions of the frames shown, from 0.
        total: frames of the clip.
        note: how the pixels were scaled for display.
        rows: clean, adversarial, perhaps defended, difference.
    """

    run: str
    video: str
    label: str
    threat: str
    frames: tuple[int, ...]
    total: int
    note: str
    rows: tuple[StripRow, ...]


def kept_clips(run: RunView) -> list[Mapping[str, Any]]:
    """Return the entries of ``artifacts/clips.json``; none where nothing was kept."""
    path = run.folder / "artifacts" / "clips.json"
    if not path.is_file():
        return []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be read and is left out of the report: %s", path, error)
        return []
    if isinstance(data, Mapping):
        data = data.get("clips", [])
    return [entry for entry in data if isinstance(entry, Mapping) and entry.get("file")]


def make_strip(run: RunView, entry: Mapping[str, Any]) -> Strip | None:
    """Return the strip of one kept clip, or ``None`` where its file cannot be used.

    Raises:
        ComponentUnavailable: when numpy or Pillow is not installed.
    """
    np, _ = _imaging()
    path = run.folder / "artifacts" / _base_name(str(entry["file"]))
    try:
        with np.load(path, allow_pickle=False) as arrays:
            clips = {
                name: np.asarray(arrays[name])
                for name in ("clean", "adversarial", "defended")
                if name in arrays
            }
        _check(clips)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        logger.warning("%s cannot be read and is left out of the report: %s", path, error)
        return None
    names = (run.manifest.get("dataset") or {}).get("labels") or ()
    clean, adversarial = clips["clean"], clips["adversarial"]
    total, height, width = clean.shape[:3]
    chosen = choose_frames(total, 8 if max(height, width) <= MAX_PANEL else 4)
    scale = choose_scale(height, width)
    threat = table(run.manifest, "threat")
    norm = str(threat.get("norm", "linf"))
    eps = entry.get("eps", threat.get("eps"))
    eps = float(eps) if isinstance(eps, int | float) else None
    difference, gain = amplified_difference(clean, adversarial, eps if norm == "linf" else None)
    record = next((r for r in run.records if r.get("video") == entry.get("video")), {})
    rows = [
        _row(
            title,
            _predictions(entry.get(corner), record.get(f"{corner}_defended"), names),
            clip,
            chosen,
            scale,
        )
        for title, corner, clip in (
            ("clean", "clean", clean),
            ("adversarial", "attacked", adversarial),
        )
    ]
    if "defended" in clips:
        said = _prediction(entry.get("defended"), names)
        rows.append(_row("defended", said, clips["defended"], chosen, scale))
    title, how = ("difference", "the clips are identical")
    if gain is not None:
        title, how = f"difference {TIMES}{gain:.3g}", "mid grey means no change"
    rows.append(_row(title, how, difference, chosen, scale))
    return Strip(
        run=str(run.manifest.get("run") or run.folder.name),
        video=str(entry.get("video", path.stem)),
        label=label_name(entry.get("label"), names),
        threat=threat_text(norm, eps),
        frames=chosen,
        total=total,
        note=scale_note(scale, height, width),
        rows=tuple(rows),
    )


def choose_frames(total: int, limit: int) -> tuple[int, ...]:
    """Return up to ``limit`` evenly spaced positions out of ``total``, ends included.

    Example:
        >>> choose_frames(16, 4), choose_frames(3, 8), choose_frames(5, 1)
        ((0, 5, 10, 15), (0, 1, 2), (2,))
    """
    if limit < 1:
        return ()
    if total <= limit:
        return tuple(range(total))
    if limit == 1:
        return (total // 2,)
    return tuple(round(i * (total - 1) / (limit - 1)) for i in range(limit))


def choose_scale(height: int, width: int) -> int:
    """Return the integer factor of enlargement, or its negative for a reduction.

    The shorter side is enlarged to at least 96 pixels; frames whose shorter side is above 160
    are reduced by leaving out pixels, so that a perturbation is not averaged away.

    Example:
        >>> choose_scale(32, 32), choose_scale(112, 112), choose_scale(240, 320)
        (3, 1, -2)
    """
    side = min(height, width)
    if side < MIN_PANEL:
        return (MIN_PANEL + side - 1) // side
    return 1 if side <= MAX_PANEL else -((side + MAX_PANEL - 1) // MAX_PANEL)


def scale_note(scale: int, height: int, width: int) -> str:
    """Return how the frames were scaled, in words."""
    size = f"{width}{TIMES}{height} pixels"
    if scale == 1:
        return size
    if scale > 1:
        return f"{size}, each shown as {scale}{TIMES}{scale}"
    every = {2: "2nd", 3: "3rd"}.get(-scale, f"{-scale}th")
    return f"{size}, every {every} pixel shown"


def amplified_difference(
    clean: NDArray[np.uint8], adversarial: NDArray[np.uint8], eps: float | None
) -> tuple[NDArray[np.uint8], float | None]:
    """Return ``128 + gain·(adversarial - clean)``, clipped, and the gain.

    Args:
        clean: ``[T, H, W, 3]``.
        adversarial: same shape.
        eps: L∞ radius as a fraction of the range; the gain is then ``127 / (255·eps)``. Without
            one, or where the difference exceeds it, the clip's largest difference takes its
            place. Identical clips have no gain.
    """
    np, _ = _imaging()
    delta = adversarial.astype(np.int16) - clean.astype(np.int16)
    largest = int(np.abs(delta).max()) if delta.size else 0
    if largest == 0:
        return np.full_like(clean, 128), None
    reach = max(float(largest), 255 * eps) if eps else float(largest)
    gain = 127 / reach
    picture = np.clip(np.rint(128 + gain * delta), 0, 255).astype(np.uint8)
    return picture, gain


def label_name(index: Any, names: Sequence[str]) -> str:
    """Return a class name, the index where there is no name, a dash where there is none."""
    if not isinstance(index, int):
        return MISSING if index is None else str(index)
    return str(names[index]) if 0 <= index < len(names) else f"class {index}"


def encode_png(pixels: NDArray[np.uint8]) -> str:
    """Return ``[H, W, 3]`` uint8 as a ``data:image/png`` address."""
    _, image = _imaging()
    buffer = io.BytesIO()
    image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _row(
    title: str, caption: str, clip: NDArray[np.uint8], chosen: Sequence[int], scale: int
) -> StripRow:
    """Return one row; frames of another size than the clip's are shown at their own scale."""
    np, _ = _imaging()
    frames = [resize(clip[min(i, len(clip) - 1)], scale) for i in chosen]
    height, width = frames[0].shape[:2]
    canvas = np.full((height, len(frames) * (width + GAP) - GAP, 3), GAP_GREY, np.uint8)
    for position, frame in enumerate(frames):
        left = position * (width + GAP)
        canvas[:, left : left + width] = frame
    return StripRow(
        title=title,
        caption=caption,
        uri=encode_png(canvas),
        width=canvas.shape[1],
        height=canvas.shape[0],
    )


def resize(frame: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
    """Enlarge by repeating pixels, or reduce by leaving pixels out."""
    if scale > 1:
        return frame.repeat(scale, axis=0).repeat(scale, axis=1)
    return frame if scale == 1 else frame[::-scale, ::-scale]


def _prediction(corner: Any, names: Sequence[str]) -> str:
    """Return ``"clap 0.97"``, with the true class's probability where the answer is another."""
    if isinstance(corner, list | tuple):
        corner = corner[0] if corner else None
    if not isinstance(corner, Mapping):
        return ""
    if corner.get("pred") is None:
        return "no prediction: the defense abstained" if corner.get("abstained") else ""
    text = f"predicted {label_name(corner['pred'], names)}"
    if isinstance(corner.get("p_pred"), int | float):
        text += f", p = {corner['p_pred']:.2f}"
    p_label, p_pred = corner.get("p_label"), corner.get("p_pred")
    if isinstance(p_label, int | float) and p_label != p_pred:
        text += f"; true class p = {p_label:.2f}"
    return text


def _predictions(bare: Any, defended: Any, names: Sequence[str]) -> str:
    """Return what the model says, and what it says behind the defense where there is one."""
    behind = _prediction(defended, names)
    if not behind:
        return _prediction(bare, names)
    return f"bare model: {_prediction(bare, names)}. Defended: {behind}"


def _check(clips: Mapping[str, NDArray[Any]]) -> None:
    """Raise ``ValueError`` unless the arrays are what the engine writes."""
    for name in ("clean", "adversarial"):
        if name not in clips:
            raise ValueError(f"no array {name!r}")
    for name, clip in clips.items():
        if clip.ndim != 4 or clip.shape[-1] != 3 or clip.dtype.name != "uint8" or not clip.size:
            raise ValueError(f"{name!r} is {clip.dtype} {clip.shape}, not uint8 [T, H, W, 3]")
    if clips["clean"].shape != clips["adversarial"].shape:
        raise ValueError("'clean' and 'adversarial' differ in shape")


def _base_name(file: str) -> str:
    """Return the last part of a path, so that a sidecar cannot point outside its folder."""
    return file.replace("\\", "/").rsplit("/", 1)[-1]


def _imaging() -> tuple[Any, Any]:
    """Return numpy and ``PIL.Image``."""
    try:
        import numpy
        from PIL import Image
    except ImportError as error:
        raise ComponentUnavailable(
            f"the frame strips of the HTML report need {error.name}: pip install 'vcr-core[report]'"
        ) from error
    return numpy, Image
