"""Contracts of attacks and defenses that are prepared once, before any run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from vcr_core.preparing import Bare
    from vcr_core.protocols import VideoClassifier, VideoItem
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Meter, Victim


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Videos of an offline step that can be stacked.

    Attributes:
        ids: their ids.
        videos: ``[B, T, C, H, W]`` float32 in [0, 1].
        labels: ``[B]`` int64, classes of the model.
        gather: ``[V, T']`` positions of the clips' frames in a video.
    """

    ids: tuple[str, ...]
    videos: Tensor
    labels: Tensor
    gather: Tensor


@dataclass(slots=True)
class PrepareContext:
    """What an offline step may use.

    A step writes what it has reached at the end of every round (epoch), so that it can be stopped
    anywhere and go on later, and returns at once where its result is there already. It calls
    ``progress`` at least once an iteration: limits of time and of iterations act there.

    Attributes:
        folder: the only place to write to.
        items: training videos, disjoint from the evaluated ones unless overlap is allowed; labels
            are classes of the model.
        seed: seed of role ``prepare``; derive all draws from it.
        model: the classifier; reach it through :meth:`victim`, which counts.
        threat: the threat model of the run that will use the artifact.
        progress: ``progress(done, total)``.
        targets: classes that the run may be after, ``None`` if it is untargeted.
        device: where tensors live.
        surrogates: loads a model by registry name, for attacks with access ``transfer``.
        loader: reads items as the run would; as the model's clip says when absent.
        opponent: makes a victim; the bare model when absent.
        bare: what :meth:`scores` and :meth:`loss_and_grad` ask; the model, all clips at once,
            when absent.
        meters: what :meth:`victim` counted, one a video and call.
        facts: goes into the artifact's manifest; plain data.
    """

    folder: Path
    items: Sequence[VideoItem]
    seed: int
    model: VideoClassifier
    threat: ThreatModel
    progress: Callable[[int, int], None] = lambda _done, _total: None
    targets: tuple[int, ...] | None = None
    device: torch.device | str = "cpu"
    surrogates: Callable[[str], VideoClassifier] | None = None
    loader: Callable[[Sequence[VideoItem]], list[TrainingBatch]] | None = None
    opponent: Callable[[TrainingBatch, Tensor | None, int], Victim] | None = None
    bare: Bare | None = None
    meters: dict[str, list[Meter]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def scores(self, clips: Tensor) -> Tensor:
        """Return log-probabilities ``[B, K]`` of clips ``[B, V, T', C, H, W]``, without gradients.

        The bare model's, aggregated over views; one forward pass a video is counted.
        """
        from vcr_core.preparing import Bare

        return (self.bare or Bare(self.model)).scores(clips, self.meters.setdefault("", []))

    def loss_and_grad(self, clips: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy ``[B]`` of clips ``[B, V, T', C, H, W]`` and its gradient.

        The bare model's; one forward and one backward pass a video are counted.
        """
        from vcr_core.preparing import Bare

        bare = self.bare or Bare(self.model)
        return bare.loss_and_grad(clips, labels, self.meters.setdefault("", []))

    def load(self, items: Sequence[VideoItem]) -> list[TrainingBatch]:
        """Return the items, decoded, in batches of equal shape in order of first appearance."""
        from vcr_core.preparing import load_items

        return (self.loader or load_items(self.model.clip, self.device))(items)

    def victim(
        self, batch: TrainingBatch, targets: Tensor | None = None, *, repeat: int = 0
    ) -> Victim:
        """Return metered white-box access to the function that the run attacks.

        It never stops early and has no budget. A random defense draws by video and ``repeat``.

        Args:
            batch: the videos.
            targets: target classes ``[B]``, ``None`` for an untargeted contest.
            repeat: number of the round.
        """
        from vcr_core.preparing import plain_victim

        make = self.opponent or plain_victim(self.model, self.threat, self.seed)
        victim = make(batch, targets, repeat)
        self.meters.setdefault("", []).extend(victim.meters)
        return victim

    def surrogate(
        self, name: str, batch: TrainingBatch, targets: Tensor | None = None, *, repeat: int = 0
    ) -> Victim:
        """Return :meth:`victim` of a model by registry name.

        Raises:
            ContractViolation: if the attack's access is not ``transfer``.
        """
        from vcr_core.errors import ContractViolation
        from vcr_core.preparing import plain_victim

        if self.surrogates is None:
            raise ContractViolation(
                f"a surrogate ({name!r}) was asked for by an attack whose access is not 'transfer'"
            )
        make = plain_victim(self.surrogates(name), self.threat, self.seed)
        victim = make(batch, targets, repeat)
        self.meters.setdefault(name, []).extend(victim.meters)
        return victim


@runtime_checkable
class Preparable(Protocol):
    """An attack or defense with an offline step."""

    def prepare(self, ctx: PrepareContext) -> None:
        """Write artifacts under ``ctx.folder``; idempotent and resumable."""
        ...


@runtime_checkable
class PreparedDefense(Preparable, Protocol):
    """A defense with an offline step."""

    def restore(self, folder: Path) -> None:
        """Read what :meth:`prepare` left; called once, before the defense is used.

        Raises:
            IncompatibleComponents: if it does not fit.
        """
        ...
