"""Detectors: scores, thresholds, and what they leave alone."""

from __future__ import annotations

import json
import math

import pytest
import torch
from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.protocols import PrepareContext, VideoItem
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.threat import Linf
from vcr_defenses.advit import AdvIt, pseudo_clips
from vcr_defenses.detector import THRESHOLD_FILE, fit_threshold
from vcr_defenses.feature_squeezing import FeatureSqueezing
from vcr_defenses.non_local_means import non_local_means
from vcr_defenses.params.learned import AdvItParams, FeatureSqueezingParams

MODEL = LinearClassifier(gain=40)


def predict(clips):
    return MODEL.logits(clips.flatten(0, 1)).unflatten(0, clips.shape[:2])[:, :, 0].mean(
        dim=1
    ).log_softmax(dim=-1)  # fmt: skip


def squeezing(**params):
    return FeatureSqueezing(FeatureSqueezingParams(threshold=0.1, **params))


def advit(**params):
    return AdvIt(AdvItParams(**{"threshold": 0.1, "flow": "zero", "flow_noise": 0.0, **params}))


def scores(detector, clips, random):
    with torch.no_grad():
        run = detector.wrap(predict, random)
        run(clips)
        return [facts["score"] for facts in run.details()]


class TestThreshold:
    @pytest.mark.parametrize("fpr", [0.01, 0.05, 0.1, 0.5])
    @pytest.mark.parametrize("count", [1, 7, 20, 100])
    def test_rejects_no_more_than_asked_for_and_no_fewer_than_possible(self, fpr, count):
        values = torch.rand(count, generator=torch.Generator().manual_seed(count)).tolist()
        threshold = fit_threshold(values, fpr)
        above = sum(v > threshold for v in values)
        assert above <= fpr * count
        assert above + 1 > fpr * count or above == count - 1

    def test_equal_scores_are_all_kept(self):
        assert fit_threshold([0.0] * 30, 0.05) == 0.0

    def test_needs_scores(self):
        with pytest.raises(ValueError, match="no scores"):
            fit_threshold([], 0.05)

    def test_without_one_the_detector_says_how_to_get_it(self, make_random):
        with pytest.raises(NotAvailable, match="vcr prepare"):
            FeatureSqueezing().wrap(predict, make_random())


class TestPreparing:
    def context(self, folder, clips, chunk=None):
        levels = (clips[:, 0] * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
        items = [VideoItem(f"v{i}", 0, ArraySource(f"v{i}", one)) for i, one in enumerate(levels)]
        return PrepareContext(
            folder=folder, items=items, seed=3, model=LinearClassifier(gain=40), threat=Linf(0.01)
        )

    def test_writes_the_quantile_of_clean_scores_and_reads_it_back(self, tmp_path, make_clips):
        detector = FeatureSqueezing(FeatureSqueezingParams(fpr=0.25))
        context = self.context(tmp_path, make_clips(8, 1, 4, 3, 16, 16))
        detector.prepare(context)
        report = json.loads((tmp_path / THRESHOLD_FILE).read_text())
        assert len(report["scores"]) == 8
        assert report["threshold"] == fit_threshold(list(report["scores"].values()), 0.25)
        # One forward pass for the video and one for each of three squeezers.
        assert sum(meter.forwards for meter in context.meters[""]) == 8 * 4
        fresh = FeatureSqueezing(FeatureSqueezingParams(fpr=0.25))
        fresh.restore(tmp_path)
        clips = make_clips(2, 1, 4, 3, 16, 16, seed=5)
        run = fresh.wrap(predict, None)
        run(clips)
        for facts in run.details():
            assert facts["rejected"] == (facts["score"] > report["threshold"])

    def test_another_rate_is_refused(self, tmp_path, make_clips):
        FeatureSqueezing(FeatureSqueezingParams(fpr=0.25)).prepare(
            self.context(tmp_path, make_clips(4, 1, 4, 3, 16, 16))
        )
        with pytest.raises(IncompatibleComponents, match=r"0\.25"):
            FeatureSqueezing(FeatureSqueezingParams(fpr=0.5)).restore(tmp_path)

    def test_a_threshold_in_the_parameters_wins(self, tmp_path):
        squeezing().restore(tmp_path)  # nothing there to read


class TestFeatureSqueezing:
    def test_scores_lie_between_0_and_2(self, make_clips, make_random):
        found = scores(squeezing(), make_clips(3, 2, 4, 3, 20, 24), make_random(3))
        assert all(0 <= score <= 2 for score in found)

    def test_a_squeezer_that_changes_nothing_scores_0(self, make_clips, make_random):
        # All 8 bits of 8-bit pixels.
        same = squeezing(bits=8, median=0, means_window=0)
        assert scores(same, make_clips(), make_random()) == pytest.approx([0, 0], abs=1e-5)

    def test_the_largest_squeezer_counts(self, make_clips, make_random):
        clips, random = make_clips(), make_random()
        alone = [
            scores(squeezing(**{"bits": 0, "median": 0, "means_window": 0, **one}), clips, random)
            for one in ({"bits": 2}, {"median": 3}, {"means_window": 5})
        ]
        together = scores(squeezing(bits=2, median=3, means_window=5), clips, random)
        assert together == pytest.approx([max(one) for one in zip(*alone, strict=True)])

    def test_a_score_does_not_depend_on_the_batch(self, make_clips, make_random):
        clips = make_clips(3, 1, 4, 3, 20, 24)
        whole = scores(squeezing(), clips, make_random(3))
        alone = [scores(squeezing(), clips[i : i + 1], make_random(1))[0] for i in range(3)]
        assert whole == pytest.approx(alone, abs=1e-6)

    @pytest.mark.parametrize("wrong", [{"median": 2}, {"bits": 0, "median": 0, "means_window": 0}])
    def test_senseless_squeezers_are_refused(self, wrong):
        with pytest.raises(ValueError, match=r"odd|no squeezer"):
            FeatureSqueezingParams(**wrong)


class TestAdvIt:
    def test_a_still_video_scores_0(self, make_clips, make_random):
        still = make_clips(2, 1, 1, 3, 24, 24).expand(-1, -1, 5, -1, -1, -1)
        assert scores(advit(), still, make_random()) == pytest.approx([0, 0], abs=1e-5)

    def test_kl_divergence_of_the_frame_before(self, make_clips, make_random):
        clips = make_clips(2, 1, 4, 3, 16, 16)
        shifted = torch.cat([clips[:, :, :1], clips[:, :, :-1]], dim=2)
        p, q = predict(clips), predict(shifted)
        expected = (p.exp() * (p - q)).sum(dim=1).tolist()
        assert scores(advit(frames=1), clips, make_random()) == pytest.approx(expected, abs=1e-5)

    def test_motion_that_the_flow_explains_is_consistent(self, make_clips):
        texture = make_clips(1, 1, 1, 3, 24, 40)
        clips = torch.cat([texture.roll(step, dims=-1) for step in range(4)], dim=2)
        # Frame t holds at x what frame t - 1 holds at x - 1.
        flow = torch.zeros(1, 1, 3, 2, 24, 40)
        flow[:, :, :, 0] = -1
        rebuilt = pseudo_clips(clips, flow, 1)
        inner = slice(2, -2)
        assert torch.allclose(rebuilt[..., inner], clips[..., inner], atol=1e-5)

    def test_noise_is_seeded_for_each_video(self, make_clips, make_random):
        noisy = advit(flow_noise=1.0, draws=2)
        assert noisy.stochastic
        assert not advit().stochastic
        clips = make_clips(3, 1, 4, 3, 16, 16)
        first = scores(noisy, clips, make_random(3))
        assert first == scores(noisy, clips, make_random(3))
        assert first != scores(noisy, clips, make_random(3, seed=8))
        assert first[0] == pytest.approx(scores(noisy, clips[:1], make_random(1))[0], abs=1e-6)

    def test_one_frame_has_nothing_to_be_consistent_with(self, make_clips, make_random):
        assert scores(advit(), make_clips(2, 1, 1, 3, 16, 16), make_random()) == [0, 0]


class TestPredictions:
    @pytest.mark.parametrize("detector", [squeezing(), advit()], ids=["squeezing", "advit"])
    def test_are_left_alone_and_queries_cost_nothing_more(self, detector, make_clips, make_random):
        asked = []

        def counted(clips):
            asked.append(len(clips))
            return predict(clips)

        clips = make_clips(2, 1, 4, 3, 16, 16)
        run = detector.wrap(counted, make_random())
        assert torch.equal(run(clips), predict(clips))
        assert asked == [2]
        run.details()
        assert len(asked) > 1


class TestNonLocalMeans:
    def test_equals_the_formula(self):
        frames = torch.rand(1, 3, 9, 10, generator=torch.Generator().manual_seed(0))
        found = non_local_means(frames, window=5, patch=3, strength=0.3)
        around = torch.nn.functional.pad(frames, [3, 3, 3, 3], mode="reflect")
        for y, x in ((2, 3), (4, 4), (6, 5)):
            top = total = 0.0
            for dy in range(-2, 3):
                for dx in range(-2, 3):
                    here = around[0, :, y + 2 : y + 5, x + 2 : x + 5]
                    there = around[0, :, y + dy + 2 : y + dy + 5, x + dx + 2 : x + dx + 5]
                    weight = math.exp(-float((here - there).square().mean()) / 0.3**2)
                    top = top + weight * around[0, :, y + dy + 3, x + dx + 3]
                    total += weight
            assert torch.allclose(found[0, :, y, x], top / total, atol=1e-5)

    def test_keeps_constants_and_range_and_goes_to_the_identity(self):
        flat = torch.full((2, 3, 8, 8), 0.3)
        assert torch.allclose(non_local_means(flat, window=5, patch=3, strength=0.1), flat)
        noise = torch.rand(1, 3, 12, 12, generator=torch.Generator().manual_seed(1))
        out = non_local_means(noise, window=7, patch=3, strength=0.2)
        assert noise.min() <= out.min()
        assert out.max() <= noise.max()
        sharp = non_local_means(noise, window=7, patch=3, strength=1e-3)
        assert torch.allclose(sharp, noise, atol=1e-5)
