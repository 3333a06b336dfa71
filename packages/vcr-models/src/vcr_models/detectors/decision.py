"""From eight scores to a decision: by rules in an order, or by a fitted linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from vcr_models.detectors.names import IMPOSSIBLE, LABELS, ORIGINAL
from vcr_models.detectors.scores import SCORES, THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_REST: Final = 1e-3
"""Share of the probability of tampering that goes to effects which the rules do not name."""


class Decider(Protocol):
    """What turns scores into probabilities."""

    def log_probabilities(self, scores: Mapping[str, float], effects: Sequence[str]) -> Floats:
        """Return ``[14]`` log-probabilities of the classes in the order of ``LABELS``.

        Args:
            scores: the eight scores.
            effects: which effects may have happened; of the others the result says "impossible".
        """
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """The first effect whose score exceeds its threshold is named.

    With ``r`` the greatest ratio of a score to its threshold, the probability that the video was
    tampered with is ``r² / (1 + r²)``: one half at the threshold.

    Attributes:
        thresholds: by effect.
    """

    thresholds: Mapping[str, float]

    def log_probabilities(self, scores: Mapping[str, float], effects: Sequence[str]) -> Floats:
        """Return log-probabilities; see :class:`Decider`."""
        ratios = {
            name: max(scores[name], 0.0) / self.thresholds[name]
            for name in SCORES
            if name in effects
        }
        greatest = max(ratios.values())
        named = next((name for name, ratio in ratios.items() if ratio > 1), None)
        odds = greatest**2
        tampered = odds / (1 + odds)
        others = [name for name in ratios if name != named]
        shares = dict.fromkeys(others, tampered / max(len(others), 1))
        if named is not None:
            shares = dict.fromkeys(others, _REST * tampered / max(len(others), 1))
            shares[named] = tampered - sum(shares.values())
        return _spread({ORIGINAL: 1 - tampered, **shares})


@dataclass(frozen=True, slots=True)
class Logistic:
    """Multinomial logistic regression on the logarithms of the scores.

    Attributes:
        classes: names of the rows.
        mean: ``[8]`` of the features.
        scale: ``[8]`` of the features.
        weights: ``[K, 8]``.
        bias: ``[K]``.
    """

    classes: tuple[str, ...]
    mean: Floats
    scale: Floats
    weights: Floats
    bias: Floats

    def log_probabilities(self, scores: Mapping[str, float], effects: Sequence[str]) -> Floats:
        """Return log-probabilities; see :class:`Decider`.

        Effects that may not have happened are left out before the rest is made to sum to 1.
        """
        features = (features_of(scores) - self.mean) / self.scale
        logits = self.weights @ features + self.bias
        kept = [i for i, name in enumerate(self.classes) if name == ORIGINAL or name in effects]
        shifted = np.exp(logits[kept] - logits[kept].max())
        shares = shifted / shifted.sum()
        return _spread({self.classes[i]: float(p) for i, p in zip(kept, shares, strict=True)})


def features_of(scores: Mapping[str, float]) -> Floats:
    """Return ``[8]``: the logarithm of 1 + score / threshold, in the order of the rules."""
    ratios = [scores[name] / THRESHOLDS[name] for name in SCORES]
    return np.log1p(np.maximum(ratios, -0.9))


def _spread(shares: Mapping[str, float]) -> Floats:
    """Return log-probabilities of all classes from those of the possible ones."""
    logs = np.full(len(LABELS), IMPOSSIBLE)
    for name, share in shares.items():
        logs[LABELS.names.index(name)] = max(float(np.log(max(share, 1e-300))), IMPOSSIBLE)
    return logs
