"""Randomized smoothing: a vote over noisy copies, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_defenses.noisy_vote import NoisyVote
from vcr_defenses.params.smoothing import RandomizedSmoothingParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import ClipFn, VideoFn
    from vcr_core.randomness import VideoRandom


class RandomizedSmoothing:
    """The smoothed classifier ``g(x) = argmax_c P[f(x + e) = c]``, ``e ~ N(0, sigma² I)``.

    Cohen, Rosenfeld, Kolter, ICML 2019, equation 1. Mode ``vote`` estimates ``g`` from ``n``
    copies and abstains where the vote could be chance; mode ``single`` is the VCR-Bench code's
    one noisy pass with a random sigma.

    As the first defense of a chain it adds noise to the frames of the video, before clips are
    gathered: a frame that several clips share has one noise. Elsewhere clips get noise of their
    own, which defends and certifies nothing.
    """

    def __init__(self, params: RandomizedSmoothingParams | None = None) -> None:
        self.params = params or RandomizedSmoothingParams()

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return (self.params.sigma if self.params.mode == "vote" else self.params.sigma_high) > 0

    @property
    def certifies(self) -> bool:
        """Whether the parameters ask for certificates."""
        return self.params.certify_n > 0

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` smoothed, with noise for every clip."""
        base = self._base(predict)
        if self.params.mode == "vote":
            return NoisyVote(base, self.params, random)
        return lambda shown: base(self._noisy(shown, random))

    def wrap_video(self, predict: VideoFn, random: VideoRandom) -> VideoFn:
        """Return ``predict`` smoothed, with one noise for every source frame."""
        return self.wrap(predict, random)

    def certify(
        self, predict: VideoFn, video: Tensor, random: VideoRandom
    ) -> Sequence[Mapping[str, Any]]:
        """Return a certificate of each video.

        Args:
            predict: what follows the noise, the same as in prediction.
            video: ``[B, T, C, H, W]``.
            random: one generator per video.
        """
        return NoisyVote(self._base(predict), self.params, random).certificates(video)

    def _base(self, predict: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """Return the base classifier of noisy copies; the clamp is a part of it."""
        if not self.params.clamp:
            return predict
        return lambda noisy: predict(noisy.clamp(0, 1))

    def _noisy(self, shown: Tensor, random: VideoRandom) -> Tensor:
        """Return one noisy copy of each video, sigma drawn for each."""
        sigma = random.uniform(low=self.params.sigma_low, high=self.params.sigma_high)
        noise = random.normal(*shown.shape[1:])
        return shown + (sigma.view(-1, *[1] * (shown.dim() - 1)) * noise).to(shown)
