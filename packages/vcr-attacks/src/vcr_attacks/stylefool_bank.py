"""The bank of styles: collecting pictures beforehand, and choosing one for each video."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from safetensors.torch import load, save
from torch.nn.functional import interpolate
from vcr_core.atomic import write_bytes, write_json
from vcr_core.errors import NotAvailable
from vcr_core.protocols import TrainingBatch
from vcr_core.video.decoding import decode_pass
from vcr_core.video.frames_dir import frame_files

from vcr_attacks.stylefool_colours import distances, is_dull, theme

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import PrepareContext

    from vcr_attacks.params.prepared import StylefoolParams

PICTURES_FILE: Final = "pictures.safetensors"
STARTS_FILE: Final = "starts.safetensors"
REPORT_FILE: Final = "bank.json"
PARTS: Final = "parts"

_FRAMES: Final = 3
"""Pictures taken of each training video."""


@dataclass(frozen=True, slots=True)
class StyleBank:
    """Pictures to take a style from, and videos of classes to begin at.

    Attributes:
        pictures: ``[3, h, w]`` uint8 each.
        labels: ``[N]`` int64, class of the video that a picture is from, -1 for other pictures.
        chances: ``[N, K]``, the model's probabilities of that video, or of the picture as a still.
        themes: ``[N, 3, 3]``, see :func:`~vcr_attacks.stylefool_colours.theme`.
        starts: ``[T, C, H, W]`` uint8 by class.
    """

    pictures: list[Tensor]
    labels: Tensor
    chances: Tensor
    themes: Tensor
    starts: dict[int, Tensor] = field(default_factory=dict)

    def choice(self, video: Tensor, label: int, target: int | None, weight: float) -> int:
        """Return which picture's style a video gets.

        Untargeted, the one with the nearest theme among those of other classes; a picture without a
        class has the one that the model sees in it. Targeted, the least ``distance + weight * (1 -
        chance of the target)`` among pictures of the target class, or among all where there is none
        of it.

        Args:
            video: ``[T, 3, H, W]`` in [0, 1].
            label: its class.
            target: the class wanted, if any.
            weight: of the model's confidence, the paper's mu.
        """
        cost = distances(theme(video), self.themes.to(video))
        if target is None:
            seen = torch.where(self.labels < 0, self.chances.argmax(dim=1), self.labels)
            fitting = seen != label
        else:
            cost = cost + weight * (1 - self.chances[:, target]).to(cost)
            fitting = self.labels == target
        if bool(fitting.any()):
            cost = cost.masked_fill(~fitting.to(cost.device), torch.inf)
        return int(cost.argmin())


def read_bank(folder: Path | None) -> StyleBank:
    """Return what :func:`collect` wrote.

    Raises:
        NotAvailable: if there is nothing.
    """
    if folder is None or not (folder / REPORT_FILE).is_file():
        raise NotAvailable(
            "attack stylefool has no styles to choose from; collect them with 'vcr prepare "
            "stylefool' and the options of the run"
        )
    kept = load((folder / PICTURES_FILE).read_bytes())
    pictures = [kept[f"picture-{i:05d}"] for i in range(len(kept["labels"]))]
    starts: dict[int, Tensor] = {}
    if (folder / STARTS_FILE).is_file():
        stored = load((folder / STARTS_FILE).read_bytes())
        starts = {int(name): clip for name, clip in stored.items()}
    return StyleBank(pictures, kept["labels"], kept["chances"], kept["themes"], starts)


def collect(params: StylefoolParams, ctx: PrepareContext) -> None:
    """Write pictures with classes, chances and themes, and a start for each target class.

    Costs one forward pass a training video, one a picture of ``styles`` other than ``videos``.

    Raises:
        NotAvailable: if ``styles`` names a folder that holds no readable picture.
    """
    _Collection(params, ctx).run()


class _Collection:
    def __init__(self, params: StylefoolParams, ctx: PrepareContext) -> None:
        self.params = params
        self.ctx = ctx
        self.parts = ctx.folder / PARTS
        self.own = params.styles == "videos"
        # Only a targeted search without a norm begins at another video.
        self.starting = ctx.targets is not None and ctx.threat.norm == "none"
        self.pictures = [] if self.own else style_pictures(params.styles)

    def run(self) -> None:
        """Ask about what no earlier call asked about, then put everything together."""
        self.parts.mkdir(exist_ok=True)
        jobs: list[tuple[str, int]] = [("picture", i) for i in range(len(self.pictures))]
        if self.own or self.starting:
            jobs += [("video", i) for i in range(len(self.ctx.items))]
        for done, (kind, index) in enumerate(jobs, start=1):
            place = self.parts / f"{kind}-{index:05d}.safetensors"
            if not place.exists():
                found = self._video(index) if kind == "video" else self._picture(index)
                write_bytes(place, save({k: v.cpu().contiguous() for k, v in found.items()}))
            self.ctx.progress(done, len(jobs))
        self._finish([(kind, index, self._part(kind, index)) for kind, index in jobs])
        shutil.rmtree(self.parts)

    def _part(self, kind: str, index: int) -> dict[str, Tensor]:
        return load((self.parts / f"{kind}-{index:05d}.safetensors").read_bytes())

    def _video(self, index: int) -> dict[str, Tensor]:
        """Return the chances of a training video, and pictures from it if they are wanted."""
        (batch,) = self.ctx.load([self.ctx.items[index]])
        found = {"chances": self.ctx.victim(batch).scores(batch.videos)[0].exp()}
        if self.own:
            frames = batch.videos[0]
            for number in range(min(_FRAMES, len(frames))):
                frame = frames[(2 * number + 1) * len(frames) // (2 * _FRAMES)]
                found[f"frame-{number}"] = self._shrunk(frame)
        return found

    def _picture(self, index: int) -> dict[str, Tensor]:
        """Return a picture and the chances of a video that shows nothing else."""
        (like,) = self.ctx.load(self.ctx.items[:1])
        _, frames, _, height, width = like.videos.shape
        picture = self.pictures[index].to(like.videos) / 255
        shown = interpolate(picture[None], (height, width), mode="bilinear", antialias=True)
        video = shown.clamp(0, 1).unsqueeze(1).expand(1, frames, -1, -1, -1).clone()
        still = TrainingBatch((f"style:{index}",), video, like.labels[:1], like.gather)
        chances = self.ctx.victim(still).scores(still.videos)[0].exp()
        return {"chances": chances, "frame-0": self._shrunk(picture)}

    def _shrunk(self, picture: Tensor) -> Tensor:
        """Return a picture as 8 bits, its shorter side at most ``style_side``."""
        height, width = picture.shape[-2:]
        scale = self.params.style_side / min(height, width)
        if scale < 1:
            size = (round(height * scale), round(width * scale))
            picture = interpolate(picture[None], size, mode="bilinear", antialias=True)[0]
        return (picture * 255).round().clamp(0, 255).to(torch.uint8)

    def _finish(self, parts: list[tuple[str, int, dict[str, Tensor]]]) -> None:
        listed = [
            (part[name], self._label(kind, index), part["chances"])
            for kind, index, part in parts
            for name in sorted(part)
            if name.startswith("frame-")
        ]
        bright = [entry for entry in listed if not (self.own and is_dull(entry[0] / 255))]
        chosen = bright or listed
        tensors = {
            "labels": torch.tensor([label for _, label, _ in chosen]),
            "chances": torch.stack([chances for _, _, chances in chosen]),
            "themes": torch.stack([theme(p.unsqueeze(0) / 255) for p, _, _ in chosen]),
        }
        tensors |= {f"picture-{i:05d}": entry[0] for i, entry in enumerate(chosen)}
        write_bytes(self.ctx.folder / PICTURES_FILE, save(tensors))
        starts = self._starts(parts) if self.starting else {}
        if starts:
            write_bytes(self.ctx.folder / STARTS_FILE, save(starts))
        facts: dict[str, Any] = {
            "styles": self.params.styles,
            "pictures": len(chosen),
            "left_out": len(listed) - len(chosen),
            "classes": sorted({label for _, label, _ in chosen if label >= 0}),
            "starts": sorted(int(name) for name in starts),
        }
        self.ctx.facts.update(facts)
        write_json(self.ctx.folder / REPORT_FILE, facts)

    def _label(self, kind: str, index: int) -> int:
        return self.ctx.items[index].label if kind == "video" else -1

    def _starts(self, parts: list[tuple[str, int, dict[str, Tensor]]]) -> dict[str, Tensor]:
        """Return, of each class that the run may be after, the video the model is surest of."""
        best: dict[int, tuple[float, int]] = {}
        for kind, index, part in parts:
            if kind != "video":
                continue
            label = self.ctx.items[index].label
            chance = float(part["chances"][label])
            right = int(part["chances"].argmax()) == label
            wanted = right and label in (self.ctx.targets or ())
            if wanted and chance > best.get(label, (0.0, 0))[0]:
                best[label] = (chance, index)
        starts: dict[str, Tensor] = {}
        for label, (_, index) in sorted(best.items()):
            (batch,) = self.ctx.load([self.ctx.items[index]])
            levels = (batch.videos[0] * 255).round().clamp(0, 255)
            starts[str(label)] = levels.to(torch.uint8).cpu().contiguous()
        return starts


def style_pictures(styles: str) -> list[Tensor]:
    """Return the bundled pictures or those of a folder, ``[3, h, w]`` uint8, by name.

    Args:
        styles: ``bundled``, or a path.

    Raises:
        VideoReadError: for a folder without pictures, or a picture that cannot be read.
    """
    if styles != "bundled":
        return [_decoded(path) for path in frame_files(Path(styles).expanduser())]
    with as_file(files("vcr_attacks") / "styles") as folder:
        return [_decoded(path) for path in frame_files(folder)]


def _decoded(path: Path) -> Tensor:
    found = decode_pass(path, np.zeros(1, dtype=np.int64), stop_after=0)
    if found.error is not None or found.frames is None:
        raise NotAvailable(f"attack stylefool: the style picture {path} does not decode")
    return torch.from_numpy(found.frames[0].copy()).permute(2, 0, 1).contiguous()
