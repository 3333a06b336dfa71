"""The data of the zoo: complete, consistent with what is known elsewhere, and cheap to read."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from vcr_core.datasets.labels import kinetics400_names
from vcr_core.spec_rules import spec_problems
from vcr_core.video.sampling import make_plan
from vcr_core.weights.places import file_name
from vcr_models.zoo.build import library
from vcr_models.zoo.catalog import catalog, specs
from vcr_models.zoo.families import FAMILIES
from vcr_models.zoo.labels import label_space, videomaev2_rows

PAPER = (
    "c3d", "tsn", "i3d", "c2d", "i3d-nonlocal", "r2plus1d", "slowonly", "trn", "tsm",
    "tsm-nonlocal", "slowfast", "csn", "tin", "tpn", "x3d", "tanet", "timesformer", "vivit",
    "mvit", "video-swin", "mvitv2", "uniformer", "videomae", "internvideo", "uniformerv2", "umt",
    "videomaev2", "tadaformer", "amd", "internvideo2", "one-peace", "actionclip", "ila",
)  # fmt: skip


def test_every_classifier_of_the_paper_is_there():
    assert set(PAPER) <= {spec.name for spec in specs()}
    assert {spec.name for spec in specs()} == set(FAMILIES)


def test_specs_keep_the_rules():
    for spec in specs():
        assert spec_problems(spec) == []
        assert spec.weights[0].clip == spec.clip
        for weights in spec.weights:
            assert catalog()[weights.recipe].ref == f"{spec.name}.{weights.variant}"


@pytest.mark.parametrize("ref", catalog())
def test_a_variant_says_all_that_is_needed(ref):
    variant = catalog()[ref]
    assert variant.url.startswith("https://")
    assert variant.license
    assert len(variant.mean) == len(variant.std) == 3
    assert all(0 < value <= 1 for value in (*variant.mean, *variant.std))
    assert len(label_space(variant.label_space)) == variant.classes
    assert variant.crops in (1, 3, 10)
    if variant.top1 is not None:
        assert 1 < variant.top1 < 100
    clip = variant.clip
    for frames in (10, 64, 300):
        for clips in (clip.clips, clip.light_clips):
            plan = make_plan(frames, frames=clip.frames, stride=clip.stride, clips=clips,
                             policy=clip.policy, end=clip.end)  # fmt: skip
            assert len(plan.table) == clips
            assert len(plan.table[0]) == clip.frames


def test_files_have_different_names():
    names = [file_name(weights) for spec in specs() for weights in spec.weights]
    assert len(set(names)) == len(names)


def test_labels():
    names = kinetics400_names()
    assert len(set(names)) == 400
    assert list(names) == sorted(names)
    assert len(set(label_space("ssv2").names)) == 174
    assert len(set(label_space("ucf101").names)) == 101
    assert list(label_space("ucf101").names) == sorted(label_space("ucf101").names, key=str.lower)
    rows = videomaev2_rows()
    assert len(set(rows)) == 400
    assert max(rows) < 710
    with pytest.raises(ValueError, match="no label map"):
        label_space("kinetics9000")


def test_torchvision_names_the_same_classes():
    models = pytest.importorskip("torchvision.models.video")
    assert tuple(models.R3D_18_Weights.DEFAULT.meta["categories"]) == kinetics400_names()


@pytest.mark.parametrize("ref", [r for r, v in catalog().items() if v.library == "own"])
def test_own_networks_have_the_published_number_of_parameters(ref):
    variant = catalog()[ref]
    if variant.needs[0]:
        pytest.importorskip("open_clip")
    network = library("own").network(variant)
    assert {p.device.type for p in network.parameters()} == {"meta"}
    count = sum(p.numel() for p in network.parameters())
    if variant.millions is not None:
        assert count / 1e6 == pytest.approx(variant.millions, abs=0.006)


def test_reading_the_catalog_imports_nothing_heavy():
    code = (
        "import sys, vcr_models.plugin as p; p.vcr_register_models();"
        "print([m for m in ('torch','numpy','torchvision','mmaction','transformers','open_clip')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_building_on_meta_takes_no_memory():
    variant = catalog()["one-peace.16f-k400"]
    network = library("own").network(variant)
    held = [b for b in network.buffers() if b.device.type != "meta"]
    assert sum(b.numel() for b in held) < 1_000_000
    assert all(isinstance(p, torch.nn.Parameter) for p in network.parameters())
