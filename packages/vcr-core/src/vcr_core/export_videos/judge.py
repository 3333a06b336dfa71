"""The classifier of a run, with its defenses, asked again about single videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.adaptive import View
from vcr_core.components import build
from vcr_core.engine.defending import build_links, defended_model
from vcr_core.engine.draw import Draw
from vcr_core.engine.fitting import fitted_chunk
from vcr_core.engine.models import guarded_model
from vcr_core.engine.setup import Parts, build_dataset, choose_device
from vcr_core.metering import GuardedModel
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed, isolated_random_state
from vcr_core.weights.places import folders_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from vcr_core.adaptive import DefenseLink
    from vcr_core.config.experiment import Experiment
    from vcr_core.export_videos.layout import Layout
    from vcr_core.protocols import VideoClassifier


@dataclass(frozen=True, slots=True)
class Heard:
    """One prediction.

    Attributes:
        corner: as a record has it.
        probabilities: of all classes.
    """

    corner: dict[str, Any]
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of one video.

    Attributes:
        bare: by the bare model.
        defended: behind the defenses, once a draw; empty without a defense.
    """

    bare: Heard
    defended: list[Heard]


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """What defenses let through to the model.

    Attributes:
        frames: ``[V·T', H, W, 3]`` uint8, one clip after the other.
        clips: ``[V, T']``.
        others: how many more versions of the video the defenses asked the model about.
    """

    frames: NDArray[np.uint8]
    clips: tuple[int, int]
    others: int


class Judge:
    """The model and the defenses of a run.

    Args:
        experiment: what names them.
        parts: in-memory components that stand for them.

    Raises:
        ArtifactMissing: if the offline step of a defense has not been run here.
        ComponentUnavailable: if something cannot be built here.
    """

    def __init__(self, experiment: Experiment, parts: Parts | None = None) -> None:
        parts = parts or Parts()
        self._experiment = experiment
        self._device = choose_device(experiment.runtime.device)
        given = parts.model
        model = given if given is not None else build(
            experiment.model, folders_of(experiment.paths)
        )  # fmt: skip
        self.model = guarded_model(model, experiment, self._device)
        self._chunk = fitted_chunk(experiment, self.model, self._device)
        self._links = self._chain(parts)
        self._defended = defended_model(experiment, self._links, self.model, self._device)

    @property
    def is_defended(self) -> bool:
        """Whether there is a defense."""
        return bool(self._links)

    def ask(
        self, video: str, label: int, frames: NDArray[np.uint8], layout: Layout, draws: int
    ) -> Said:
        """Return the predictions on frames ``[T, H, W, 3]`` with the seeds of the run.

        Args:
            video: id, from which the draws of a random defense follow.
            label: true class.
            frames: the file's frames.
            layout: how clips are cut from them.
            draws: how often the defended model is asked.
        """
        clip = self._tensor(frames)
        bare = self._predict(self._view(self.model, layout, ()), clip, video, "clean", 0)
        view = self._view(self._defended, layout, self._links)
        defended = [
            _heard(self._predict(view, clip, video, "eval", repeat), label)
            for repeat in range(draws if self._links else 0)
        ]
        return Said(_heard(bare, label), defended)

    def reached(self, video: str, frames: NDArray[np.uint8], layout: Layout) -> Reached:
        """Return what the defenses make of a video, in the first of the run's draws.

        A defense that asks about several versions of it, as a vote does, shows the first.
        """
        recorder = _Recorder(self._defended.at_rate(layout.rate), layout)
        view = View(recorder, self._gather(layout), self._links)
        self._predict(view, self._tensor(frames), video, "eval", 0)
        return recorder.reached()

    def _chain(self, parts: Parts) -> tuple[DefenseLink, ...]:
        from vcr_core.engine.artifact import restore_defenses

        links, _ = build_links(self._experiment, parts.defenses)
        if self._experiment.prepared_defenses:
            dataset = parts.dataset if parts.dataset is not None else build_dataset(
                self._experiment
            )  # fmt: skip
            restore_defenses(self._experiment, dataset, (links,), parts)
        return links

    def _view(self, model: GuardedModel, layout: Layout, links: Sequence[DefenseLink]) -> View:
        gather = self._gather(layout)
        return View(model.at_rate(layout.rate), gather, links, chunk=self._chunk)

    def _gather(self, layout: Layout) -> Tensor:
        return torch.tensor(layout.gather, dtype=torch.int64, device=self._device)

    def _tensor(self, frames: NDArray[np.uint8]) -> Tensor:
        video = torch.from_numpy(frames).permute(0, 3, 1, 2).to(torch.float32).div_(255)
        return video.contiguous().unsqueeze(0).to(self._device)

    def _predict(self, view: View, clip: Tensor, video: str, role: str, repeat: int) -> Draw:
        seed = self._experiment.seed
        with torch.no_grad(), isolated_random_state(derive_seed(seed, video, role)):
            random = VideoRandom([derive_seed(seed, video, role, repeat)], self._device)
            return Draw(*view.detailed(clip, random))


def _heard(draw: Draw, label: int) -> Heard:
    return Heard(draw.corner(0, label), tuple(draw.scores[0].double().exp().tolist()))


class _Recorder:
    """A classifier that remembers the first clips that it is asked about."""

    def __init__(self, model: VideoClassifier, layout: Layout) -> None:
        self._model = model
        self._views = len(layout.gather)
        self._first: Tensor | None = None
        self._asked = 0
        self.labels = model.labels
        self.clip = model.clip

    def logits(self, clips: Tensor) -> Tensor:
        if self._first is None:
            self._first = clips[: self._views].detach()
        self._asked += len(clips)
        return self._model.logits(clips)

    def to(self, _device: Any) -> _Recorder:
        return self

    def reached(self) -> Reached:
        """Return the first clips in 8 bits, which may round them."""
        if self._first is None:  # pragma: no cover - a prediction asks the model
            raise RuntimeError("the model has not been asked")
        clips = self._first
        levels = (clips.flatten(0, 1) * 255).round().clamp(0, 255).to("cpu", torch.uint8)
        frames = levels.permute(0, 2, 3, 1).contiguous().numpy()
        others = max(0, self._asked // max(1, len(clips)) - 1)
        return Reached(frames, (clips.shape[0], clips.shape[1]), others)
