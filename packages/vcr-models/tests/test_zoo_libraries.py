"""Networks of libraries and our own behind the contract, at small sizes and with random weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from golden_files import arrays, clips, facts, fill, gap, ruled
from vcr_core.availability import availability
from vcr_core.plugins import registry
from vcr_models.zoo.build import classifier, library
from vcr_models.zoo.catalog import catalog

SMALL = {
    # A 2D network over segments, one of each kind.
    "tsn.r50-8seg-k400": (64, 25),
    "tsm.r50-8seg-k400": (64, 8),
    "tsm-nonlocal.r50-8seg-k400": (64, 8),
    "tin.r50-8seg-k400": (64, 8),
    "tanet.r50-8seg-k400": (64, 8),
    "trn.r50-sthv2": (64, 8),
    # 3D networks.
    "c2d.r50-8x8-k400": (64, 8),
    "i3d.r50-32x2-k400": (64, 32),
    "i3d-nonlocal.dot-r50-32x2-k400": (64, 32),
    "r2plus1d.r34-8x8-k400": (64, 8),
    "r2plus1d.18-tv-k400": (64, 16),
    "slowonly.r50-8x8-k400": (64, 8),
    "slowfast.r50-4x16-k400": (64, 32),
    "csn.ir-r50-32x2-k400": (64, 32),
    "tpn.slowonly-r50-8x8-in1k-k400": (64, 8),
    "x3d.m-k400": (64, 16),
    "r3d.18-tv-k400": (64, 16),
    "mc3.18-tv-k400": (64, 16),
    # Transformers.
    "timesformer.divst-k400": (32, 8),
    "mvitv2.s-16x4-k400": (64, 16),
    "video-swin.t-k400": (64, 32),
    "video-swin.t-tv-k400": (64, 32),
    "uniformer.s-16x4-k400": (64, 16),
    "videomaev2.s-k400": (32, 16),
    "umt.b16-8f-mma-k400": (32, 8),
    "internvideo2.s14-8f-k400": (28, 8),
    "uniformerv2.b16-8f-k400": (32, 8),
    "tadaformer.b16-16f-k400": (32, 16),
    "vivit.b-16x2-hf-k400": (32, 32),
}
"""Side of a crop and frames at which a variant is looked at."""

NATIVE = {
    "c3d.ucf101": 112,
    "mvit.b-tv-k400": 224,
    "mvitv2.s-tv-k400": 224,
    "s3d.tv-k400": 224,
    "slowfast.r50-ptv-k400": 256,
    "x3d.xs-ptv-k400": 182,
    "r2plus1d.r50-ptv-k400": 256,
    "ila.b16-8f-k400": 224,
    "actionclip.b16-8f-k400": 224,
    "clip-zeroshot.b16-k400": 224,
}
"""Variants that take no other size than their own; slow."""

IGNORES_ORDER = {
    "tsn.r50-8seg-k400",
    "tsn.r101-8seg-k400",
    "c2d.r50-8x8-k400",
    "timesformer.spaceonly-k400",
    "clip-zeroshot.b16-k400",
}
"""They average over frames, or pool over them symmetrically."""

GROWS = {"i3d-nonlocal.dot-r50-32x2-k400"}
"""Products of features overflow with weights of unit gain; it keeps the library's own."""

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def made(ref, size=None):
    """Return a variant as a classifier with random weights, and what it was built from."""
    variant = catalog()[ref]
    spec = registry().find("model", variant.component)[0].spec
    weights = next(w for w in spec.weights if w.variant == variant.variant)
    state = availability(spec, weights)
    if not state.ok:
        pytest.skip(state.text)
    source = library(variant.library)
    torch.manual_seed(0)
    network = source.network(variant, size)
    if ref not in GROWS:
        network.load_state_dict(ruled(network.state_dict()), assign=True)
    if size is not None:
        variant = replace(variant, size=size, resize=size)
    return classifier(variant, network, crops=1), variant


def check(ref, model, variant):
    side = variant.size
    torch.manual_seed(1)
    x = torch.rand(2, variant.frames, 3, side, side + 4)
    before = torch.get_rng_state()
    with torch.no_grad():
        first, again = model.logits(x), model.logits(x)
        alone = torch.cat([model.logits(one[None]) for one in x])
        backwards = model.logits(x.flip(1))
    assert torch.equal(before, torch.get_rng_state())
    assert first.shape == (2, 1, variant.classes)
    assert torch.isfinite(first).all()
    assert torch.equal(first, again)
    scale = max(1.0, float(first.abs().max()))
    assert float((first - alone).abs().max()) <= 1e-4 * scale
    moved = float((first - backwards).abs().max()) / float(first.abs().max())
    assert (moved < 1e-5) == (ref in IGNORES_ORDER), moved
    rows = first.sum(dim=-1)
    assert not ((first >= 0).all() and torch.allclose(rows, torch.ones_like(rows), atol=1e-4))
    leaf = x[:1].clone().requires_grad_()
    model.logits(leaf)[0, 0, 3].backward()
    inside = leaf.grad[..., 2 : 2 + side]
    assert torch.isfinite(leaf.grad).all()
    # A stride over time may leave the last frame out; nothing may leave out more.
    assert (inside.abs().sum(dim=(-1, -2, -3)) > 0).sum() >= variant.frames - 1
    assert all(p.grad is None for p in model.network.parameters())


@pytest.mark.parametrize("ref", SMALL)
def test_a_small_network_keeps_the_contract(ref):
    size, frames = SMALL[ref]
    model, variant = made(ref, size)
    assert variant.frames == frames
    check(ref, model, variant)


@pytest.mark.slow
@pytest.mark.parametrize("ref", NATIVE)
def test_a_network_of_its_own_size_keeps_the_contract(ref):
    check(ref, *made(ref))


def kind(ref):
    """Return what tells whether two variants are looked at alike."""
    variant = catalog()[ref]
    return variant.library, variant.network if variant.library == "own" else variant.component


def siblings():
    """Return every further variant with the size at which one of its kind is looked at."""
    sizes = {kind(ref): size for ref, (size, _) in SMALL.items()}
    for ref, variant in catalog().items():
        if kind(ref) in sizes and ref not in SMALL and (variant.millions or 1000) < 130:
            yield pytest.param(ref, sizes[kind(ref)], id=ref)


@pytest.mark.slow
@pytest.mark.parametrize(("ref", "size"), list(siblings()))
def test_its_siblings_do_so_too(ref, size):
    model, variant = made(ref, size)
    check(ref, model, variant)


@pytest.mark.slow
@pytest.mark.parametrize("ref", [r for r, v in catalog().items() if v.library != "own"])
def test_every_variant_of_a_library_builds_with_its_number_of_parameters(ref):
    model, variant = made(ref)
    count = sum(p.numel() for p in model.network.parameters()) / 1e6
    assert count == pytest.approx(variant.millions, abs=0.006)


def golden(ref, name, size=64):
    """Return mmaction2's network of a variant and a fixture of the same class."""
    variant = catalog()[ref]
    model, _ = made(ref, size)
    return model.network.model, facts(f"{name}.tiny.json"), arrays(name), variant


def test_tanet_computes_what_the_fixture_says():
    pytest.importorskip("mmaction")
    from mmengine.registry import DefaultScope
    from vcr_models.zoo.libraries.mmaction2 import Recognizer, configuration, registry_of_models

    wanted, kept = facts("tanet_mm.tiny.json"), arrays("tanet_mm")
    models = registry_of_models()
    config = configuration(catalog()["tanet.r50-8seg-k400"])
    config.test_cfg = None
    config.cls_head.num_classes = 17
    with DefaultScope.overwrite_default_scope("mmaction"):
        network = fill(models.build(config))
    assert {k: list(v.shape) for k, v in network.state_dict().items()} == wanted["state_dict"]
    x = clips(wanted["input"])
    with torch.no_grad():
        logits = Recognizer(network, flat=True)(x.transpose(1, 2).contiguous())
    assert gap(logits, kept["logits"]) <= 2e-5


@pytest.mark.parametrize(
    ("ref", "name"),
    [("video-swin.t-k400", "swin_mm_tiny_k400"), ("tanet.r50-8seg-k400", "tanet_mm_r50_k400")],
)
def test_mmactions_networks_have_the_official_keys(ref, name):
    model, _ = made(ref)
    wanted = facts(f"{name}.keys.json.gz")["state_dict"]
    state = model.network.model.state_dict()
    assert {k: list(v.shape) for k, v in state.items()} == {k: s for k, (s, _) in wanted.items()}


def test_importing_mmaction_leaves_installed_packages_alone():
    pytest.importorskip("mmaction")
    from vcr_models.zoo.libraries.mmaction2 import AbsentPackage, registry_of_models

    registry_of_models()
    import sys

    registry_of_models()
    assert sum(isinstance(finder, AbsentPackage) for finder in sys.meta_path) == 1
    assert AbsentPackage().find_spec("mmaction.models.localizers.bmn") is None


def test_our_vit_is_transformers_videomae():
    transformers = pytest.importorskip("transformers")
    from vcr_models.nets.video_vit import VideoViT, VideoViTShape

    shape = VideoViTShape(width=32, depth=2, heads=4, mlp=64, frames=4, size=32, classes=7)
    ours = VideoViT(shape)
    state = ruled(ours.state_dict())
    ours.load_state_dict(state)
    config = transformers.VideoMAEConfig(
        image_size=32, num_frames=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, num_labels=7, layer_norm_eps=1e-6, use_mean_pooling=True,
    )  # fmt: skip
    theirs = transformers.VideoMAEForVideoClassification(config)
    renamed = {}
    for key, value in theirs.state_dict().items():
        renamed[key] = _ours(key, state) if _ours(key, state) is not None else value
    theirs.load_state_dict(renamed)
    x = torch.rand(2, 3, 4, 32, 32)
    with torch.no_grad():
        mine = ours.eval()(x)
        other = theirs.eval()(pixel_values=x.transpose(1, 2)).logits
    assert float((mine - other).abs().max()) <= 1e-5


def _ours(key, state):
    """Return our tensor for a key of transformers 4 or 5, ``None`` for what we have not."""
    import re

    number = re.search(r"layers?\.(\d+)\.", key)
    block = f"blocks.{number[1]}" if number else ""
    tail = key.split(f".{number[1]}.", 1)[1] if number else key
    names = {
        "attention.attention.q_bias": "attn.q_bias",
        "attention.attention.query.bias": "attn.q_bias",
        "attention.attention.value.bias": "attn.v_bias",
        "attention.attention.v_bias": "attn.v_bias",
        "attention.output.dense.weight": "attn.proj.weight",
        "attention.output.dense.bias": "attn.proj.bias",
        "intermediate.dense.weight": "mlp.fc1.weight",
        "intermediate.dense.bias": "mlp.fc1.bias",
        "output.dense.weight": "mlp.fc2.weight",
        "output.dense.bias": "mlp.fc2.bias",
        "layernorm_before.weight": "norm1.weight",
        "layernorm_before.bias": "norm1.bias",
        "layernorm_after.weight": "norm2.weight",
        "layernorm_after.bias": "norm2.bias",
    }
    for part, row in (("query", 0), ("key", 1), ("value", 2)):
        if tail.endswith(f"{part}.weight") or tail.endswith(f"{part[0]}_proj.weight"):
            return state[f"{block}.attn.qkv.weight"].chunk(3)[row]
    if number and tail in names:
        return state[f"{block}.{names[tail]}"]
    whole = {
        "videomae.embeddings.patch_embeddings.projection.weight": "patch_embed.proj.weight",
        "videomae.embeddings.patch_embeddings.projection.bias": "patch_embed.proj.bias",
        "fc_norm.weight": "fc_norm.weight",
        "fc_norm.bias": "fc_norm.bias",
        "classifier.weight": "head.weight",
        "classifier.bias": "head.bias",
    }
    return state[whole[key]] if key in whole else None


def test_our_clip_is_open_clips():
    open_clip = pytest.importorskip("open_clip")
    from vcr_models.nets.clip_blocks import Clip, ImageShape, TextShape

    image = ImageShape(width=128, depth=2, size=32, output=64)
    text = TextShape(width=64, depth=2, heads=1, output=64)
    ours = Clip(image, text)
    ours.load_state_dict(ruled(ours.state_dict()))
    theirs = open_clip.CLIP(
        embed_dim=64,
        quick_gelu=True,
        vision_cfg={
            "image_size": 32,
            "patch_size": 16,
            "width": 128,
            "layers": 2,
            "head_width": 64,
        },
        text_cfg={"width": 64, "heads": 1, "layers": 2, "context_length": 77, "vocab_size": 49408},
    )
    theirs.load_state_dict(ours.state_dict(), strict=True)
    frames = torch.rand(2, 3, 32, 32)
    words = open_clip.get_tokenizer("ViT-B-16-quickgelu")(["a photo of action abseiling", "zumba"])
    with torch.no_grad():
        assert gap(ours.eval().visual(frames), theirs.eval().encode_image(frames)) <= 1e-5
        assert gap(ours.text_features(words), theirs.encode_text(words)) <= 1e-5


def test_the_own_shift_is_a_loop_written_fast():
    from vcr_models.nets.tin import real_shift, shift

    torch.manual_seed(0)
    values = torch.rand(2, 5, 8, 3, dtype=torch.float64)
    steps = torch.tensor([[1, -2, 0, 7], [0, 3, -1, -4]])
    slow = torch.zeros_like(values)
    for n in range(2):
        for t in range(5):
            for c in range(8):
                to = t + int(steps[n, c // 2])
                if 0 <= to < 5:
                    slow[n, to, c] = values[n, t, c]
    assert torch.equal(shift(values, steps), slow)
    real = torch.tensor([[0.3, -1.7, 0.2, 1.4], [0.6, -0.4, 1.1, -1.2]], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        real_shift, (values.requires_grad_(), real.requires_grad_()), eps=1e-6
    )


def test_relations_are_drawn_once_and_in_order():
    from vcr_models.nets.trn import TrnShape, chosen_relations

    shape = TrnShape()
    for size in range(8, 1, -1):
        chosen = chosen_relations(shape, size)
        assert len(chosen) == (1 if size == 8 else 3)
        assert chosen == chosen_relations(shape, size)
        assert all(list(frames) == sorted(set(frames)) for frames in chosen)
    other = [chosen_relations(TrnShape(seed=1), size) for size in (5, 4, 3)]
    assert other != [chosen_relations(shape, size) for size in (5, 4, 3)]


SWIN = {"type": "SwinTransformer3D", "pretrained2d": False}
VIT = {"type": "VisionTransformer", "return_feat_map": False}


@pytest.mark.parametrize(
    ("name", "backbone", "head"),
    [
        ("swin_mm", SWIN, {"type": "I3DHead", "in_channels": 48}),
        ("videomae_mm", VIT, {"type": "TimeSformerHead", "in_channels": 48}),
    ],
)
def test_mmactions_networks_compute_what_the_fixtures_say(name, backbone, head):
    pytest.importorskip("mmaction")
    from mmengine.registry import DefaultScope
    from vcr_models.zoo.libraries.mmaction2 import Recognizer, registry_of_models

    wanted, kept = facts(f"{name}.tiny.json"), arrays(name)
    given = {k: v for k, v in wanted["kwargs"].items() if k != "num_classes"}
    config = {
        "type": "Recognizer3D",
        "backbone": backbone | given,
        "cls_head": head | {"num_classes": 17},
    }
    models = registry_of_models()
    with DefaultScope.overwrite_default_scope("mmaction"):
        network = fill(models.build(config))
    assert {k: list(v.shape) for k, v in network.state_dict().items()} == wanted["state_dict"]
    x = clips(wanted["input"]).requires_grad_()
    logits = Recognizer(network, flat=False)(x)
    assert gap(logits.detach(), kept["logits"]) <= 2e-5
    (gradient,) = torch.autograd.grad(logits.sum(), x)
    assert gap(gradient.flatten()[:256], kept["grad_sum_head"]) <= 1e-4
    if name == "videomae_mm":
        from vcr_models.nets.video_vit import VideoViT, VideoViTShape
        from vcr_models.zoo.state import renamed_from_mmaction

        # Ours with the file's own table of positions, which the weight rule has overwritten.
        shape = VideoViTShape(width=48, depth=3, heads=4, mlp=192, frames=8, size=64, classes=17,
                              table="learned")  # fmt: skip
        ours = VideoViT(shape).eval()
        ours.load_state_dict(
            {renamed_from_mmaction(key): value for key, value in network.state_dict().items()}
        )
        with torch.no_grad():
            assert gap(ours(x), kept["logits"]) <= 2e-5
