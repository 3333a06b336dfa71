"""The Python API: ``load``, ``evaluate``, ``perturb``, ``as_classifier``.

Example:
    >>> import vcr_core as vcr
    >>> model = vcr.load("model", "tiny-r3d")  # doctest: +SKIP
    >>> attack = vcr.load("attack", "pgd", steps=20)  # doctest: +SKIP
    >>> result = vcr.evaluate(
    ...     model=model, attack=attack, dataset="motion", threat=vcr.Linf("2/255"), limit=8
    ... )  # doctest: +SKIP
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from vcr_core.adaptive import View
from vcr_core.adhoc import chosen_for, remember
from vcr_core.classifier import as_classifier as as_classifier
from vcr_core.components import build
from vcr_core.engine.execution import execute
from vcr_core.engine.run import open_run
from vcr_core.engine.setup import Parts, choose_device
from vcr_core.engine.verify import check_answer, fit, untouched
from vcr_core.errors import BudgetExhausted, UsageError
from vcr_core.goals import Goals, choose_targets
from vcr_core.image_models import ImageModels, ImagePool
from vcr_core.metering import GuardedModel, frozen
from vcr_core.protocols import AttackContext
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed, isolated_random_state
from vcr_core.specs import AttackSpec
from vcr_core.summary import RunView, load_run
from vcr_core.threat import Linf, ThreatModel
from vcr_core.victim import Rules, Victim

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.config.experiment import Experiment
    from vcr_core.config.resolve import Resolved
    from vcr_core.export_videos.agreement import Answer
    from vcr_core.protocols import (
        Attack,
        Defense,
        Metric,
        VideoClassifier,
        VideoDataset,
    )
    from vcr_core.specs import Kind
    from vcr_core.video.preview import PreviewFormat


def load(kind: Kind, ref: str, /, **params: Any) -> Any:
    """Return a component by reference, with parameters.

    Args:
        kind: ``model``, ``attack``, ``defense``, ``metric`` or ``dataset``.
        ref: ``name``, ``name.variant`` or ``distribution/name.variant``.
        **params: the component's parameters; see ``vcr info kind/name``.

    Raises:
        UnknownComponent: with near matches.
        ConfigError: for a parameter that does not exist or is out of range.
    """
    from vcr_core.config.objects import choose_component

    chosen = choose_component(kind, ref, params)
    return remember(build(chosen), chosen)


@dataclass(frozen=True, slots=True)
class Result:
    """Results of :func:`evaluate`.

    Attributes:
        view: manifest, records and summary.
        experiment: what was evaluated.
        parts: the objects that took part in it.
    """

    view: RunView
    experiment: Experiment | None = field(default=None, repr=False, compare=False)
    parts: Parts | None = field(default=None, repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """The run folder; temporary unless ``results`` was given."""
        return self.view.folder

    @property
    def records(self) -> list[dict[str, Any]]:
        """One record a video."""
        return self.view.records

    def summary(self) -> dict[str, Any]:
        """Return headline numbers with 95 % intervals: ``{name: {value, k, n, ci95, method}}``."""
        return cast("dict[str, Any]", self.view.summary["definitions"])

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row a video."""
        from vcr_core.export import record_rows

        return record_rows(self.view)

    def frame(self) -> Any:
        """Return :meth:`rows` as a pandas data frame.

        Raises:
            ComponentUnavailable: if pandas is not installed.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            from vcr_core.errors import ComponentUnavailable

            raise ComponentUnavailable(
                "result.frame() needs pandas (pip install pandas); result.rows() does not"
            ) from error
        return pd.DataFrame(self.rows())

    def export_videos(
        self,
        folder: str | Path,
        *,
        only: Sequence[str] = (),
        limit: int | None = None,
        previews: Sequence[PreviewFormat] = ("mp4", "gif"),
        recreate: bool = False,
    ) -> list[Path]:
        """Write videos as exact files with previews and return the folder of each.

        Args:
            folder: where; a folder for the run is made in it.
            only: ids of the videos; all whose frames were kept if empty.
            limit: so many at most.
            previews: formats of the previews, none if empty.
            recreate: attack videos again whose frames were not kept.

        Raises:
            StoreError: if frames were not kept, or do not give what the records say.
        """
        from vcr_core.export_videos.writing import write_videos

        written = write_videos(
            self.view, Path(folder), only=only, limit=limit, previews=previews, recreate=recreate,
            experiment=self.experiment, parts=self.parts,
        )  # fmt: skip
        return [exported.folder for exported in written]

    def check_videos(self, folder: str | Path) -> list[Answer]:
        """Return what the model says of exported files, beside what the records say.

        Args:
            folder: that of :meth:`export_videos`.
        """
        from vcr_core.export_videos.checking import check_videos

        found = check_videos(self.view, Path(folder), experiment=self.experiment, parts=self.parts)
        return list(found)


def evaluate(
    *,
    model: VideoClassifier | str,
    attack: Attack | str | None = None,
    defense: Defense | str | Sequence[Defense | str] | None = None,
    dataset: VideoDataset | str = "motion",
    metrics: Sequence[Metric | str] | None = None,
    threat: ThreatModel | None = None,
    protocol: Mapping[str, Any] | None = None,
    targeted: bool = False,
    target: str | int = "least-likely",
    max_forwards: int | None = None,
    limit: int | None = None,
    seed: int = 42,
    runtime: Mapping[str, Any] | None = None,
    prepared: Mapping[str, Any] | None = None,
    results: str | Path | None = None,
    source: VideoClassifier | str | None = None,
) -> Result:
    """Run one experiment in this process and return its results.

    Components are references or objects. With ``results`` the run is kept there and resumed by
    the same call. A run with objects of your own is identified by their class and parameters, not
    by what they do: use another ``results`` folder when you change them.

    Args:
        model: the classifier.
        attack: the attack; ``None`` for a clean run.
        defense: one defense or a chain.
        dataset: the dataset.
        metrics: metrics; the default ones when absent.
        threat: what the adversary may change; ``Linf("8/255")`` when absent, or the attack's own
            norm where it knows no such radius.
        protocol: keys of the ``[protocol]`` table.
        targeted: whether a target class has to be reached.
        target: target policy or class.
        max_forwards: budget of forward passes per video.
        limit: number of videos.
        seed: run seed.
        runtime: keys of the ``[runtime]`` table.
        prepared: keys of the ``[prepare]`` table, for attacks with an offline step.
        results: folder for run folders; a temporary one when absent.
        source: the model that the attack is computed on, to see whether it transfers; the
            evaluated one when absent.

    Raises:
        ConfigError: with every problem found, before anything runs.
        ArtifactMissing: if the attack has an offline step that :func:`prepare` has not run.
    """
    resolved, parts = _resolved(
        model=model, attack=attack, defense=defense, dataset=dataset, metrics=metrics,
        threat=threat, protocol=protocol, targeted=targeted, target=target,
        max_forwards=max_forwards, limit=limit, seed=seed, runtime=runtime, prepared=prepared,
        source=source,
    )  # fmt: skip
    folder = Path(results) if results is not None else Path(tempfile.mkdtemp(prefix="vcr-"))
    run = open_run(resolved, parts=parts, results=folder)
    execute(run)
    return Result(load_run(run.folder), resolved.experiment, parts)


def prepare(
    *,
    model: VideoClassifier | str,
    attack: Attack | str | None = None,
    defense: Defense | str | Sequence[Defense | str] | None = None,
    dataset: VideoDataset | str = "motion",
    threat: ThreatModel | None = None,
    protocol: Mapping[str, Any] | None = None,
    targeted: bool = False,
    target: str | int = "least-likely",
    limit: int | None = None,
    seed: int = 42,
    runtime: Mapping[str, Any] | None = None,
    prepared: Mapping[str, Any] | None = None,
    again: bool = False,
) -> Path:
    """Make what an attack or defenses need once before :func:`evaluate`.

    The arguments are those of the evaluation. Nothing is done where it is there already; a call
    that was interrupted is gone on with. Training videos are the next ones after the evaluated
    ``limit``. Defenses are prepared first.

    Args:
        model: the classifier.
        attack: the attack, ``None`` to prepare defenses only.
        defense: one defense or a chain, which an adaptive attack is prepared against.
        dataset: the dataset.
        threat: what the adversary may change; ``Linf("8/255")`` when absent, or the attack's own
            norm where it knows no such radius.
        protocol: keys of the ``[protocol]`` table.
        targeted: whether a target class has to be reached.
        target: target policy or class.
        limit: number of videos that will be evaluated.
        seed: run seed.
        runtime: keys of the ``[runtime]`` table.
        prepared: keys of the ``[prepare]`` table, such as ``videos``.
        again: make it anew.

    Returns:
        The folder of the attack's artifact, or of the last defense's if the attack has none.

    Raises:
        UsageError: if nothing has an offline step.
        ConfigError: if the evaluation leaves no video to train on.
    """
    from vcr_core.engine.prepare import prepare_all

    resolved, parts = _resolved(
        model=model, attack=attack, defense=defense, dataset=dataset, metrics=None,
        threat=threat, protocol=protocol, targeted=targeted, target=target,
        max_forwards=None, limit=limit, seed=seed, runtime=runtime, prepared=prepared,
    )  # fmt: skip
    return prepare_all(resolved.experiment, parts=parts, again=again)[-1][0].folder


def _resolved(
    *,
    model: VideoClassifier | str,
    attack: Attack | str | None,
    defense: Defense | str | Sequence[Defense | str] | None,
    dataset: VideoDataset | str,
    metrics: Sequence[Metric | str] | None,
    threat: ThreatModel | None,
    protocol: Mapping[str, Any] | None,
    targeted: bool,
    target: str | int,
    max_forwards: int | None,
    limit: int | None,
    seed: int,
    runtime: Mapping[str, Any] | None,
    prepared: Mapping[str, Any] | None,
    source: VideoClassifier | str | None = None,
) -> tuple[Resolved, Parts]:
    """Return the experiment that the arguments of :func:`evaluate` describe."""
    from vcr_core.config.objects import resolve_objects

    asked = threat or Linf()
    if not isinstance(asked.eps, float | int):
        raise UsageError("evaluate needs one eps for all videos")
    tables: dict[str, Any] = {
        "seed": seed,
        "threat": {
            "norm": asked.norm, "eps": float(asked.eps), "quantize": asked.quantize,
            "targeted": targeted, "target": target,
        },
        "protocol": dict(protocol or {}),
        "runtime": dict(runtime or {}),
        "prepare": dict(prepared or {}),
    }  # fmt: skip
    optional = {
        "max_forwards": max_forwards,
        "frames": list(asked.frames) if asked.frames is not None else None,
        "per_frame_eps": list(asked.per_frame_eps) if asked.per_frame_eps else None,
        "region": list(asked.region) if asked.region else None,
    }
    tables["threat"].update({k: v for k, v in optional.items() if v is not None})
    if threat is None:
        # Then the norm is the attack's own where that is not bound by the default one.
        del tables["threat"]["norm"], tables["threat"]["eps"]
    chain = [] if defense is None else [defense] if _single(defense) else list(cast("Any", defense))
    return resolve_objects(
        tables, model=model, attack=attack, defenses=chain, dataset=dataset, metrics=metrics,
        limit=limit, source=source,
    )  # fmt: skip


def perturb(
    model: VideoClassifier,
    attack: Attack,
    videos: Tensor,
    labels: Tensor | Sequence[int],
    *,
    threat: ThreatModel | None = None,
    targets: Tensor | Sequence[int] | str | None = None,
    rules: Rules | None = None,
    gather: Tensor | None = None,
    seed: int = 0,
    ids: Sequence[str] | None = None,
    device: str = "auto",
) -> Tensor:
    """Return adversarial videos, verified as in an evaluation.

    Args:
        model: the classifier.
        attack: the attack.
        videos: ``[B, T, C, H, W]`` float32 in [0, 1].
        labels: true classes ``[B]``.
        threat: the threat model; ``Linf("8/255")`` when absent.
        targets: target classes ``[B]``, a policy such as ``"least-likely"``, or ``None``.
        rules: access, budgets and stop rule; the attack's access with ``first_success`` else.
        gather: ``[V, T']`` positions of the clips' frames; all frames in order when absent.
        seed: seed of every draw.
        ids: video ids, on which draws depend; ``"0"``, ``"1"``… when absent.
        device: where to run.

    Returns:
        Same shape as ``videos``, on the same device, inside the threat model.

    Raises:
        ContractViolation: if the attack breaks its contract.
    """
    where = choose_device(device)
    clean = videos.detach().to(where, torch.float32)
    if clean.dim() != 5:
        raise UsageError(f"videos have shape {list(clean.shape)}; [B, T, C, H, W] is needed")
    count = clean.shape[0]
    y = torch.as_tensor(labels, dtype=torch.int64, device=where)
    names = list(ids) if ids is not None else [str(i) for i in range(count)]
    asked = threat or Linf()
    guarded = GuardedModel(frozen(model).to(where))
    order = torch.arange(clean.shape[1]).unsqueeze(0) if gather is None else gather
    view = View(guarded, order.to(where))
    chosen = chosen_for("attack", attack)
    access = cast("AttackSpec", chosen.spec).access
    goal = _goals(view, clean, y, targets, seed, names)
    victim = Victim(
        view, clean, goal, asked, ids=names, seed=seed,
        rules=replace(rules, access=access) if rules else Rules(access=access),
    )  # fmt: skip
    seeds = [derive_seed(seed, name, "attack") for name in names]
    context = AttackContext(
        threat=asked,
        random=VideoRandom(seeds, where),
        ids=names,
        image_models=ImageModels(ImagePool(where), count),
    )
    with untouched(chosen.ref, [guarded], clean) as handed, isolated_random_state(seeds[0]):
        try:
            answer = attack.attack(victim, handed, goal, context)
        except BudgetExhausted:
            answer = victim.best()
    answer = check_answer(chosen.ref, answer, clean)
    return fit(answer, clean, asked).video.to(videos.device)


def _goals(
    view: View,
    clean: Tensor,
    labels: Tensor,
    targets: Tensor | Sequence[int] | str | None,
    seed: int,
    ids: Sequence[str],
) -> Goals:
    if targets is None:
        return Goals(labels)
    if isinstance(targets, str):
        with torch.no_grad():
            logits = view(clean, VideoRandom([0] * len(ids), clean.device))
        return Goals(
            labels, choose_targets(cast("Any", targets), logits, labels, seed=seed, ids=ids)
        )
    return Goals(labels, torch.as_tensor(targets, dtype=torch.int64, device=clean.device))


def _single(defense: Any) -> bool:
    return isinstance(defense, str) or hasattr(defense, "wrap")
