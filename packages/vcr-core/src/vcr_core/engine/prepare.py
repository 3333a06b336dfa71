"""Offline steps of attacks and defenses: making what a run will read."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch

from vcr_core.adaptive import View
from vcr_core.artifacts import (
    SPENT_FILE,
    Artifact,
    ArtifactDamaged,
    ArtifactMissing,
    Wanted,
    find_artifact,
    finish_artifact,
)
from vcr_core.atomic import write_json
from vcr_core.availability import installed_version
from vcr_core.engine.artifact import (
    needs_artifact,
    target_classes,
    wanted_artifact,
    wanted_for_defenses,
    weights_hash,
)
from vcr_core.engine.decode import decode
from vcr_core.engine.fitting import fitted_chunk
from vcr_core.engine.setup import Parts, Setup, build_dataset, build_setup
from vcr_core.errors import ContractViolation, UsageError, VcrError
from vcr_core.manifest import utc_now
from vcr_core.preparing import Bare, plain_victim, stacked
from vcr_core.protocols import Preparable, PrepareContext
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed, isolated_random_state
from vcr_core.weights.places import folders_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.decode import Decoded
    from vcr_core.protocols import TrainingBatch, VideoClassifier, VideoDataset, VideoItem
    from vcr_core.victim import Meter

logger = logging.getLogger(__name__)

TIME_LIMIT_S = 24 * 3600.0
MAX_ITERATIONS = 1_000_000
"""Hard limits of an offline step; what stops here goes on with the next call."""

KEPT_BYTES = 1 << 30
"""Decoded training videos that are kept in memory."""

ProgressFn = Callable[[int, int], None]


class PrepareStopped(VcrError):
    """An offline step reached a limit or was asked to stop; it can go on later."""

    def __init__(self, message: str, *, interrupted: bool = False) -> None:
        super().__init__(message)
        self.interrupted = interrupted
        self.exit_code = 130 if interrupted else 1


@dataclass(frozen=True, slots=True)
class Limits:
    """When an offline step is stopped.

    Attributes:
        seconds: wall-clock time of one call.
        iterations: iterations of one call.
        stop: asked after every iteration; true stops.
    """

    seconds: float = TIME_LIMIT_S
    iterations: int = MAX_ITERATIONS
    stop: Callable[[], bool] = lambda: False


def prepare_artifact(
    experiment: Experiment,
    *,
    parts: Parts | None = None,
    limits: Limits | None = None,
    progress: ProgressFn = lambda _done, _total: None,
    again: bool = False,
) -> tuple[Artifact, bool]:
    """Make the artifact of an experiment's attack, or go on with it, unless it is there.

    Args:
        experiment: a run that will read it.
        parts: in-memory components.
        limits: when to stop.
        progress: told ``(done, total)`` iterations.
        again: make it anew.

    Returns:
        The artifact, and whether this call made it.

    Raises:
        UsageError: if the experiment needs none.
        PrepareStopped: at a limit; another call goes on.
    """
    parts, dataset = _with_dataset(experiment, parts)
    if experiment.source is not None:
        experiment, parts = experiment.attack_run, parts.of_source()
    wanted = wanted_artifact(experiment, dataset, parts)
    if wanted is None:
        raise UsageError(_nothing_to_prepare(experiment))
    return _made(experiment, parts, wanted, None, limits or Limits(), progress, again=again)


def prepare_all(
    experiment: Experiment,
    *,
    parts: Parts | None = None,
    limits: Limits | None = None,
    progress: ProgressFn = lambda _done, _total: None,
    again: bool = False,
) -> list[tuple[Artifact, bool]]:
    """Make every artifact that a run reads: those of its defenses, then that of its attack.

    Arguments and errors are those of :func:`prepare_artifact`.
    """
    limits = limits or Limits()
    parts, dataset = _with_dataset(experiment, parts)
    made = [
        # A defense is prepared for its own model, whichever one is attacked.
        _made(
            replace(experiment, source=None), parts, wanted, position, limits, progress, again=again
        )
        for position, wanted in wanted_for_defenses(experiment, dataset, parts).items()
    ]
    if not made or needs_artifact(experiment):
        made.append(
            prepare_artifact(experiment, parts=parts, limits=limits, progress=progress, again=again)
        )
    return made


def _with_dataset(experiment: Experiment, parts: Parts | None) -> tuple[Parts, VideoDataset]:
    given = parts or Parts()
    dataset = given.dataset if given.dataset is not None else build_dataset(experiment)
    return replace(given, dataset=dataset), dataset


def _made(
    experiment: Experiment,
    parts: Parts,
    wanted: Wanted,
    position: int | None,
    limits: Limits,
    progress: ProgressFn,
    *,
    again: bool,
) -> tuple[Artifact, bool]:
    """Return the artifact and whether it was made now.

    Args:
        experiment: a run that will read it.
        parts: in-memory components.
        wanted: what to make.
        position: which defense makes it; ``None`` for the attack.
        limits: when to stop.
        progress: told ``(done, total)`` iterations.
        again: make it anew.
    """
    if again:
        for folder in (wanted.folder, wanted.unfinished):
            shutil.rmtree(folder, ignore_errors=True)
    try:
        return find_artifact(wanted), False
    except ArtifactDamaged:
        shutil.rmtree(wanted.folder)
    except ArtifactMissing:
        pass
    wanted.unfinished.mkdir(parents=True, exist_ok=True)
    setup = build_setup(experiment, parts, prepared=False, restored=position is None)
    return _Step(setup, wanted, position, limits, progress).run(), True


class _Step:
    """One call of an offline step: of a defense by its position, or of the attack."""

    def __init__(
        self,
        setup: Setup,
        wanted: Wanted,
        position: int | None,
        limits: Limits,
        progress: ProgressFn,
    ) -> None:
        self.setup = setup
        self.wanted = wanted
        self.position = position
        self.limits = limits
        self.progress = progress
        self.surrogates: dict[str, str] = {}
        self.kept: dict[str, Decoded] = {}
        self.calls = 0
        self.started = 0.0
        self.chunk = fitted_chunk(setup.experiment, setup.model, setup.device)
        self.context = self._context()

    def run(self) -> Artifact:
        """Run it to its end and return what it left.

        Raises:
            PrepareStopped: at a limit.
        """
        experiment = self.setup.experiment
        component: Any = (
            self.setup.attack if self.position is None else self.setup.links[self.position].defense
        )
        if not isinstance(component, Preparable):
            raise ContractViolation(
                f"{self.wanted.owner} says that it prepares, and has no method 'prepare'"
            )
        before = self._spent()
        self.started = time.monotonic()
        ambient = derive_seed(experiment.seed, "", "prepare")
        try:
            with isolated_random_state(ambient), ExitStack() as watched:
                for model in self.setup.models:
                    watched.enter_context(model.watch())
                component.prepare(self.context)
                unmetered = sum(model.unmetered for model in self.setup.models)
        finally:
            spent = _added(before, self._cost())
            write_json(self.wanted.unfinished / SPENT_FILE, spent)
        if unmetered:
            raise ContractViolation(
                f"{self.wanted.owner} asked the model {unmetered} times without "
                "ctx.victim while it prepared"
            )
        return finish_artifact(self.wanted, self._facts(spent))

    def _context(self) -> PrepareContext:
        setup, experiment = self.setup, self.setup.experiment
        dataset, videos = setup.dataset, self.wanted.made_for["training"]
        items = [
            replace(dataset.item(video), label=self._label(video, label)) for video, label in videos
        ]
        of_attack = self.position is None
        transfer = of_attack and setup.rules.access == "transfer"
        adaptive = of_attack and experiment.adaptive and not transfer
        # How many frames a video has decides which of them may change.
        threat = setup.threat(len(self._decode(items[0].id).frames))
        victims = plain_victim(
            cast("VideoClassifier", setup.defended if adaptive else setup.model),
            threat,
            derive_seed(experiment.seed, "", "prepare"),
            links=setup.attack_links if adaptive else (),
            gradient=experiment.protocol.gradient,
            eot=experiment.protocol.eot if adaptive else 1,
            chunk=self.chunk,
        )
        return PrepareContext(
            folder=self.wanted.unfinished,
            items=items,
            seed=derive_seed(experiment.seed, "", "prepare"),
            model=cast("VideoClassifier", setup.model),
            threat=threat,
            progress=self._tick,
            targets=target_classes(experiment, len(setup.model.labels)),
            device=setup.device,
            surrogates=self._surrogate if transfer else None,
            loader=self._load,
            opponent=_forbidden(self.wanted.name) if transfer else victims,
            bare=Bare(
                cast("VideoClassifier", setup.model),
                self.chunk,
                refusal=_refusal(self.wanted.name) if transfer else "",
            ),
        )

    def _tick(self, done: int, total: int) -> None:
        self.progress(done, total)
        self.calls += 1
        again = f"go on with:\n  {self.wanted.command or 'the same call of vcr_core.prepare'}"
        if self.limits.stop():
            raise PrepareStopped(f"stopped after {done} of {total}; {again}", interrupted=True)
        if self.calls >= self.limits.iterations and done < total:
            raise PrepareStopped(
                f"stopped at the limit of {self.limits.iterations} iterations, {done} of {total} "
                f"are done; {again}"
            )
        if time.monotonic() - self.started > self.limits.seconds and done < total:
            raise PrepareStopped(
                f"stopped at the limit of {self.limits.seconds:g} s, {done} of {total} iterations "
                f"are done; {again}"
            )

    def _load(self, items: Sequence[VideoItem]) -> list[TrainingBatch]:
        decoded = [self._decode(item.id) for item in items]
        return stacked([(d.id, d.label, d.frames, d.gather) for d in decoded], self.setup.device)

    def _label(self, video: str, label: int) -> int:
        """Return the model's class of a training video, by the dataset or by the model itself."""
        own = self.setup.experiment.own_labels
        return self._decode(video).label if own else self.setup.label_map[label]

    def _decode(self, video: str) -> Decoded:
        """Return a video; so many as fit stay in memory, for steps that see them often."""
        found = self.kept.get(video)
        if found is None:
            found = decode(self.setup, video)
            if self.setup.experiment.own_labels:
                found = replace(found, label=self._predicted(found))
            if len(self.kept) * found.frames.nbytes < KEPT_BYTES:
                self.kept[video] = found
        return found

    def _predicted(self, video: Decoded) -> int:
        """Return what the bare model says of a clean video; it counts for no meter."""
        setup = self.setup
        view = View(
            setup.model.at_rate(video.rate),
            video.gather.to(setup.device),
            chunk=self.chunk,
        )
        random = VideoRandom([derive_seed(setup.experiment.seed, video.id, "clean")])
        with torch.no_grad(), setup.model.permit():
            scores = view(video.frames.unsqueeze(0).to(setup.device), random)
        return int(scores.argmax(dim=1))

    def _surrogate(self, name: str) -> VideoClassifier:
        pool = self.setup.surrogates
        if pool is None:  # pragma: no cover - build_setup always makes one
            raise ContractViolation("no surrogates here")
        self.surrogates[name] = weights_hash(name, folders_of(self.setup.experiment.paths))
        return pool.model(name)

    def _spent(self) -> dict[str, Any]:
        path = self.wanted.unfinished / SPENT_FILE
        if not path.exists():
            return {}
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def _cost(self) -> dict[str, float]:
        meters: dict[str, list[Meter]] = self.context.meters
        own = meters.get("", [])
        others = [meter for name, ms in meters.items() if name for meter in ms]
        return {
            "forwards": sum(m.forwards for m in own),
            "backwards": sum(m.backwards for m in own),
            "surrogate_forwards": sum(m.forwards for m in others),
            "surrogate_backwards": sum(m.backwards for m in others),
            "seconds": round(time.monotonic() - self.started, 3),
            "calls": 1,
        }

    def _facts(self, spent: Mapping[str, Any]) -> dict[str, Any]:
        experiment, dataset = self.setup.experiment, self.setup.dataset
        training = self.wanted.made_for["training"]
        component = (
            experiment.attack if self.position is None else experiment.defenses[self.position]
        )
        chosen = [experiment.dataset, experiment.model, component]
        owners = {c.distribution for c in chosen if c is not None} | {"vcr-core", "torch"}
        return {
            "made": utc_now(),
            "cost": dict(spent),
            "surrogates": self.surrogates,
            "videos": [
                {"id": video, "sha256": dataset.item(video).source.sha256()}
                for video, _ in training
            ],
            "versions": {name: installed_version(name) for name in sorted(owners)},
            "facts": self.context.facts,
        }


def _forbidden(attack: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise ContractViolation(_refusal(attack))

    return refuse


def _refusal(attack: str) -> str:
    return (
        f"attack {attack!r} declares access 'transfer' and asked for the model under attack "
        "while it prepared; use ctx.surrogate"
    )


def _added(before: Mapping[str, Any], now: Mapping[str, float]) -> dict[str, Any]:
    return {key: round(before.get(key, 0) + value, 3) for key, value in now.items()}


def _nothing_to_prepare(experiment: Experiment) -> str:
    if experiment.attack is None:
        return "there is nothing to prepare: name an attack with --attack, or a defense"
    if not experiment.prepares:
        when = getattr(experiment.attack.spec, "prepares_when", None)
        which = f" unless attack.{when[0]} = {when[1]!r}" if when else ""
        return f"attack {experiment.attack.ref} has no offline step{which}; run it right away"
    return "threat.eps = 0: nothing may change, so there is nothing to prepare"
