"""Checks of classifiers."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from vcr_core.metering import modules_of
from vcr_core.protocols import VideoClassifier
from vcr_core.specs import ClipSpec, ModelSpec
from vcr_core.testing.checks.ambient import under_state
from vcr_core.testing.checks.inputs import video
from vcr_core.testing.contract import Subject, require

_SOME = 24
"""Frames of a clip for a model that looks at all there are."""

_kept: dict[tuple[object, ...], VideoClassifier] = {}


def model_of(subject: Subject) -> VideoClassifier:
    """Return the model; one is kept for all of its checks, because loading is what takes time."""
    key = (subject.spec, subject.variant, repr(sorted(subject.given().items())))
    if key not in _kept:
        _kept.clear()
        _kept[key] = subject.build()
    return _kept[key]


def clips_for(model: VideoClassifier, count: int = 1, side: int = 32, seed: int = 1) -> Tensor:
    """Return clips ``[count, T', 3, side, side]`` with the model's own number of frames."""
    return video(seed, count, _length(model), side, side)


def _length(model: VideoClassifier) -> int:
    """Return frames of a clip; of models that take any number, few."""
    return min(model.clip.frames, _SOME) if model.clip.policy == "all" else model.clip.frames


def logits_shape(subject: Subject) -> None:
    """Logits are finite floats ``[N, V_crop, num_classes]``."""
    spec = cast(ModelSpec, subject.spec)
    model = model_of(subject)
    with torch.no_grad():
        z = model.logits(clips_for(model, 2))
    require(z.dim() == 3, f"logits have shape {list(z.shape)}; the contract is [N, V_crop, K]")
    require(z.shape[0] == 2, f"2 clips went in, logits of {z.shape[0]} came out")
    require(z.shape[1] >= 1, "logits of no view came out")
    require(
        z.shape[2] == spec.num_classes,
        f"logits have {z.shape[2]} classes, the spec says {spec.num_classes}",
    )
    require(z.is_floating_point(), f"logits are {z.dtype}")
    require(bool(torch.isfinite(z).all()), "logits are not finite")


def logits_not_probabilities(subject: Subject) -> None:
    """Rows are not all in [0, 1] summing to 1."""
    model = model_of(subject)
    with torch.no_grad():
        z = model.logits(clips_for(model, 3))
    in_range = bool(((z >= 0) & (z <= 1)).all())
    normalised = bool(((z.sum(dim=-1) - 1).abs() < 1e-4).all())
    require(
        not (in_range and normalised),
        "every row is in [0, 1] and sums to 1: these are probabilities; return logits",
    )


def eval_deterministic(subject: Subject) -> None:
    """Same input, same bits, whatever the ambient random state."""
    model = model_of(subject)
    clips = clips_for(model, 2)

    def predict() -> Tensor:
        with torch.no_grad():
            return model.logits(clips)

    first = under_state(1, predict, "a prediction")
    second = under_state(2, predict, "a prediction")
    require(torch.equal(first, second), "two predictions of the same clips differ")


def _gradient(subject: Subject) -> tuple[Tensor, Tensor]:
    model = model_of(subject)
    clips = clips_for(model).requires_grad_()
    z = model.logits(clips)
    require(z.requires_grad, "logits carry no graph: no gradient reaches the pixels")
    log_p = z.mean(dim=1).log_softmax(dim=-1)
    # The least likely class: the gradient of a saturated prediction may underflow.
    score = log_p.amin(dim=-1).sum()
    (gradient,) = torch.autograd.grad(score, clips, allow_unused=True)
    require(gradient is not None, "the graph of the logits does not reach the pixels")
    return gradient, clips


def gradient_finite(subject: Subject) -> None:
    """The gradient reaches the pixels and is finite."""
    gradient, clips = _gradient(subject)
    require(gradient.shape == clips.shape, "the gradient has another shape than the clips")
    require(bool(torch.isfinite(gradient).all()), "the gradient is not finite")


def gradient_nonzero(subject: Subject) -> None:
    """The gradient of a class score is not zero."""
    gradient, _ = _gradient(subject)
    require(bool((gradient != 0).any()), "the gradient is zero everywhere")


def views_independent(subject: Subject) -> None:
    """Clips together give what each gives alone, within 1e-4."""
    model = model_of(subject)
    clips = clips_for(model, 3)
    with torch.no_grad():
        together = model.logits(clips)
        alone = torch.cat([model.logits(clip[None]) for clip in clips])
    gap = float((together - alone).abs().max())
    scale = max(1.0, float(alone.abs().max()))
    require(
        gap <= 1e-4 * scale,
        f"a clip's logits differ by {gap:.3g} with other clips in the batch "
        "(batch statistics, or clips taken for frames?)",
    )


def gradients_independent(subject: Subject) -> None:
    """A clip's gradient alone is the one that it has in a batch, within a hundredth."""
    model = model_of(subject)
    clips = clips_for(model, 2)
    together = _ascent(model, clips)
    alone = torch.cat([_ascent(model, clip[None]) for clip in clips])
    for row, (one, other) in enumerate(zip(together, alone, strict=True)):
        gap, size = float((one - other).norm()), float(one.norm())
        require(
            gap <= 1e-2 * max(size, 1e-12),
            f"clip {row}: its gradient alone is another one than in a batch (a difference of "
            f"{gap:.3g}, its length is {size:.3g}); the CPU's batch norm does so in evaluation "
            "mode where the gradient behind it has channels last: make that contiguous",
        )


def _ascent(model: VideoClassifier, clips: Tensor) -> Tensor:
    """Return the gradient of the least likely class's score of each clip."""
    leaf = clips.clone().requires_grad_()
    logits = model.logits(leaf)
    least = logits.detach().mean(dim=1).argmin(dim=1)
    score = logits.mean(dim=1).gather(1, least[:, None]).sum()
    (gradient,) = torch.autograd.grad(score, leaf)
    return gradient


def input_untouched(subject: Subject) -> None:
    """The input tensor is not changed in place."""
    model = model_of(subject)
    clips = clips_for(model)
    before = clips.clone()
    with torch.no_grad():
        model.logits(clips)
    require(torch.equal(clips, before), "the model changed its input in place")


def any_resolution(subject: Subject) -> None:
    """Frames of 64 to 400 pixels, odd and oblong, are accepted."""
    model = model_of(subject)
    classes = cast(ModelSpec, subject.spec).num_classes
    for height, width in ((64, 64), (65, 97), (400, 301)):
        clips = video(3, 1, _length(model), height, width)
        with torch.no_grad():
            z = model.logits(clips)
        require(
            z.shape[0] == 1 and z.shape[-1] == classes,
            f"frames of {height}x{width} gave logits of shape {list(z.shape)}",
        )
        require(bool(torch.isfinite(z).all()), f"frames of {height}x{width}: not finite")


def labels_match(subject: Subject) -> None:
    """Labels and clip agree with the spec."""
    spec = cast(ModelSpec, subject.spec)
    model = model_of(subject)
    weights = [w for w in spec.weights if w.variant == subject.variant]
    space = (weights[0].label_space if weights else "") or spec.label_space
    require(
        model.labels.id == space,
        f"the model's label space is {model.labels.id!r}, the spec says {space!r}",
    )
    require(
        len(model.labels) == spec.num_classes,
        f"{len(model.labels)} labels for {spec.num_classes} classes",
    )
    names = model.labels.names
    require(len(set(names)) == len(names), "two classes have the same name")
    require(isinstance(model.clip, ClipSpec), "model.clip is not a ClipSpec")
    require(isinstance(model, VideoClassifier), "the model lacks logits, to, labels or clip")


def parameters_frozen(subject: Subject) -> None:
    """Parameters need no gradient; nothing is in training mode; a gradient pass changes nothing."""
    model = model_of(subject)
    networks = modules_of(model)
    for network in networks:
        free = [n for n, p in network.named_parameters() if p.requires_grad]
        require(not free, f"parameter {free[:1]} needs a gradient; call requires_grad_(False)")
        training = [n or "the network" for n, m in network.named_modules() if m.training]
        require(not training, f"{training[:1]} is in training mode; call eval()")
    before = [_state(n) for n in networks]
    clips = clips_for(model).requires_grad_(cast(ModelSpec, subject.spec).differentiable)
    z = model.logits(clips)
    if z.requires_grad:
        z.sum().backward()  # type: ignore[no-untyped-call]
    after = [_state(n) for n in networks]
    for old, new in zip(before, after, strict=True):
        changed = [k for k in old if not torch.equal(old[k], new[k])]
        require(not changed, f"a prediction changed {changed[:1]}")
    held = [n for net in networks for n, p in net.named_parameters() if p.grad is not None]
    require(not held, f"a gradient was left in parameter {held[:1]}")


def _state(network: nn.Module) -> dict[str, Tensor]:
    tensors = dict(network.named_parameters()) | dict(network.named_buffers())
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}
