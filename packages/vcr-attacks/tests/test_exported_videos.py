"""Videos of every bundled model, exported and read back, give the recorded predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import vcr_core as vcr
from vcr_core.threat import Unbounded

MODELS = ("tiny-r3d", "tiny-r3d.adv", "tiny-r2plus1d", "tiny-tsm", "tiny-vit")

# More frames than a clip has, so that something is sampled and something is left out.
LONG = {"frames": 24, "size": 48}


def reproduced(tmp_path: Path, **options: Any) -> int:
    result = vcr.evaluate(
        dataset=vcr.load("dataset", "motion", **LONG) if options.pop("long", False) else "motion",
        limit=2, metrics=["mse"], results=tmp_path / "results", **options,
    )  # fmt: skip
    assert len(result.export_videos(tmp_path / "out", previews=())) == 2
    answers = result.check_videos(tmp_path / "out")
    assert [answer for answer in answers if answer.verdict != "same"] == []
    return len(answers)


@pytest.mark.parametrize("model", MODELS)
def test_every_bundled_model(model: str, tmp_path: Path) -> None:
    threat = vcr.Linf("4/255")
    assert reproduced(tmp_path, model=model, attack="ifgsm", threat=threat) == 4


@pytest.mark.parametrize("attack", ["drop", "shuffle", "frame-rate", "natural-shift", "stadv"])
def test_videos_that_were_changed_otherwise(attack: str, tmp_path: Path) -> None:
    options = {"long": attack != "stadv", "model": "tiny-tsm", "attack": attack}
    assert reproduced(tmp_path, threat=Unbounded(), **options) == 4
