"""What the adversary may change: norm, radius, frames, region; projection and verification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch

from vcr_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

Norm: TypeAlias = Literal["linf", "l2", "l1", "l0", "none"]

TOLERANCE = 1e-6
"""Slack of the verification in units of the pixel range (relative for norms that sum)."""


def as_fraction(value: float | str) -> float:
    """Return a number from a number or a fraction such as ``"8/255"``.

    Raises:
        UsageError: if it is neither.
    """
    if isinstance(value, str):
        try:
            return float(Fraction(value.replace(" ", "")))
        except (ValueError, ZeroDivisionError):
            top, slash, bottom = value.partition("/")
            try:
                return float(top) / float(bottom) if slash else float(value)
            except (ValueError, ZeroDivisionError) as error:
                raise UsageError(
                    f"{value!r} is neither a number nor a fraction such as '8/255'"
                ) from error
    return float(value)


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """A constraint around the clean video.

    Attributes:
        norm: ``linf``, ``l2``, ``l1``, ``l0`` (changed pixels as a fraction of all pixels of the
            video) or ``none``.
        eps: radius; in the pixel range [0, 1] for ``linf``, the norm over the whole video for
            ``l2`` and ``l1``. A tensor ``[B]`` gives each video its own, never above the run's.
        frames: positions of the frames that may change; ``None`` means all.
        per_frame_eps: an ``linf`` radius per frame, which replaces ``eps``.
        region: ``(top, left, bottom, right)`` as fractions of height and width.
        quantize: whether the result is stored with 8 bits a value (half to even).
    """

    norm: Norm = "linf"
    eps: float | Tensor = 8 / 255
    frames: tuple[int, ...] | None = None
    per_frame_eps: tuple[float, ...] | None = None
    region: tuple[float, float, float, float] | None = None
    quantize: bool = True

    def with_eps(self, eps: float | Tensor) -> ThreatModel:
        """Return the same threat with another radius (or one radius a video)."""
        return replace(self, eps=eps)

    def select(self, rows: Tensor) -> ThreatModel:
        """Return the threat of some videos of the batch."""
        return self if isinstance(self.eps, float | int) else replace(self, eps=self.eps[rows])

    @property
    def is_zero(self) -> bool:
        """Whether nothing may change at all."""
        if self.norm == "none" or self.per_frame_eps is not None:
            return self.per_frame_eps is not None and not any(self.per_frame_eps)
        return isinstance(self.eps, float | int) and self.eps == 0

    def mask(self, video: Tensor) -> Tensor | None:
        """Return ``[1, T, 1, H, W]``, 1 where change is allowed, or ``None`` for everywhere."""
        if self.frames is None and self.region is None:
            return None
        _, count, _, height, width = video.shape
        mask = video.new_ones(1, count, 1, height, width)
        if self.frames is not None:
            outside = [f for f in self.frames if not 0 <= f < count]
            if outside:
                raise UsageError(
                    f"threat.frames names frame {outside[0]}, the video has frames 0 to {count - 1}"
                )
            keep = mask.new_zeros(count)
            keep[list(self.frames)] = 1
            mask = mask * keep.view(1, count, 1, 1, 1)
        if self.region is not None:
            top, left, bottom, right = self.region
            box = mask.new_zeros(height, width)
            rows = slice(round(top * height), round(bottom * height))
            columns = slice(round(left * width), round(right * width))
            box[rows, columns] = 1
            mask = mask * box
        return mask

    def radius(self, video: Tensor) -> Tensor:
        """Return the radius broadcastable to ``[B, T, 1, 1, 1]`` (``linf``) or ``[B]`` (others)."""
        if self.per_frame_eps is not None:
            if len(self.per_frame_eps) != video.shape[1]:
                raise UsageError(
                    f"threat.per_frame_eps has {len(self.per_frame_eps)} values, "
                    f"the video has {video.shape[1]} frames"
                )
            return video.new_tensor(self.per_frame_eps).view(1, -1, 1, 1, 1)
        if isinstance(self.eps, float | int):
            flat = video.new_full((video.shape[0],), float(self.eps))
        else:
            flat = self.eps.to(video)
        return flat.view(-1, 1, 1, 1, 1) if self.norm == "linf" else flat

    def bounds(self, clean: Tensor) -> tuple[Tensor, Tensor]:
        """Return the lowest and the highest value of each pixel, for ``linf`` and ``none``.

        A loop that projects often computes them once: ``adv.clamp(low, high)``.
        """
        if self.norm == "linf":
            radius = self.radius(clean)
            low, high = (clean - radius).clamp_min_(0), (clean + radius).clamp_max_(1)
        else:
            low, high = clean.new_zeros(clean.shape), clean.new_ones(clean.shape)
        mask = self.mask(clean)
        if mask is not None:
            free = mask.bool()
            low, high = low.where(free, clean), high.where(free, clean)
        return low, high

    def project(self, adv: Tensor, clean: Tensor) -> Tensor:
        """Return ``adv`` moved into mask, ball and pixel range; both ``[B, T, C, H, W]``.

        With ``eps = 0`` the result is ``clean`` bit for bit.
        """
        if self.is_zero:
            return clean.clone()
        if self.norm == "linf":
            lowest, highest = self.bounds(clean)
            return adv.clamp(lowest, highest)
        mask = self.mask(clean)
        if mask is not None:
            adv = clean + mask * (adv - clean)
        if self.norm == "l2":
            delta = adv - clean
            size: Tensor = delta.flatten(1).norm(dim=1).clamp_min(1e-30)
            scale = (self.radius(clean) / size).clamp_max(1)
            return (clean + delta * scale.view(-1, 1, 1, 1, 1)).clamp(0, 1)
        if self.norm == "l1":
            return (clean + _project_l1(adv.clamp(0, 1) - clean, self.radius(clean))).clamp(0, 1)
        if self.norm == "l0":
            return clean + _project_l0(adv.clamp(0, 1) - clean, self.radius(clean))
        return adv.clamp(0, 1)

    def violation(self, adv: Tensor, clean: Tensor) -> Tensor:
        """Return ``[B]``: how far outside of mask, ball and range each video is; 0 when inside.

        The unit is the pixel range for ``linf`` and the mask, the norm's own for the others.
        """
        flat = adv.flatten(1)
        outside = (flat.amax(dim=1) - 1).maximum(-flat.amin(dim=1)).clamp_min(0)
        delta = adv - clean
        mask = self.mask(clean)
        if mask is not None:
            outside = outside.maximum((delta * (1 - mask)).abs().flatten(1).amax(dim=1))
        if self.norm == "none":
            return outside
        if self.norm == "linf":
            excess = (delta.abs() - self.radius(clean)).flatten(1).amax(dim=1)
        elif self.norm == "l2":
            excess = delta.flatten(1).norm(dim=1) - self.radius(clean)
        elif self.norm == "l1":
            excess = delta.flatten(1).abs().sum(dim=1) - self.radius(clean)
        else:
            excess = _changed_fraction(delta) - self.radius(clean)
        return outside.maximum(excess.clamp_min(0))

    def within(self, adv: Tensor, clean: Tensor) -> Tensor:
        """Return ``[B]`` bool: inside up to :meth:`slack`."""
        return self.violation(adv, clean) <= self.slack(clean)

    def slack(self, clean: Tensor) -> float:
        """Return the violation that rounding errors explain, from :data:`TOLERANCE`."""
        if self.norm in ("l2", "l1"):
            return TOLERANCE * float(1 + self.radius(clean).max())
        return TOLERANCE

    def store(self, adv: Tensor, clean: Tensor) -> Tensor:
        """Return ``adv`` as it would be stored; see :class:`Storage` for repeated use."""
        return Storage(self, clean)(adv)


class Storage:
    """Rounds videos to what 8 bits can hold, inside the threat's ball.

    Rounding is half to even. For ``linf`` the result lies in the ball whatever is given: a query
    outside of it is answered on the nearest video that could be the attack's result. Where the
    ball's border lies between two levels, the inner one is taken; where the ball holds no level at
    all, the clean value is rounded. For ``l2`` and ``l1`` a video inside the ball that rounding
    would push out is rounded towards the clean one.

    Args:
        threat: the threat model; without ``quantize`` nothing is changed.
        clean: ``[B, T, C, H, W]`` in [0, 1].
    """

    def __init__(self, threat: ThreatModel, clean: Tensor) -> None:
        self._threat = threat
        self._clean = clean
        self._low: Tensor | None = None
        self._high: Tensor | None = None
        if threat.quantize and threat.norm == "linf" and clean.numel():
            low, high = threat.bounds(clean)
            self._low = low.mul_(255).sub_(1e-3).ceil_()
            self._high = high.mul_(255).add_(1e-3).floor_()
            is_narrow = float(threat.radius(clean).min()) < 0.5 / 255
            if is_narrow or threat.frames is not None or threat.region is not None:
                self._fill_empty(self._low, self._high)

    def __call__(
        self, adv: Tensor, rows: Tensor | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return ``adv`` as stored, in a new tensor or in ``out``.

        Args:
            adv: ``[b, T, C, H, W]``, not modified.
            rows: which videos of the batch it holds; all when absent.
            out: a tensor of the same shape to write to; it spares an allocation where that counts.
        """
        if not self._threat.quantize:
            return adv.clone() if out is None else out.copy_(adv)
        levels = torch.mul(adv, 255, out=out).round_()
        if self._low is not None and self._high is not None:
            return clamp_rows(levels, self._low, self._high, rows).div_(255)
        levels.clamp_(0, 255)
        if self._threat.norm in ("l2", "l1") and levels.numel():
            self._keep_inside(levels, adv, rows)
        return levels.div_(255)

    def _fill_empty(self, low: Tensor, high: Tensor) -> None:
        """Use the rounded clean value where the bounds hold no whole level."""
        empty = low > high
        if bool(empty.any()):
            middle = (self._clean * 255).round_()
            low.copy_(low.where(~empty, middle))
            high.copy_(high.where(~empty, middle))

    def _keep_inside(self, levels: Tensor, adv: Tensor, rows: Tensor | None) -> None:
        """Round towards the clean video where plain rounding would leave the ball."""
        clean = self._clean if rows is None else self._clean[rows]
        threat = self._threat if rows is None else self._threat.select(rows)
        outside = threat.violation(levels / 255, clean) > 0
        if bool(outside.any()):
            base = (clean * 255).round_()
            toward = base + (adv * 255 - base).trunc_()
            levels.copy_(levels.where(~outside.view(-1, 1, 1, 1, 1), toward))


def Linf(eps: float | str = "8/255", **options: object) -> ThreatModel:
    """Return an L-infinity threat, e.g. ``Linf("8/255")``."""
    return _make("linf", eps, options)


def L2(eps: float | str, **options: object) -> ThreatModel:
    """Return an L2 threat; the norm is over the whole video."""
    return _make("l2", eps, options)


def L1(eps: float | str, **options: object) -> ThreatModel:
    """Return an L1 threat; the norm is over the whole video."""
    return _make("l1", eps, options)


def L0(eps: float | str, **options: object) -> ThreatModel:
    """Return an L0 threat; ``eps`` is the fraction of pixels that may change."""
    return _make("l0", eps, options)


def Unbounded(**options: object) -> ThreatModel:
    """Return a threat without a norm, for methods whose constraint is none."""
    return _make("none", 0.0, options)


def _make(norm: Norm, eps: float | str, options: dict[str, object]) -> ThreatModel:
    value = as_fraction(eps)
    if value < 0:
        raise UsageError(f"eps = {eps!r}: a radius cannot be negative")
    if norm == "linf" and value > 1:
        raise UsageError(
            f"eps = {eps!r} is more than the whole pixel range [0, 1]; did you mean '{eps}/255'?"
        )
    return ThreatModel(norm=norm, eps=value, **options)  # type: ignore[arg-type]


def clamp_rows(videos: Tensor, low: Tensor, high: Tensor, rows: Tensor | None) -> Tensor:
    """Clamp ``videos [b, ...]`` in place to the bounds ``[B, ...]`` of ``rows``; return them.

    Row by row, which spares a copy of both bounds: rows may repeat, as in pairs of candidates.
    """
    if rows is None:
        return videos.clamp_(low, high)
    for video, row in zip(videos, rows.tolist(), strict=True):
        video.clamp_(low[row], high[row])
    return videos


def frame_positions(frames: int | Sequence[int] | None, count: int) -> tuple[int, ...] | None:
    """Return frame positions from positions or from a number of evenly spaced frames.

    Raises:
        UsageError: if more frames are asked for than there are.
    """
    if frames is None:
        return None
    if isinstance(frames, int):
        if not 0 < frames <= count:
            raise UsageError(f"threat.frames = {frames}: the video has {count} frames")
        return tuple(((2 * i + 1) * count) // (2 * frames) for i in range(frames))
    return tuple(frames)


def _changed_fraction(delta: Tensor) -> Tensor:
    changed = (delta.abs().amax(dim=2) > 0).flatten(1)
    return changed.to(delta.dtype).mean(dim=1)


def _project_l1(delta: Tensor, radius: Tensor) -> Tensor:
    """Euclidean projection onto the L1 ball: Duchi et al., ICML 2008, figure 1, per video."""
    flat = delta.flatten(1)
    size = flat.abs()
    ordered = size.sort(dim=1, descending=True).values
    total = ordered.cumsum(dim=1) - radius.unsqueeze(1)
    rank = ordered.new_tensor(range(1, ordered.shape[1] + 1))
    support = (ordered * rank > total).sum(dim=1, keepdim=True).clamp_min(1)
    shrink = (total.gather(1, support - 1) / support).clamp_min(0)
    inside = size.sum(dim=1, keepdim=True) <= radius.unsqueeze(1)
    shrunk = flat.sign() * (size - shrink).clamp_min(0)
    return flat.where(inside, shrunk).view_as(delta)


def _project_l0(delta: Tensor, fraction: Tensor) -> Tensor:
    """Keep the pixels with the largest change over channels, per video."""
    strength = delta.abs().amax(dim=2).flatten(1)
    keep = delta.new_zeros(strength.shape)
    for row, share in enumerate(fraction.tolist()):
        count = int(share * strength.shape[1] + 1e-9)
        keep[row, strength[row].topk(count).indices] = 1
    batch, frames, _, height, width = delta.shape
    return delta * keep.view(batch, frames, 1, height, width)
