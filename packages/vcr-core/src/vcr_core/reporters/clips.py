"""Clips that a run kept, with what the models said about them, ready to be shown."""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import median
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

TIMES = "\u00d7"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """One version of a clip.

    Attributes:
        title: ``clean``, ``adversarial``, ``defended`` or ``difference`` with its gain.
        caption: what the model says about this version, or how to read it.
        frames: ``[T, H, W, 3]`` uint8.
    """

    title: str
    caption: str
    frames: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptClip:
    """All versions of one video of one run.

    Attributes:
        run: run id.
        video: video id.
        label: name of the true class.
        threat: the constraint in words.
        rate: frames a second of the clip as the model saw it, or ``None`` where that is unknown.
        views: clean, adversarial, perhaps defended, difference.
    """

    run: str
    video: str
    label: str
    threat: str
    rate: float | None
    views: tuple[View, ...]

    @property
    def total(self) -> int:
        """Frames of the clip."""
        return len(self.views[0].frames)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the clean clip."""
        height, width = self.views[0].frames.shape[1:3]
        return height, width


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


def load_clip(run: RunView, entry: Mapping[str, Any]) -> KeptClip | None:
    """Return one kept clip, or ``None`` where its file cannot be used.

    Raises:
        ComponentUnavailable: when numpy or Pillow is not installed.
    """
    np, _ = imaging()
    path = run.folder / "artifacts" / _base_name(str(entry["file"]))
    try:
        # A damaged file is left open where numpy opened it.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
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
    threat = table(run.manifest, "threat")
    norm = str(threat.get("norm", "linf"))
    eps = entry.get("eps", threat.get("eps"))
    eps = float(eps) if isinstance(eps, int | float) else None
    record = next((r for r in run.records if r.get("video") == entry.get("video")), {})
    views = [
        View(
            title=title,
            caption=_predictions(entry.get(corner), record.get(f"{corner}_defended"), names),
            frames=clips[title],
        )
        for title, corner in (("clean", "clean"), ("adversarial", "attacked"))
    ]
    if "defended" in clips:
        said = prediction_text(entry.get("defended"), names)
        views.append(View(title="defended", caption=said, frames=clips["defended"]))
    views.append(_difference(clips, eps if norm == "linf" else None))
    return KeptClip(
        run=str(run.manifest.get("run") or run.folder.name),
        video=str(entry.get("video", path.stem)),
        label=label_name(entry.get("label"), names),
        threat=threat_text(norm, eps),
        rate=_rate(record.get("input")),
        views=tuple(views),
    )


def _difference(clips: Mapping[str, NDArray[np.uint8]], eps: float | None) -> View:
    frames, gain = amplified_difference(clips["clean"], clips["adversarial"], eps)
    if gain is None:
        return View(title="difference", caption="the clips are identical", frames=frames)
    return View(
        title=f"difference {TIMES}{gain:.3g}", caption="mid grey means no change", frames=frames
    )


def _rate(source: Any) -> float | None:
    """Return the rate of the sampled frames: that of the file over the usual step."""
    if not isinstance(source, Mapping):
        return None
    try:
        fps = float(Fraction(str(source.get("fps"))))
    except (ValueError, ZeroDivisionError):
        return None
    steps = [b - a for a, b in pairwise(source.get("indices") or ()) if b > a]
    return fps / median(steps) if steps and fps > 0 else None


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
    np, _ = imaging()
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


def prediction_text(corner: Any, names: Sequence[str]) -> str:
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
    behind = prediction_text(defended, names)
    if not behind:
        return prediction_text(bare, names)
    return f"bare model: {prediction_text(bare, names)}. Defended: {behind}"


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


def imaging() -> tuple[Any, Any]:
    """Return numpy and ``PIL.Image``."""
    try:
        import numpy
        from PIL import Image
    except ImportError as error:
        raise ComponentUnavailable(
            f"the clips of the HTML report need {error.name}: pip install 'vcr-core[report]'"
        ) from error
    return numpy, Image
