"""``tamper-net``: the bundled trained detector of tampering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from safetensors.torch import load
from vcr_core.protocols import BaseVideoClassifier

from vcr_models.bundled import bundled
from vcr_models.detectors.clip import CLIP, checked, facts_of
from vcr_models.detectors.names import IMPOSSIBLE, LABELS, ORIGINAL, SUITES
from vcr_models.detectors.network import TamperNet, network_signals
from vcr_models.detectors.params import NetParams
from vcr_models.detectors.scores import runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from vcr_core.protocols import VideoClassifier
    from vcr_core.specs import WeightSpec


class TamperNetDetector(BaseVideoClassifier):
    """A small network over differences between frames; differentiable.

    Args:
        params: effects that it reckons with.
        weights: the bundled file.
        fps: frames per second of the clips that it is asked about; segments are told in seconds.
        network: a network in the place of the bundled one.

    Attributes:
        labels: ``original`` and all thirteen effects; those that it does not reckon with have
            next to no probability.
        clip: every frame, of videos of more than 600 every second one (third, …).
        network: the frozen network.
    """

    def __init__(
        self,
        params: NetParams | None = None,
        weights: WeightSpec | None = None,
        *,
        fps: float | None = None,
        network: TamperNet | None = None,
    ) -> None:
        self.params = params or NetParams()
        self.labels = LABELS
        self.clip = CLIP
        if network is None:
            network = TamperNet(len(LABELS))
            if weights is not None:
                network.load_state_dict(load(bundled(weights.url, weights.sha256)), strict=True)
        self.network = network.eval().requires_grad_(False)
        self._fps = fps or self.params.unknown_fps
        possible = (ORIGINAL, *SUITES[self.params.effects])
        self._impossible = torch.tensor([name not in possible for name in LABELS.names])

    def at_rate(self, fps: float | None) -> VideoClassifier:
        """Return this detector for clips of so many frames a second."""
        return TamperNetDetector(self.params, fps=fps, network=self.network)

    def logits(self, clips: Tensor) -> Tensor:
        """Return ``[N, 1, 14]`` log-probabilities of clips ``[N, T, 3, H, W]`` in [0, 1].

        Raises:
            ValueError: another number of dimensions or channels.
        """
        scores, _ = self.network(network_signals(checked(clips)))
        return self._possible(scores).unsqueeze(1)

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        """Return log-probabilities and, for each clip, score, decision and segment.

        Args:
            clips: ``[N, T, 3, H, W]`` in [0, 1], any T, H and W.

        Raises:
            ValueError: another number of dimensions or channels.
        """
        with torch.no_grad():
            scores, marks = self.network(network_signals(checked(clips)))
            log_p = self._possible(scores)
        told = [
            facts_of(row, self._segment(mark, int(row.argmax())), self._fps, {})
            for row, mark in zip(log_p, marks, strict=True)
        ]
        return log_p.unsqueeze(1), told

    def to(self, device: torch.device | str) -> Self:
        """Move the network in place and return this detector."""
        self.network.to(device)
        return self

    def _possible(self, scores: Tensor) -> Tensor:
        """Return log-probabilities ``[N, 14]`` that reckon with the possible effects alone."""
        impossible = self._impossible.to(scores.device)
        log_p = scores.masked_fill(impossible, float("-inf")).log_softmax(dim=1)
        return log_p.clamp(min=IMPOSSIBLE)

    def _segment(self, marks: Tensor, label: int) -> tuple[int, int]:
        """Return the stretch of frames with positive marks that holds the greatest one."""
        best = int(marks.argmax())
        if LABELS.names[label] == "drop":
            return best, best
        above = (marks > 0).cpu().numpy()
        above[best] = True
        return next((a, b) for a, b in runs(above) if a <= best < b)
