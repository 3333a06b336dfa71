"""Certificates through the engine: once a video, in the record, refused where they are void."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import vcr_core as vcr
from torch import Tensor
from vcr_core import compat
from vcr_core.config.resolve import resolve_run
from vcr_core.errors import ConfigError
from vcr_core.record_schema import validate_record
from vcr_core.seeding import derive_seed
from vcr_core.testing.toys.attacks import SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.defenses import Darken
from vcr_core.testing.toys.shapes import ShapesDataset


class Certifies:
    """Changes nothing, and certifies the prediction with a radius of 0.5."""

    stochastic = True

    def __init__(self, *, certifies: bool = True) -> None:
        self.certifies = certifies
        self.seeds: list[int] = []

    def wrap(self, predict: Any, random: Any) -> Any:
        return predict

    def certify(self, predict: Any, video: Tensor, random: Any) -> Sequence[Mapping[str, Any]]:
        self.seeds += random.seeds
        assert not predict(video).requires_grad
        return [
            {
                "class": int(row.argmax()), "radius": 0.5, "p_lower": 0.9, "count": 9, "n0": 5,
                "n": 10, "alpha": 0.1, "sigma": 0.25, "norm": "l2", "dims": video[0].numel(),
            }
            for row in predict(video)
        ]  # fmt: skip


def run(defense: Any, **options: Any) -> Any:
    chosen = {
        "model": ToyCnn(), "attack": SignDescent(), "dataset": ShapesDataset(), "metrics": [],
        "limit": 4, "threat": vcr.Linf("8/255"), "seed": 3, **options,
    }  # fmt: skip
    return vcr.evaluate(defense=defense, **chosen)


def test_every_video_gets_one_on_the_clean_video() -> None:
    defense = Certifies()
    result = run(defense)
    assert len(defense.seeds) == 4
    for record in result.records:
        validate_record(record)
        assert record["certificate"]["class"] == record["clean"]["pred"]
        assert record["cost"]["t_certify_s"] >= 0
        assert list(record).index("certificate") < list(record).index("attacked")
    right = sum(record["clean"]["pred"] == record["label"] for record in result.records)
    assert result.summary()["certified_accuracy"]["k"] == right
    assert result.view.summary["certificate"]["curve"][0]["k"] == right


def test_it_draws_with_seeds_of_its_own() -> None:
    defense = Certifies()
    ids = [record["video"] for record in run(defense).records]
    for role in ("eval", "defense", "clean"):
        assert not {derive_seed(3, video, role) for video in ids} & set(defense.seeds)


def test_clean_runs_are_certified_too() -> None:
    [first, *_] = run(Certifies(), attack=None, threat=None).records
    assert first["certificate"]["radius"] == 0.5


def test_nothing_is_certified_unless_it_is_asked_for() -> None:
    for record in run(Certifies(certifies=False)).records:
        assert "certificate" not in record
        assert "t_certify_s" not in record["cost"]


def test_a_certificate_behind_another_defense_is_refused() -> None:
    with pytest.raises(ConfigError, match="put certifies first"):
        run([Darken(), Certifies()])
    run([Certifies(), Darken()])


def test_a_certificate_of_untied_frames_is_refused() -> None:
    with pytest.raises(ConfigError, match="tie_frames"):
        run(Certifies(), protocol={"tie_frames": False})


def test_run_files_are_refused_before_anything_is_loaded() -> None:
    experiment = resolve_run({"model": "tiny-r3d", "defense": "jpeg+gaussian-blur"}).experiment
    first, second = experiment.defenses
    asks = replace(
        second, spec=replace(second.spec, certifies=True), params={**second.params, "certify_n": 9}
    )
    [problem] = [
        text
        for text in compat.misfits(replace(experiment, defenses=(first, asks)))
        if "certify" in text
    ]
    assert problem.startswith("defense.1: gaussian-blur cannot certify what stands behind jpeg")
    for chain in ((asks, first), (first, replace(asks, params={**asks.params, "certify_n": 0}))):
        assert not any(
            "certify" in text for text in compat.misfits(replace(experiment, defenses=chain))
        )
