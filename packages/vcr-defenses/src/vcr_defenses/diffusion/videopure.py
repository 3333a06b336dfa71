"""VideoPure: inversion and guided denoising of a whole clip with a video diffusion model."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import interpolate
from vcr_core.adaptive import straight_through
from vcr_core.protocols import InputDefense

from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.flow import estimate_flow, require_flow, to_grid
from vcr_defenses.diffusion.guidance import Guidance, Level
from vcr_defenses.diffusion.video_model import find_video_model, load_video_model
from vcr_defenses.params.diffusion import VideopureParams
from vcr_defenses.votes import Vote

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom

    from vcr_defenses.diffusion.latent import VideoModel

NAME = "defense 'videopure'"


class VideoPure(InputDefense):
    """Temporal DDIM inversion, guided denoising, and a vote over the results of every step.

    Jiang et al., "VideoPure: diffusion-based adversarial purification for video recognition", IEEE
    TCSVT 2025, arXiv 2501.14999; numbers and order of steps follow the published code.

    1. The clip is encoded and inverted for ``invert_steps`` of ``num_inference_steps`` DDIM steps.
       The noise that is predicted for one frame is given to all of them.
    2. It is denoised by as many DDIM steps. At each of them the predicted clean latents, after a
       guided step (:class:`~vcr_defenses.diffusion.guidance.Guidance`), are a candidate; the
       trajectory itself goes on unguided. The guided end of the trajectory is the last candidate.
    3. All candidates are classified; the label of most wins.

    Mode ``ddim-inversion`` has neither the common noise nor guidance; ``ddim`` adds noise instead
    of inverting; ``ddpm`` adds noise and takes all training steps. These have one candidate.

    Args:
        params: see :class:`~vcr_defenses.params.diffusion.VideopureParams`.
        model: a model to use instead of the one that the parameters name.

    Raises:
        ComponentUnavailable: if the model or the flow's weights are not on this machine.
    """

    def __init__(
        self, params: VideopureParams | None = None, model: VideoModel | None = None
    ) -> None:
        self.params = params or VideopureParams()
        self._given = model
        if model is None:
            find_video_model(self.params.denoiser, NAME)
        if self._guides_in_time:
            require_flow(self.params.flow, self.params.flow_weights)

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return self.params.mode in ("ddim", "ddpm") and self.params.invert_steps > 0

    @cached_property
    def model(self) -> VideoModel:
        """The diffusion model, read at the first use.

        Raises:
            ComponentUnavailable: if it is not on this machine.
        """
        return self._given or load_video_model(self.params, NAME)

    @property
    def steps(self) -> list[int]:
        """Training steps that are visited by the inversion, rising."""
        p = self.params
        steps = sched.leading_steps(
            len(self.model.schedule), p.num_inference_steps, self.model.offset
        )
        return steps[: p.invert_steps]

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return the last candidate of every clip, without a gradient.

        Args:
            clips: ``[B, V, T, 3, H, W]``, float in [0, 1].
            random: used by the modes that add noise; independent of other videos.
        """
        return self.candidates(clips, random, last=True)[0]

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return the vote over the candidates, or ``predict`` after the last one."""
        return self._wrapped(predict, random)

    def wrap_surrogate(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return the same function with the gradient at the candidates (BPDA, as the authors).

        Every candidate counts as the input itself in the backward pass, so the gradient is a mean
        over candidates.
        """
        return self._wrapped(predict, random)

    @torch.no_grad()
    def candidates(self, clips: Tensor, random: VideoRandom, *, last: bool = False) -> Tensor:
        """Return all candidates ``[M, B, V, T, 3, H, W]`` in the order of the denoising.

        ``M`` is ``invert_steps + 1`` in mode ``videopure`` and 1 in the others.

        Args:
            clips: ``[B, V, T, 3, H, W]``, float in [0, 1].
            random: used by the modes that add noise.
            last: return (and decode) the last candidate only.

        Raises:
            ComponentUnavailable: if the model or the flow's weights are not on this machine.
            ValueError: for clips that are not RGB.
        """
        if clips.shape[-3] != 3:
            raise ValueError(f"videopure needs RGB clips, got {tuple(clips.shape)}")
        self.model.to(clips.device)
        videos = []
        for b in range(len(clips)):
            stream = random.select([b])
            made = [self._purify(clip, stream, last=last) for clip in clips[b]]
            videos.append(torch.stack(made, dim=1))
        return torch.stack(videos, dim=1).to(clips.dtype)

    def _wrapped(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        def ballots(clips: Tensor) -> Tensor:
            made = self.candidates(clips.detach(), random, last=not self.params.vote)
            return torch.stack([predict(straight_through(clips, one)) for one in made])

        if not self.params.vote or self.params.mode != "videopure":
            return lambda clips: ballots(clips)[0]
        return Vote(ballots, self.params.merge)

    def _purify(self, frames: Tensor, random: VideoRandom, *, last: bool) -> Tensor:
        """Return the candidates ``[M, T, 3, H, W]`` of one clip ``[T, 3, H, W]``."""
        size = (int(frames.shape[-2]), int(frames.shape[-1]))
        seen = resized(frames, self._working_size(size))
        working = (int(seen.shape[-2]), int(seen.shape[-1]))
        z = self.model.encode(seen)
        if not self.steps:
            ends = [z]
        elif self.params.mode == "videopure":
            flow = self._flow(seen, z)
            ends = self._guided(self.invert(z, self.params.broadcast_frame), z, flow)
        elif self.params.mode == "ddim-inversion":
            ends = [self.denoise(self.invert(z, None))]
        else:
            ends = [self._renoised(z, random)]
        kept = ends[-1:] if last else ends
        return torch.stack([resized(self.model.decode(end, working), size) for end in kept])

    def invert(self, z: Tensor, broadcast: int | None) -> Tensor:
        """Return latents at the last of :attr:`steps`.

        At each step the noise is predicted at the step's own number and leads from the level
        before to its level, as in the published code and ``DDIMInverseScheduler``.

        Args:
            z: ``[1, C, T, h, w]`` encoded clip.
            broadcast: frame whose noise all frames get, the last one if there are fewer; ``None``
                leaves every frame its own.
        """
        before = -1
        for step in self.steps:
            eps = self.model.predict_eps(z, step)
            if broadcast is not None:
                frame = min(broadcast, eps.shape[2] - 1)
                eps = eps[:, :, frame : frame + 1].expand_as(eps)
            levels = self.model.schedule.abar(before), self.model.schedule.abar(step)
            z = sched.ddim_invert_step(z, eps, *levels)
            before = step
        return z

    def denoise(self, z: Tensor) -> Tensor:
        """Return latents denoised from the last of :attr:`steps` by DDIM, unguided."""
        for step, after in self._downwards():
            abar, abar_next = self.model.schedule.abar(step), self.model.schedule.abar(after)
            eps = self.model.predict_eps(z, step)
            z = sched.ddim_step(sched.predict_x0(z, eps, abar), eps, abar, abar_next)
        return z

    def _guided(self, z: Tensor, reference: Tensor, flow: Tensor) -> list[Tensor]:
        """Return the clean latents that each step of the denoising predicts, and its end."""
        guidance, ends = self._guidance, []
        for step, after in self._downwards():
            abar, abar_next = self.model.schedule.abar(step), self.model.schedule.abar(after)
            eps, level = self.model.predict_eps(z, step), Level.of(abar, abar_next)
            moved = guidance.move(z, eps, reference, flow, level)
            ends.append(sched.predict_x0(moved, eps, abar))
            z = sched.ddim_step(sched.predict_x0(z, eps, abar), eps, abar, abar_next)
        # The code guides the end with the noise and the level of the last step.
        return [*ends, guidance.move(z, eps, reference, flow, level)]

    def _renoised(self, z: Tensor, random: VideoRandom) -> Tensor:
        """Return latents to which noise was added and removed again."""
        last = self.steps[-1]
        levels = self.model.schedule
        noise = random.normal(*z.shape[1:]).to(z)
        z = sched.add_noise(z, noise, levels.abar(last))
        if self.params.mode == "ddim":
            return self.denoise(z)
        for step in range(last, -1, -1):
            abar, abar_next = levels.abar(step), levels.abar(step - 1)
            x0 = sched.predict_x0(z, self.model.predict_eps(z, step), abar)
            # The last step returns the mean.
            drawn = random.normal(*z.shape[1:]).to(z) if step > 0 else None
            z = sched.ddpm_step(z, x0, abar, abar_next, drawn)
        return z

    def _downwards(self) -> list[tuple[int, int]]:
        """Return pairs of a step and the one after it, from the noisiest to the clean end."""
        chain = [*reversed(self.steps), -1]
        return list(pairwise(chain))

    def _flow(self, frames: Tensor, z: Tensor) -> Tensor:
        """Return the flow on the latents' grid, ``[1, T - 1, 2, h, w]``."""
        p = self.params
        if not self._guides_in_time:
            return z.new_zeros(1, z.shape[2] - 1, 2, *z.shape[-2:])
        flow = estimate_flow(
            frames.unsqueeze(0), p.flow, weights=p.flow_weights, longest=p.flow_longest
        )
        ratio = self.model.space.ratio
        grid = (-(-frames.shape[-2] // ratio), -(-frames.shape[-1] // ratio))
        flow = to_grid(flow, grid)
        # Latents of the margin that the model needs do not move.
        margins = (0, z.shape[-1] - grid[1], 0, z.shape[-2] - grid[0])
        return torch.nn.functional.pad(flow, margins)

    @property
    def _guides_in_time(self) -> bool:
        p = self.params
        return p.mode == "videopure" and p.invert_steps > 0 and p.w_temp > 0 and p.scale > 0

    @property
    def _guidance(self) -> Guidance:
        p = self.params
        return Guidance(
            w_temp=p.w_temp,
            w_sp=p.w_sp,
            sign_sp=p.sign_sp,
            scale=p.scale,
            steps=p.guide_steps,
            strength=p.strength,
        )

    def _working_size(self, size: tuple[int, int]) -> tuple[int, int]:
        short = min(size)
        if self.params.side == 0 or self.params.side == short:
            return size
        height, width = (max(1, round(s * self.params.side / short)) for s in size)
        return height, width


def resized(frames: Tensor, size: tuple[int, int]) -> Tensor:
    """Return frames ``[T, 3, H, W]`` at another size; bilinear, filtered where they shrink."""
    if frames.shape[-2:] == size:
        return frames
    return interpolate(
        frames, size=size, mode="bilinear", align_corners=False, antialias=True
    ).clamp(0, 1)
