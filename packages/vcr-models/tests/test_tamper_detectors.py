"""Detectors of tampering: the bundled ones on known videos, decisions, calibration."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from tamper_clips import END, FPS, START, as_clip, encoded, panning, tampered
from vcr_core.components import build
from vcr_core.config.objects import choose_component
from vcr_core.datasets.labels import match_labels
from vcr_core.errors import ComponentUnavailable, ConfigError, UsageError
from vcr_core.protocols import DetailedClassifier, TimedClassifier
from vcr_models.bundled import bundled
from vcr_models.detectors.baseline import TamperBaseline
from vcr_models.detectors.calibration import read_calibration, to_json
from vcr_models.detectors.decision import Logistic, Rules, features_of
from vcr_models.detectors.fitting import (
    Scored,
    fit_logistic,
    fit_thresholds,
    score_videos,
    training_part,
)
from vcr_models.detectors.names import EVERY, LABELS, MVT5, MVT8, ORIGINAL
from vcr_models.detectors.params import BaselineParams
from vcr_models.detectors.scores import SCORES, THRESHOLDS
from vcr_models.specs.tamper import SPECS

QUIET = dict.fromkeys(SCORES, 0.0)


def detector(name: str, **params: Any) -> Any:
    return build(choose_component("model", name, params))


def named(model: Any, frames: Any) -> tuple[str, dict[str, Any]]:
    logits, [told] = model.at_rate(FPS).examine(as_clip(frames)[None])
    return LABELS.names[int(logits[0, 0].argmax())], told


@pytest.fixture(scope="module")
def judged() -> dict[tuple[str, int], tuple[str, dict[str, Any]]]:
    """Return what the baseline says of 10 panning textures and 50 tampered ones, all encoded."""
    model = detector("tamper-baseline")
    found = {}
    for seed in range(10):
        frames, donor = panning(seed), panning(100 + seed)
        for name in (ORIGINAL, *MVT5):
            found[name, seed] = named(model, encoded(tampered(name, frames, donor)))
    return found


class TestBaselineOnEncodedTextures:
    @pytest.mark.parametrize("name", MVT5)
    def test_each_effect_is_named(self, judged, name):
        assert sum(judged[name, seed][0] == name for seed in range(10)) >= 9

    def test_originals_are_left_alone(self, judged):
        assert [judged[ORIGINAL, seed][0] for seed in range(10)] == [ORIGINAL] * 10

    @pytest.mark.parametrize("name", ["mask", "rotate", "substitute"])
    def test_segments_are_found_within_two_frames(self, judged, name):
        for seed in range(10):
            guess, told = judged[name, seed]
            if guess == name:
                start, end = (second * FPS for second in told["segment_s"])
                assert abs(start - START) <= 2
                assert abs(end - END) <= 2

    def test_the_place_of_cut_and_repetition(self, judged):
        for seed in range(10):
            guess, told = judged["drop", seed]
            if guess == "drop":
                start, end = told["segment_s"]
                assert start == end
                assert abs(start * FPS - START) <= 3
            guess, told = judged["repeat", seed]
            if guess == "repeat":
                start, end = (second * FPS for second in told["segment_s"])
                assert abs(start - END) <= 3
                assert abs(end - (2 * END - START)) <= 3

    def test_facts_agree_with_the_class(self, judged):
        for guess, told in judged.values():
            assert told["tampered"] == (guess != ORIGINAL)
            assert (told["segment_s"] is None) == (guess == ORIGINAL)
            assert 0 <= told["score"] <= 1
            assert (told["score"] > 0.5) == told["tampered"]
            assert set(told["evidence"]["scores"]) == set(SCORES)

    def test_a_still_video_is_an_original(self):
        still = np.repeat(panning(3, frames=1), 60, axis=0)
        assert named(detector("tamper-baseline"), encoded(still))[0] == ORIGINAL


class TestContractOfAll:
    @pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
    def test_labels_and_protocols(self, spec):
        for weights in spec.weights:
            ref = f"{spec.name}.{weights.variant}" if weights.variant else spec.name
            model = detector(ref)
            assert isinstance(model, DetailedClassifier)
            assert isinstance(model, TimedClassifier)
            assert model.labels == LABELS
            assert model.clip == spec.clip
            assert spec.num_classes == len(LABELS)

    @pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
    def test_effects_that_are_out_of_question_are_never_named(self, spec):
        clip = torch.rand(2, 20, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        model = detector(spec.name, effects="mvt5")
        log_p = model.logits(clip)[:, 0]
        others = [LABELS.names.index(name) for name in EVERY if name not in MVT5]
        assert (log_p[:, others] <= -19).all()
        assert log_p.exp().sum(dim=1) == pytest.approx([1, 1], abs=1e-5)

    @pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
    def test_a_clip_is_judged_alone(self, spec):
        model = detector(spec.name)
        clips = torch.stack([as_clip(panning(s, frames=30)) for s in range(3)])
        together = model.examine(clips)
        for i in range(3):
            logits, [told] = model.examine(clips[i : i + 1])
            assert torch.allclose(logits[0], together[0][i], atol=1e-5)
            assert told["tampered"] == together[1][i]["tampered"]

    @pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
    def test_wrong_clips_are_refused(self, spec):
        with pytest.raises(ValueError, match=r"\[N, T, 3, H, W\]"):
            detector(spec.name).logits(torch.rand(2, 3, 8, 8))

    def test_a_dataset_of_fewer_effects_fits(self):
        ours, theirs = (ORIGINAL, "noise", "drop"), detector("tamper-baseline").labels.names
        assert match_labels(ours, theirs, "a dataset") == {"original": 0, "noise": 6, "drop": 1}


class TestRules:
    def test_the_first_effect_above_its_threshold_is_named(self):
        rules = Rules(THRESHOLDS)
        for name in MVT8:
            log_p = rules.log_probabilities({**QUIET, name: 2 * THRESHOLDS[name]}, MVT8)
            assert LABELS.names[int(log_p.argmax())] == name
            # r = 2: r² / (1 + r²) of the probability is tampering.
            assert np.exp(log_p[0]) == pytest.approx(0.2)
        both = {**QUIET, "mask": 0.4, "drop": 100.0}
        assert LABELS.names[int(rules.log_probabilities(both, MVT5).argmax())] == "mask"

    def test_at_the_threshold_it_is_one_half(self):
        log_p = Rules(THRESHOLDS).log_probabilities({**QUIET, "drop": THRESHOLDS["drop"]}, MVT5)
        assert np.exp(log_p[0]) == pytest.approx(0.5)
        assert log_p.argmax() == 0

    def test_effects_out_of_question_count_for_nothing(self):
        scores = {**QUIET, "noise": 50.0}
        assert Rules(THRESHOLDS).log_probabilities(scores, MVT5)[0] == pytest.approx(0, abs=1e-6)
        assert Rules(THRESHOLDS).log_probabilities(scores, MVT8)[0] < -5


def scored(count: int = 60, split: str = "train") -> list[Scored]:
    rng = np.random.default_rng(0)
    rows = [
        Scored(f"s{i}", ORIGINAL, {k: 0.2 * t * rng.random() for k, t in THRESHOLDS.items()})
        for i in range(count)
    ]
    for i in range(count):
        for name in MVT5:
            scores = {k: 0.2 * t * rng.random() for k, t in THRESHOLDS.items()}
            scores[name] = THRESHOLDS[name] * (3 + rng.random())
            rows.append(Scored(f"s{i}", name, scores))
    return rows


PART = {"name": "motion", "split": "train", "videos": 2}


class TestFitting:
    def test_thresholds_are_quantiles_of_clean_videos_and_never_below_the_fixed_ones(self):
        rows = [
            Scored(f"s{i}", ORIGINAL, {**QUIET, "drop": float(i), "noise": 0.001 * i})
            for i in range(1, 201)
        ]
        rows.append(Scored("s1", "drop", dict.fromkeys(SCORES, 1e6)))
        file = fit_thresholds(rows, training_part(PART), false_alarms=0.08)
        assert file.thresholds["drop"] == 198 + 1  # one in a hundred for each of eight scores
        assert file.thresholds["noise"] == THRESHOLDS["noise"]
        assert file.fitted_on.videos == file.fitted_on.sources == 200

    def test_few_videos_are_refused(self):
        with pytest.raises(UsageError, match="40 or more"):
            fit_thresholds(scored(39), training_part(PART))

    def test_regression_tells_separable_classes_apart(self):
        classes = (ORIGINAL, *MVT5)
        file = fit_logistic(scored(20), training_part(PART), classes)
        model = read_calibration(to_json(file).encode(), "fitted")
        assert isinstance(model, Logistic)
        for row in scored(5):
            log_p = model.log_probabilities(row.scores, MVT5)
            assert LABELS.names[int(log_p.argmax())] == row.label
            assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-6)

    def test_a_class_without_videos_is_refused(self):
        with pytest.raises(UsageError, match="noise"):
            fit_logistic(scored(), training_part(PART), (ORIGINAL, *MVT5, "noise"))

    def test_features_in_closed_form(self):
        scores = {**QUIET, "mask": THRESHOLDS["mask"], "rotate": -100.0}
        found = dict(zip(SCORES, features_of(scores), strict=True))
        assert found["mask"] == pytest.approx(np.log(2))
        assert found["rotate"] == pytest.approx(np.log(0.1))
        assert found["drop"] == 0

    @pytest.mark.parametrize("split", ["val", "test"])
    def test_other_splits_are_refused(self, split):
        with pytest.raises(UsageError, match=f"found split '{split}'"):
            training_part({"name": "motion", "split": split})
        with pytest.raises(UsageError, match="found split 'test'"):
            training_part({"name": "motion"})  # its default

    def test_videos_of_the_training_split_are_scored(self):
        rows = score_videos(training_part({**PART, "videos": 3}), limit=2)
        assert [row.source for row in rows] == [f"motion-v1-train-00000{i}" for i in range(2)]
        assert all(set(row.scores) == set(SCORES) and row.label == ORIGINAL for row in rows)

    def test_a_user_s_own_file(self, tmp_path):
        file = fit_thresholds(scored(), training_part(PART))
        raised = msgspec.structs.replace(
            file, thresholds={**file.thresholds, "drop": 1e6, "mask": 1e6, "substitute": 1e6}
        )
        path = tmp_path / "mine.json"
        path.write_text(to_json(raised))
        model = detector("tamper-baseline", calibration=str(path))
        frames = tampered("mask", panning(0), panning(1))
        assert named(model, frames)[0] == ORIGINAL
        assert named(detector("tamper-baseline"), frames)[0] == "mask"


class TestFiles:
    @pytest.mark.parametrize("variant", ["motion", "lr"])
    def test_bundled_files_were_fitted_on_the_training_split(self, variant):
        spec = next(s for s in SPECS if s.name == "tamper-baseline")
        [weights] = [w for w in spec.weights if w.variant == variant]
        content = bundled(weights.url, weights.sha256)
        assert len(content) == weights.bytes < 10_000
        about = json.loads(content)["fitted_on"]
        assert about["split"] == about["dataset"]["split"] == "train"
        read_calibration(content, variant)

    def test_another_file_is_noticed(self):
        spec = next(s for s in SPECS if s.name == "tamper-baseline")
        weights = replace(spec.weights[1], sha256="0" * 64)
        with pytest.raises(ComponentUnavailable, match="sha256"):
            TamperBaseline(BaselineParams(), weights)
        with pytest.raises(ComponentUnavailable, match="no bundled file"):
            bundled("package:vcr_models/weights/../plugin.py", "")

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (lambda f: f.pop("thresholds"), "thresholds"),
            (lambda f: f["thresholds"].pop("drop"), "needed: drop"),
            (lambda f: f["thresholds"].update(drop=-1), ">= 0|> 0"),
            (lambda f: f.update(kind="magic"), "magic"),
            (lambda f: f.update(schema=2), "schema"),
        ],
    )
    def test_damaged_files_are_named(self, change, told):
        content = json.loads(to_json(fit_thresholds(scored(), training_part(PART))))
        change(content)
        with pytest.raises(ConfigError, match=told) as caught:
            read_calibration(json.dumps(content).encode(), "mine.json")
        assert "mine.json" in str(caught.value)

    def test_shapes_of_a_regression_are_checked(self):
        content = json.loads(
            to_json(fit_logistic(scored(), training_part(PART), [ORIGINAL, *MVT5]))
        )
        content["bias"].append(0.0)
        with pytest.raises(ConfigError, match="shapes"):
            read_calibration(json.dumps(content).encode(), "mine.json")
        content["classes"][1] = "magic"
        with pytest.raises(ConfigError, match="classes"):
            read_calibration(json.dumps(content).encode(), "mine.json")

    def test_a_file_that_is_not_there(self):
        with pytest.raises(ConfigError, match=r"model\.calibration: .*nowhere"):
            detector("tamper-baseline", calibration="/nowhere/mine.json")
