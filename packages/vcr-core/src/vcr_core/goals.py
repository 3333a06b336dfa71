"""What counts as success for each video, and the loss that leads there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from vcr_core.errors import UsageError
from vcr_core.losses import LOSSES, Loss
from vcr_core.seeding import derive_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

TargetPolicy: TypeAlias = "Literal['least-likely', 'random', 'next', 'second'] | int"


@dataclass(frozen=True, slots=True)
class Goals:
    """Goals of a batch of videos.

    Attributes:
        labels: true labels ``[B]`` int64.
        targets: target labels ``[B]`` int64, or ``None`` for an untargeted contest.
    """

    labels: Tensor
    targets: Tensor | None = None

    @property
    def targeted(self) -> bool:
        """Whether a target class has to be reached."""
        return self.targets is not None

    def loss(self, logits: Tensor, rows: Tensor | None = None, kind: Loss = "ce") -> Tensor:
        """Return ``[b]``, to be minimised in every mode.

        Args:
            logits: ``[b, K]`` aggregated log-probabilities of these rows.
            rows: which videos of the batch; all when absent.
            kind: see :mod:`vcr_core.losses`.
        """
        return LOSSES[kind](logits, self._labels(rows), self._targets(rows))

    def achieved(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ``[b]`` bool. A tie is decided by the lowest class index, as a prediction is."""
        predicted = logits.argmax(dim=1)
        targets = self._targets(rows)
        return predicted != self._labels(rows) if targets is None else predicted == targets

    def confidence(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ``[b]``: the target's probability, or that of the prediction if untargeted."""
        p = logits.softmax(dim=1)
        targets = self._targets(rows)
        if targets is None:
            return p.amax(dim=1)
        return p.gather(1, targets.unsqueeze(1)).squeeze(1)

    def _labels(self, rows: Tensor | None) -> Tensor:
        return self.labels if rows is None else self.labels[rows]

    def _targets(self, rows: Tensor | None) -> Tensor | None:
        if self.targets is None or rows is None:
            return self.targets
        return self.targets[rows]


def choose_targets(
    policy: TargetPolicy,
    logits: Tensor,
    labels: Tensor,
    *,
    seed: int,
    ids: Sequence[str],
) -> Tensor:
    """Return targets ``[B]`` int64, never equal to the true label.

    Args:
        policy: ``least-likely`` and ``second`` look at ``logits``; ``random`` at seed and id;
            ``next`` is ``(y + 1) mod K``; a number is that class.
        logits: clean aggregated log-probabilities ``[B, K]`` of the attacker's view.
        labels: true labels ``[B]``.
        seed: run seed.
        ids: video ids.

    Raises:
        UsageError: for a class that does not exist or equals a video's true label.
    """
    count = logits.shape[1]
    if count < 2:
        raise UsageError(f"a targeted contest needs at least 2 classes, the model has {count}")
    own = labels.unsqueeze(1)
    if policy == "least-likely":
        return logits.scatter(1, own, float("inf")).argmin(dim=1)
    if policy == "second":
        return logits.scatter(1, own, float("-inf")).argmax(dim=1)
    if policy == "next":
        return (labels + 1) % count
    if policy == "random":
        drawn = [derive_seed(seed, i, "target") % (count - 1) for i in ids]
        shift = labels.new_tensor(drawn) + 1
        return (labels + shift) % count
    target = int(policy)
    if not 0 <= target < count:
        raise UsageError(f"threat.target = {target}: the model has classes 0 to {count - 1}")
    clash = [i for i, y in zip(ids, labels.tolist(), strict=True) if y == target]
    if clash:
        raise UsageError(
            f"threat.target = {target} is the true label of {clash[0]!r}; "
            "choose another class or a policy such as 'least-likely'"
        )
    return labels.new_full(labels.shape, target)
