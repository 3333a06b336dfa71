"""Denoised smoothing: randomized smoothing of a denoiser and a classifier that knows no noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_defenses.diffusion.one_shot import OneShotDenoiser
from vcr_defenses.noisy_vote import NoisyVote
from vcr_defenses.params.smoothing import DenoisedSmoothingParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import ClipFn, VideoFn
    from vcr_core.randomness import VideoRandom


class DenoisedSmoothing:
    """The smoothed classifier whose base is ``f ∘ denoise``.

    Salman et al., NeurIPS 2020, with the one-shot denoiser of Carlini et al., "(Certified!!)
    adversarial robustness for free!", ICLR 2023, algorithm 1. Noise, votes, abstentions and
    certificates are those of ``randomized-smoothing``: a fixed denoiser makes ``f ∘ denoise`` just
    another base classifier, so the guarantee holds unchanged.

    Args:
        params: noise, numbers of copies, denoiser.

    Raises:
        ComponentUnavailable: if the denoiser is not on this machine.
    """

    def __init__(self, params: DenoisedSmoothingParams | None = None) -> None:
        self.params = params or DenoisedSmoothingParams()
        self.denoise = OneShotDenoiser(self.params, "denoised-smoothing")

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return self.params.sigma > 0

    @property
    def certifies(self) -> bool:
        """Whether the parameters ask for certificates."""
        return self.params.certify_n > 0

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` smoothed, with noise for every clip."""
        return NoisyVote(self._base(predict), self.params, random)

    def wrap_video(self, predict: VideoFn, random: VideoRandom) -> VideoFn:
        """Return ``predict`` smoothed, with one noise for every source frame."""
        return self.wrap(predict, random)

    def certify(
        self, predict: VideoFn, video: Tensor, random: VideoRandom
    ) -> Sequence[Mapping[str, Any]]:
        """Return a certificate of each video.

        Args:
            predict: what follows the denoiser, the same as in prediction.
            video: ``[B, T, 3, H, W]``.
            random: one generator per video.
        """
        return NoisyVote(self._base(predict), self.params, random).certificates(video)

    def _base(self, predict: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """Return the base classifier of noisy copies."""
        return lambda noisy: predict(self.denoise(noisy, self.params.sigma))
