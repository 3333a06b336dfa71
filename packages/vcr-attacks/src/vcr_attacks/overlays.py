"""What is trained once and laid over every video: a flicker, a border, a patch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import torch
from torch.nn.functional import pad
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.flickering import roughness, thickness
from vcr_attacks.framing import interior
from vcr_attacks.optimiser_loop import Adam
from vcr_attacks.parametrised import Allowed
from vcr_attacks.params.overlays import (
    FlickeringUniversalParams,
    FramingUniversalParams,
    PatchUniversalParams,
)
from vcr_attacks.patch import patch_corners, patch_side
from vcr_attacks.universal import DELTA_FILE, place, prepared
from vcr_attacks.universal_training import Training

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.losses import Loss
    from vcr_core.protocols import AttackContext, PrepareContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

    OverlayParams: TypeAlias = (
        FlickeringUniversalParams | FramingUniversalParams | PatchUniversalParams
    )


class Overlay(BaseVideoAttack):
    """An overlay that Adam trains on mini-batches of other videos.

    A targeted run trains one for each class that it may be after. Preparing costs ``epochs``
    gradients a training video, and a forward pass of each held-out one and epoch; attacking costs
    one forward pass and no gradient.
    """

    name: ClassVar[str]
    params: OverlayParams

    def prepare(self, ctx: PrepareContext) -> None:
        """Train on ``ctx.items`` and write ``delta.safetensors`` and ``training.json``.

        Stops and goes on at ends of epochs.
        """
        if not (ctx.folder / DELTA_FILE).exists():
            _OverlayTraining(self, ctx).run()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the videos with the overlay on them.

        Args:
            victim: asked once, to know whether it worked.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: of a targeted contest, the targets choose the overlays.
            ctx: the threat model, whose frames and region are kept, the folder of the artifact,
                and one generator per video.

        Raises:
            NotAvailable: if nothing was prepared, or not for a target.
            IncompatibleComponents: if it was prepared for another radius.
        """
        if ctx.threat.is_zero:
            return video.clone()
        variables = prepared(self.name, ctx, goals).to(video)
        point = ctx.threat.project(self.laid(variables, video, ctx.random), video)
        rows = victim.active()
        if rows.numel():
            victim.scores(point[rows], rows)
        return point

    @abstractmethod
    def start(self, first: Tensor, size: int) -> Tensor:
        """Return the variable before training.

        Args:
            first: a training video ``[1, T, C, H, W]``.
            size: side of the model's input.
        """

    @abstractmethod
    def laid(self, variables: Tensor, videos: Tensor, random: VideoRandom) -> Tensor:
        """Return ``videos [b, T, C, H, W]`` under overlays ``[b, ...]``, differentiably."""

    def shaken(self, variables: Tensor, random: VideoRandom) -> Tensor:
        """Return variables ``[b, ...]`` as they may turn up while training."""
        return variables

    def bounded(self, variable: Tensor, threat: ThreatModel) -> Tensor:
        """Return the variable where it may be."""
        return variable

    def penalty(self, variable: Tensor) -> Tensor | None:
        """Return what is added to the loss of every video, if anything."""
        return None


class _OverlayTraining(Training):
    def __init__(self, overlay: Overlay, ctx: PrepareContext) -> None:
        self._overlay = overlay
        super().__init__(overlay.params, ctx)

    def start(self, first: Tensor) -> Tensor:
        return self._overlay.start(first, self.ctx.model.clip.size)

    def shown(self, variable: Tensor, videos: Tensor, random: VideoRandom) -> Tensor:
        each = variable.expand(len(videos), *variable.shape)
        laid = self._overlay.laid(self._overlay.shaken(each, random), videos, random)
        rows = torch.arange(len(videos), device=videos.device)
        return Allowed(self.threat, videos)(laid, rows)

    def step(self, variable: Tensor, grad: Tensor) -> Tensor:
        adam = Adam(variable[None], self._overlay.params.lr, moments=self.memory)
        first = torch.zeros(1, dtype=torch.int64, device=variable.device)
        moved = variable - adam.move(grad[None], first)[0]
        self.memory = adam.moments
        return self._overlay.bounded(moved, self.threat)

    def penalty(self, variable: Tensor) -> Tensor | None:
        return self._overlay.penalty(variable)

    def loss(self, victim: Victim) -> Callable[[Tensor, Tensor], Tensor]:
        kind: Loss = self._overlay.params.loss
        return lambda logits, rows: victim.goals.loss(logits, rows, kind)


class FlickeringUniversal(Overlay):
    """The universal flicker: one colour offset a frame, the same for all videos.

    Pony, Naeh, Mannor, "Over-the-Air Adversarial Flickering Attacks against Video Recognition
    Networks", CVPR 2021, equations (1) to (5) over many videos. While training, the offsets are
    rolled in time by another number of frames for each video and pass, so that they work wherever
    the video begins. Longer videos repeat them.
    """

    name = "flickering-universal"
    params: FlickeringUniversalParams

    def __init__(self, params: FlickeringUniversalParams | None = None) -> None:
        self.params = params or FlickeringUniversalParams()

    def start(self, first: Tensor, size: int) -> Tensor:
        """Return no offset, ``[T, C]``."""
        return first.new_zeros(first.shape[1:3])

    def laid(self, variables: Tensor, videos: Tensor, random: VideoRandom) -> Tensor:
        """Return flickering videos."""
        index = torch.arange(videos.shape[1], device=videos.device) % variables.shape[1]
        return (videos + variables[:, index, :, None, None]).clamp(0, 1)

    def shaken(self, variables: Tensor, random: VideoRandom) -> Tensor:
        """Return the offsets, each video's rolled by as many frames as it draws."""
        if not self.params.roll:
            return variables
        by = random.integers(0, variables.shape[1], 1)[:, 0].tolist()
        return torch.stack([v.roll(s, dims=0) for v, s in zip(variables, by, strict=True)])

    def bounded(self, variable: Tensor, threat: ThreatModel) -> Tensor:
        """Return offsets within ``bound``, or the threat's radius in ``linf``."""
        if threat.norm != "linf":
            return variable.clamp(-self.params.bound, self.params.bound)
        radius = threat.radius(variable[None, ..., None, None])[0, ..., 0, 0]
        return variable.minimum(radius).maximum(-radius)

    def penalty(self, variable: Tensor) -> Tensor | None:
        """Return weighted thickness and roughness, in the scale of [-1, 1]."""
        params, offsets = self.params, 2 * variable[None]
        shape = params.thickness * thickness(offsets) + params.roughness * roughness(offsets)
        return params.weight * shape.sum()


class FramingUniversal(Overlay):
    """The universal border: the outermost pixels of all videos show the same.

    Zajac, Zolna, Rostamzadeh, Pinheiro, "Adversarial Framing for Image and Video Classification",
    AAAI 2019 (workshop), section 3. A border pixel is ``sigmoid(a)``, from grey. It overwrites the
    edge, so that sizes stay; on frames of another size it is resized.
    """

    name = "framing-universal"
    params: FramingUniversalParams

    def __init__(self, params: FramingUniversalParams | None = None) -> None:
        self.params = params or FramingUniversalParams()

    def start(self, first: Tensor, size: int) -> Tensor:
        """Return grey, ``[T or 1, C, S, S]``."""
        frames = first.shape[1] if self.params.scope == "frame" else 1
        return first.new_zeros(frames, first.shape[2], size, size)

    def laid(self, variables: Tensor, videos: Tensor, random: VideoRandom) -> Tensor:
        """Return framed videos."""
        border = place(variables.sigmoid(), videos.shape[1], (videos.shape[3], videos.shape[4]))
        return videos.where(interior(videos, self.params.width), border)


class PatchUniversal(Overlay):
    """The universal patch: a square that fools wherever it lies and whatever the video.

    Brown, Mane, Roy, Abadi, Gilmer, "Adversarial Patch", NeurIPS 2017 (workshop), equation (1),
    with the expectation over videos and places; not over scale and rotation. A pixel is
    ``sigmoid(a)``, from grey. It stands still; its place is drawn for each video and pass.
    """

    name = "patch-universal"
    params: PatchUniversalParams

    def __init__(self, params: PatchUniversalParams | None = None) -> None:
        self.params = params or PatchUniversalParams()

    def start(self, first: Tensor, size: int) -> Tensor:
        """Return grey, ``[T or 1, C, s, s]``."""
        frames = first.shape[1] if self.params.scope == "frame" else 1
        side = patch_side(self.params.area, size, size)
        return first.new_zeros(frames, first.shape[2], side, side)

    def laid(self, variables: Tensor, videos: Tensor, random: VideoRandom) -> Tensor:
        """Return videos with the patch somewhere, or in the middle."""
        height, width = videos.shape[-2:]
        side = patch_side(self.params.area, height, width)
        squares = place(variables.sigmoid(), videos.shape[1], (side, side))
        laid = []
        corners = patch_corners(videos, side, self.params.place, random).tolist()
        for video, square, (top, left) in zip(videos, squares, corners, strict=True):
            around = (left, width - side - left, top, height - side - top)
            covered = pad(torch.ones_like(square[:1, :1]), around).bool()
            laid.append(pad(square, around).where(covered, video))
        return torch.stack(laid)
