"""Own networks against the official ones: keys, weights, activations, logits and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from golden_files import FOLDER, arrays, clips, facts, fill, gap, value
from golden_nets import BUILDERS, build
from torch import nn
from vcr_models.nets.memory import recompute
from vcr_models.zoo.state import renamed_from_mmaction

OTHERS = ("swin_mm", "tanet_mm", "videomae_mm", "videomaev2_mm")
"""Fixtures of networks that mmaction2 builds, or of other names of a network that is tested."""


def names(suffix: str) -> list[str]:
    found = sorted(path.name.removesuffix(suffix) for path in FOLDER.glob(f"*{suffix}"))
    return [name for name in found if not name.startswith(OTHERS)]


@pytest.mark.parametrize("name", names(".keys.json.gz"))
def test_full_size_keys_and_shapes_are_the_official_ones(name):
    wanted = facts(f"{name}.keys.json.gz")
    with torch.device("meta"):
        network = build(wanted)
    state = network.state_dict()
    assert {key: list(value.shape) for key, value in state.items()} == {
        key: shape for key, (shape, _) in wanted["state_dict"].items()
    }
    assert len(state) == wanted["n_entries"]
    assert sum(p.numel() for p in network.parameters()) == wanted["n_params"]


@pytest.mark.parametrize("name", names(".tiny.json"))
def test_reduced_networks_compute_what_the_official_ones_do(name):
    wanted, kept = facts(f"{name}.tiny.json"), arrays(name)
    network = build(wanted)
    state = network.state_dict()
    assert {key: list(v.shape) for key, v in state.items()} == wanted["state_dict"]
    total = sum(float(np.abs(value(k, tuple(v.shape)).astype(np.float64)).sum())
                for k, v in state.items()
                if v.is_floating_point() and k not in wanted["kept_constructed"])  # fmt: skip
    assert total == pytest.approx(wanted["weights_abs_sum"], rel=1e-6)
    fill(network)
    x = clips(wanted["input"]).requires_grad_()
    logits = network(x)
    shown = logits.softmax(-1) if wanted["output_is_probabilities"] else logits
    assert gap(shown.detach(), kept["logits"]) <= 2e-5
    wave = torch.cos(torch.arange(shown.shape[1], dtype=torch.float32))
    (gradient,) = torch.autograd.grad((wave * shown).sum(), x, retain_graph=True)
    assert gap(gradient.flatten()[:256], kept["grad_cos_head"]) <= 1e-4
    if wanted["grad_sum"] is not None:
        (gradient,) = torch.autograd.grad(shown.sum(), x)
        assert gap(gradient.flatten()[:256], kept["grad_sum_head"]) <= 1e-4


@pytest.mark.parametrize("name", [n for n in names(".tiny.json") if "logits_fp64" in arrays(n)])
def test_in_float64_the_last_digits_agree_as_well(name):
    wanted = facts(f"{name}.tiny.json")
    network = fill(build(wanted)).double()
    with torch.no_grad():
        logits = network(clips(wanted["input"]).double())
    shown = logits.softmax(-1) if wanted["output_is_probabilities"] else logits
    assert gap(shown, arrays(name)["logits_fp64"]) <= 1e-7


@pytest.mark.parametrize("name", names(".shallow.json"))
def test_networks_of_full_width_and_few_layers(name):
    wanted = facts(f"{name}.shallow.json")
    network = fill(build(wanted))
    with torch.no_grad():
        logits = network(clips(wanted["input"]))
    shown = logits.softmax(-1) if wanted["output_is_probabilities"] else logits
    assert gap(shown, wanted["logits_full"]) <= 2e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", names(".full.json"))
def test_networks_of_full_size(name):
    wanted = facts(f"{name}.full.json")
    network = fill(build(wanted))
    with torch.no_grad():
        assert gap(network(clips(wanted["input"])), wanted["logits_full"]) <= 2e-5


@pytest.mark.parametrize("name", names(".tiny.json"))
def test_eps_and_activations_are_those_of_the_official_modules(name):
    """Two norms that differ in eps alone agree to five digits, so they are compared as such."""
    wanted = facts(f"{name}.tiny.json")["norms_and_activations"]
    own = build(facts(f"{name}.tiny.json"))
    modules = list(own.named_modules())
    for pattern, text in wanted.items():
        found = {_described(m) for key, m in modules if _starred(key) == pattern}
        found.discard("")
        words = set(text.split("|"))
        assert found <= words, (pattern, found, words)
        if any("eps" in word for word in words):
            assert found & words, f"no module {pattern} ({text})"


def _starred(key: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in key.split("."))


def _described(module: nn.Module) -> str:
    name = type(module).__name__
    name = {"RootMeanSquareNorm": "RMSNorm", "ChannelNorm": "LayerNorm"}.get(name, name)
    if hasattr(module, "eps"):
        return f"{name} eps={module.eps:g}"
    known = ("GELU", "QuickGELU", "ReLU", "Tanh", "Sigmoid")
    return name if name in known else ""


@pytest.mark.parametrize("name", ["videomae", "internvideo2", "onepeace", "tadaformer"])
def test_recomputing_changes_no_bit(name):
    wanted = facts(f"{name}.tiny.json")
    network = fill(build(wanted))
    found = []
    for on in (False, True):
        assert recompute(network, on=on) >= 1
        x = clips(wanted["input"]).requires_grad_()
        logits = network(x)
        (gradient,) = torch.autograd.grad(logits.square().sum(), x)
        found.append((logits.detach(), gradient))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("name", ["videomae_mm_vit_b16_k400", "videomaev2_mm_vit_s16_k400"])
def test_mmactions_names_are_a_bijection_onto_the_official_ones(name):
    theirs = facts(f"{name}.keys.json.gz")["state_dict"]
    ours = facts(name.replace("_mm", "").replace("videomaev2", "videomae") + ".keys.json.gz")
    renamed = {renamed_from_mmaction(key): shape for key, shape in theirs.items()}
    assert len(renamed) == len(theirs)
    assert renamed.pop("pos_embed")[0] == [1, 1568, theirs["backbone.fc_norm.weight"][0][0]]
    assert {k: v[0] for k, v in renamed.items()} == {k: v[0] for k, v in ours["state_dict"].items()}


def test_every_fixture_is_used_or_named():
    every = {path.name.split(".")[0] for path in FOLDER.glob("*.json*")}
    for name in every:
        assert name.startswith(OTHERS) or name.partition("_")[0] in BUILDERS, name
