"""Files of the official layouts, made here, through the code that reads published ones."""

from __future__ import annotations

import pytest
import torch
from golden_files import facts, ruled
from vcr_core.availability import availability
from vcr_core.components import build
from vcr_core.config.experiment import Chosen
from vcr_core.errors import ComponentUnavailable
from vcr_core.plugins import registry
from vcr_models.zoo.build import library
from vcr_models.zoo.catalog import catalog
from vcr_models.zoo.labels import videomaev2_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def chosen(ref, **params):
    entry, variant = registry().find("model", ref)
    weights = next(w for w in entry.spec.weights if w.variant == variant)
    state = availability(entry.spec, weights)
    if not state.ok:
        pytest.skip(state.text)
    return Chosen(spec=entry.spec, distribution=entry.distribution, version=entry.version,
                  variant=variant, params=params)  # fmt: skip


def load(ref, path, **params):
    return build(chosen(ref, file=str(path), **params))


def official_state(fixture):
    """Return weights by rule under the names and shapes of a key manifest."""
    shapes = facts(f"{fixture}.keys.json.gz")["state_dict"]
    made = {}
    for key, (shape, kind) in shapes.items():
        dtype = getattr(torch, kind.removeprefix("torch."))
        made[key] = torch.empty(shape, dtype=dtype, device="meta")
    return ruled(made)


def saved(tmp_path, state, root="", name="net.pth", **others):
    path = tmp_path / name
    torch.save({root: state, **others} if root else state, path)
    return path


@pytest.mark.parametrize(
    ("ref", "fixture", "root"),
    [
        ("videomaev2.s-k400", "videomaev2_mm_vit_s16_k400", "state_dict"),
        ("amd.s-k400", "amd_vit_s16_k400", "module"),
        ("internvideo2.s14-8f-k400", "internvideo2_s14_k400_f8", "module"),
        ("internvideo2.s14-8f-k400", "internvideo2_s14_k400_f8", ""),
        ("trn.r50-sthv2", "trn_mm_r50_sthv2", "state_dict"),
        ("tanet.r50-8seg-k400", "tanet_mm_r50_k400", "state_dict"),
    ],
)
def test_a_file_of_the_official_layout_loads_strictly(tmp_path, ref, fixture, root):
    state = official_state(fixture)
    path = saved(tmp_path, state, root, epoch=90, optimizer={"state": {}})
    model = load(ref, path)
    variant = catalog()[ref]
    with torch.no_grad():
        logits = model.logits(torch.rand(1, variant.frames, 3, variant.size, variant.size + 8))
    assert logits.shape == (1, variant.crops, variant.classes)
    assert torch.isfinite(logits).all()
    held = dict(model.network.named_parameters())
    assert not any(p.is_meta or p.requires_grad for p in held.values())


@pytest.mark.parametrize("ref", ["x3d.m-k400", "x3d.m-ptv-k400", "mc3.18-tv-k400"])
def test_a_file_of_a_library_loads_and_gives_the_same_bits(tmp_path, ref):
    variant = catalog()[ref]
    chosen(ref)
    network = library(variant.library).network(variant)
    inner = getattr(network, "model", network)
    inner.load_state_dict(ruled(inner.state_dict()))
    root = variant.roots[0] if variant.roots else ""
    extra = {"data_preprocessor.mean": torch.zeros(3)} if variant.library == "mmaction2" else {}
    model = load(ref, saved(tmp_path, {**inner.state_dict(), **extra}, root))
    clip = torch.rand(1, variant.frames, 3, variant.size, variant.size)
    light = model.for_views("light")
    with torch.no_grad():
        wanted = network.eval()(light.front.views(clip)[:, 0].transpose(1, 2).contiguous())
        assert torch.equal(light.logits(clip)[:, 0], wanted)


def test_half_precision_and_710_classes(tmp_path):
    shapes = facts("videomaev2_vit_s16_k710.keys.json.gz")["state_dict"]
    full = ruled({key: torch.empty(shape, device="meta") for key, (shape, _) in shapes.items()})
    half = {key: value.half() for key, value in full.items()}
    model = load("videomaev2.s-k400", saved(tmp_path, half, "module"))
    head = model.network.head.weight
    assert head.shape == (400, 384)
    assert head.dtype == torch.float32
    assert torch.equal(head, full["head.weight"].half().float()[videomaev2_rows()])


def test_positions_for_another_number_of_frames_are_resampled(tmp_path):
    state = official_state("internvideo2_s14_k400_f8")
    table = torch.arange(16.0).repeat_interleave(256)[None, :, None].expand(1, -1, 384)
    state["pos_embed"] = torch.cat((torch.full((1, 1, 384), 9.0), table), dim=1)
    model = load("internvideo2.s14-8f-k400", saved(tmp_path, state, "module"))
    found = model.network.pos_embed
    assert found.shape == (1, 1 + 8 * 256, 384)
    assert torch.equal(found[:, 0], torch.full((1, 384), 9.0))
    assert found[0, 1::256, 0].tolist() == [0.5 + 2 * t for t in range(8)]


def test_a_file_that_does_not_fit_is_refused_in_words(tmp_path):
    state = official_state("amd_vit_s16_k400")
    wrong = {k: v for k, v in state.items() if "blocks.11" not in k}
    wrong["head.weight"] = torch.zeros(174, 384)
    wrong["norm.weight"] = torch.zeros(384)
    with pytest.raises(ComponentUnavailable) as caught:
        load("amd.s-k400", saved(tmp_path, wrong, "module"))
    for part in (
        "does not fit VideoViT",
        "missing: blocks.11.attn.proj.bias",
        "and 9 more",
        "unknown: norm.weight",
        "head.weight is [174, 384], needed [400, 384]",
    ):
        assert part in str(caught.value)


def test_a_file_of_another_model_and_no_model_at_all(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "net.pth")
    with pytest.raises(ComponentUnavailable, match="no weights under module or model or"):
        load("amd.s-k400", tmp_path / "net.pth")


def test_without_a_file_it_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("VCR_WEIGHTS_DIR", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(ComponentUnavailable, match=r"vcr weights fetch amd\.s-k400"):
        build(chosen("amd.s-k400"))


def test_building_leaves_the_random_state_alone(tmp_path):
    path = saved(tmp_path, official_state("amd_vit_s16_k400"), "module")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    model = load("amd.s-k400", path, recompute=True, crops=1)
    assert torch.equal(before, torch.get_rng_state())
    assert model.clip.crops == 1
    assert model.network.blocks.recompute


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_lower_precision_is_asked_for_and_stays_inside(tmp_path, precision):
    path = saved(tmp_path, official_state("internvideo2_s14_k400_f8"), "module")
    clips = torch.rand(1, 8, 3, 224, 224)
    exact = load("internvideo2.s14-8f-k400", path, crops=1)
    coarse = load("internvideo2.s14-8f-k400", path, crops=1, precision=precision)
    assert {p.dtype for p in coarse.network.parameters()} == {getattr(torch, precision)}
    with torch.no_grad():
        wanted, found = exact.logits(clips), coarse.logits(clips)
    assert found.dtype == torch.float32
    assert 0 < float((found - wanted).abs().max()) < 0.1 * float(wanted.abs().max())


def test_features_of_texts_are_kept_for_the_file_they_belong_to(tmp_path, monkeypatch):
    from vcr_models.nets.clip_blocks import Clip, ImageShape, Texts, TextShape
    from vcr_models.zoo.text_cache import known_texts

    monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "cache"))
    tower = Clip(
        ImageShape(width=64, depth=1, size=32, output=16),
        TextShape(width=32, depth=1, heads=1, context=9, vocabulary=50, output=16),
    )
    tower.load_state_dict(ruled(tower.state_dict()))
    file = saved(tmp_path, tower.state_dict())
    rows = torch.tensor([[[1, 5, 49, 0, 0, 0, 0, 0, 0], [1, 7, 8, 49, 0, 0, 0, 0, 0]]])

    def known():
        texts = Texts(rows)
        known_texts(texts, tower, file)
        return texts.features

    first = known()
    kept = list((tmp_path / "cache" / "texts").iterdir())
    assert len(kept) == 1
    asked = []
    monkeypatch.setattr(Clip, "text_features", lambda *_: asked.append(1))
    assert torch.equal(known(), first)
    assert asked == []
    monkeypatch.undo()
    monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "cache"))
    kept[0].write_bytes(b"damaged")
    assert torch.equal(known(), first)
    saved(tmp_path, {**tower.state_dict(), "more": torch.ones(1)})
    known()
    assert len(list((tmp_path / "cache" / "texts").iterdir())) == 2
    # What stands behind the end of a text changes nothing.
    longer = rows.clone()
    longer[..., 5:] = 3
    with torch.no_grad():
        assert torch.allclose(tower.text_features(longer[0]), first[0], atol=1e-6)
