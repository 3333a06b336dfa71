"""A defense wraps a prediction; the model object stays what it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import vcr_core
from torch import nn
from vcr_core.adaptive import DefenseLink, View
from vcr_core.metering import frozen, modules_of
from vcr_core.protocols import PreparedDefense
from vcr_core.randomness import VideoRandom
from vcr_core.testing.checks.prepared import prepare_defense
from vcr_defenses.plugin import vcr_register_defenses

SPECS = {spec.name: spec for spec in vcr_register_defenses()}
CHEAP: dict[str, dict[str, Any]] = {
    "advit": {"flow": "zero", "frames": 1, "threshold": 1.0},
    "feature-squeezing": {"means_window": 3, "threshold": 1.0},
    "randomized-smoothing": {"n": 11},
    "denoised-smoothing": {"n": 2, "abstain": False},
    "diffpure": {"denoise_steps": 1},
    "freqpure": {"denoise_steps": 1},
}


def portrait(model: Any) -> list[Any]:
    """Return what a defense could leave on a model."""
    seen: list[Any] = []
    for module in modules_of(model):
        seen += [(name, id(m), m.training, sorted(vars(m))) for name, m in module.named_modules()]
        seen += [(m._forward_hooks, m._forward_pre_hooks, m._backward_hooks) and
                 [len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)]
                 for m in module.modules()]  # fmt: skip
        seen += [
            (name, t.data_ptr(), t._version, t.requires_grad, t.grad is None)
            for name, t in [*module.named_parameters(), *module.named_buffers()]
        ]
    return [*seen, sorted(vars(model)) if not isinstance(model, nn.Module) else None, type(model)]


@pytest.mark.parametrize("name", sorted(SPECS))
def test_the_model_is_what_it_was(name):
    spec = SPECS[name]
    model = frozen(vcr_core.load("model", "tiny-r3d"))
    defense = vcr_core.load("defense", name, **CHEAP.get(name, {}))
    frames = model.clip.frames
    video = torch.rand(1, frames, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    if isinstance(defense, PreparedDefense):
        prepare_defense(defense, video[:, None])
    before = portrait(model)
    view = View(
        model,
        torch.arange(frames)[None],
        [DefenseLink(name, defense, spec.gradient, spec.stochastic)],
    )
    with torch.no_grad():
        view.detailed(video, VideoRandom([1]))
    if spec.defense_kind not in ("purify", "smooth"):
        leaf = video.clone().requires_grad_()
        view(leaf, VideoRandom([1])).amax(dim=1).sum().backward()
    assert portrait(model) == before
