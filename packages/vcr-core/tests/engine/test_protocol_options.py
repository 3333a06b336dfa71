"""Keys of ``[protocol]`` and ``[threat]`` that change what is attacked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import vcr_core as vcr
from torch import Tensor
from torch.nn import functional
from vcr_core.datasets.manifest import Manifest, ManifestRow, write_manifest
from vcr_core.engine.clips import ARTIFACTS
from vcr_core.protocols import ClipSpec, VideoItem
from vcr_core.testing.toys.arrays import array_hash, clip_of
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset, draw


class Descend:
    """Three sign steps; white-box."""

    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        adv = video.clone()
        for _ in range(3):
            grad = victim.loss_and_grad(adv).grad
            adv = ctx.threat.project(adv - 2 / 255 * grad.sign(), video)
        return adv


class Bigger(ToyCnn):
    """The toy behind a resize, which it offers."""

    def resize(self, clips: Tensor) -> Tensor:
        flat = clips.flatten(0, 1)
        if flat.shape[-1] != self.clip.size:
            flat = functional.interpolate(flat, self.clip.size, mode="bilinear")
        return flat.unflatten(0, tuple(clips.shape[:2]))

    def logits(self, clips: Tensor) -> Tensor:
        return super().logits(self.resize(clips))


class ShortVideos(ShapesDataset):
    """Videos of three frames, shorter than the model's clip."""

    frames = 3
    size = 32

    def item(self, video_id: str) -> VideoItem:
        item = super().item(video_id)
        source = item.source
        frames = draw(source.direction, source.shape, self.frames, self.size)  # type: ignore[attr-defined]
        return VideoItem(video_id, item.label, _Frames(video_id, frames))


class LargeVideos(ShortVideos):
    frames, size = 12, 48


class _Frames:
    def __init__(self, name: str, frames: Any) -> None:
        self.name, self._frames = name, frames

    def read(self, sampler: Any) -> Any:
        return clip_of(self.name, self._frames, sampler)

    def sha256(self) -> str:
        return array_hash(self._frames)


class Whole(ToyCnn):
    """Takes four consecutive frames, so that a short video has to repeat some."""

    clip = ClipSpec(frames=4, size=32, policy="center", end="loop")


def run(**options: Any) -> Any:
    chosen = {
        "model": Whole(), "attack": Descend(), "dataset": ShortVideos(), "metrics": [], "limit": 5,
        "threat": vcr.Linf("6/255"), **options,
    }  # fmt: skip
    return vcr.evaluate(**chosen)


def labelled_wrongly(result: Any) -> int:
    return sum(r["status"] == "ineligible" for r in result.records)


class TestTiedFrames:
    def test_one_source_frame_carries_one_perturbation(self, tmp_path: Path) -> None:
        result = run(results=tmp_path)
        assert {tuple(r["input"]["indices"]) for r in result.records} == {(0, 1, 2)}
        for path in (result.folder / ARTIFACTS).glob("*.npz"):
            assert np.load(path)["adversarial"].shape[0] == 3

    def test_untied_every_occurrence_is_its_own(self, tmp_path: Path) -> None:
        result = run(results=tmp_path, protocol={"tie_frames": False})
        for path in (result.folder / ARTIFACTS).glob("*.npz"):
            kept = np.load(path)
            assert kept["adversarial"].shape[0] == 4
            assert (kept["clean"][0] == kept["clean"][3]).all()

    def test_metrics_are_told_where_a_clip_ends(self) -> None:
        class Told:
            keys = ("clips", "frames")

            def measure(self, reference: Tensor, test: Tensor, info: Any) -> dict[str, float]:
                return {"clips": info.clips, "frames": len(reference)}

        class Twice(Whole):
            clip = ClipSpec(frames=4, size=32, clips=2, light_clips=2, end="loop")

        for tied, (clips, frames) in ((True, (1, 3)), (False, (2, 8))):
            result = run(model=Twice(), metrics=[Told()], protocol={"tie_frames": tied})
            found = next(r["metrics"] for r in result.records if r["status"] == "ok")
            assert (found["clips"]["value"], found["frames"]["value"]) == (clips, frames)

    def test_the_kept_frames_reproduce_the_recorded_prediction(self, tmp_path: Path) -> None:
        result = run(results=tmp_path)
        import json

        model = Whole()
        for entry in json.loads((result.folder / ARTIFACTS / "clips.json").read_text()):
            levels = np.load(result.folder / ARTIFACTS / entry["file"])["adversarial"]
            video = torch.from_numpy(levels).permute(0, 3, 1, 2).float() / 255
            clip = video[[0, 1, 2, 0]].unsqueeze(0)
            assert int(model.logits(clip).argmax()) == entry["attacked"]["pred"]


class TestSpace:
    def test_input_attacks_what_the_network_sees(self) -> None:
        options: dict[str, Any] = {"model": Bigger(), "dataset": LargeVideos()}
        source = run(**options)
        inside = run(**options, protocol={"space": "input"})
        assert {tuple(r["input"]["size"]) for r in source.records} == {(48, 48)}
        assert {tuple(r["input"]["size"]) for r in inside.records} == {(32, 32)}
        for record in inside.records:
            assert record["status"] in ("ok", "ineligible")
            if record["status"] == "ok":
                assert record["perturbation"]["linf"] <= 6 / 255 + 1e-6

    def test_a_model_that_does_not_say_how_it_resizes_is_refused_by_name(self) -> None:
        result = run(protocol={"space": "input"})
        assert "no method 'resize'" in result.records[0]["error"]["message"]


class TestThreat:
    def test_frames_region_and_per_frame_radii(self) -> None:
        threat = vcr.Linf("6/255", frames=(1,), region=(0.0, 0.0, 0.5, 1.0))
        for record in run(threat=threat).records:
            if record["status"] == "ok":
                assert record["perturbation"]["frames_touched"] <= 1
                assert record["perturbation"]["l0_fraction"] <= 1 / 6 + 1e-9
        radii = vcr.ThreatModel(per_frame_eps=(0.0, 2 / 255, 0.0))
        for record in run(threat=radii).records:
            if record["status"] == "ok":
                assert record["perturbation"]["frames_touched"] == 1
                assert record["perturbation"]["linf"] <= 2 / 255 + 1e-6

    def test_eps_zero_changes_nothing_and_costs_nothing(self) -> None:
        for record in run(threat=vcr.Linf(0)).records:
            assert record["attacked"] == record["clean"]
            assert record["cost"]["forwards"] == 0

    def test_radii_of_another_number_of_frames_are_an_error_record(self) -> None:
        threat = vcr.ThreatModel(per_frame_eps=(0.0, 0.1))
        message = run(threat=threat).records[0]["error"]["message"]
        assert "2 values" in message
        assert "3 frames" in message

    def test_unrounded_results_may_lie_between_the_levels(self) -> None:
        result = run(threat=vcr.Linf("0.5/255", quantize=False))
        touched = [r["perturbation"]["linf"] for r in result.records if r["status"] == "ok"]
        assert touched
        assert all(0 < x <= 0.5 / 255 + 1e-6 for x in touched)


class TestSubsets:
    def ids(self, result: Any) -> list[str]:
        return [r["video"] for r in result.records]

    def test_a_manifest_names_the_videos(self, tmp_path: Path) -> None:
        from vcr_core.config.objects import resolve_objects
        from vcr_core.engine.subset import select_videos

        dataset = ShapesDataset()
        chosen = sorted(dataset.ids())[3:6]
        rows = tuple(
            ManifestRow(id=i, path=i, label=dataset.labels.names[dataset.item(i).label], sha256="")
            for i in chosen
        )
        path = tmp_path / "subset.csv"
        write_manifest(path, Manifest(rows=rows, facts={}))
        resolved, _ = resolve_objects(
            {"dataset": {}}, model=ToyCnn(), attack=None, defenses=[], dataset=dataset,
            metrics=[], limit=None,
        )  # fmt: skip
        import dataclasses

        import msgspec

        keys = msgspec.structs.replace(resolved.experiment.dataset_keys, subset=str(path))
        experiment = dataclasses.replace(resolved.experiment, dataset_keys=keys)
        videos: Sequence[tuple[str, int]] = select_videos(experiment, dataset)
        assert sorted(v for v, _ in videos) == chosen

    def test_a_limit_is_a_prefix(self) -> None:
        few = run(dataset=ShapesDataset(), model=ToyCnn(), attack=None, limit=4)
        more = run(dataset=ShapesDataset(), model=ToyCnn(), attack=None, limit=9)
        assert self.ids(more)[:4] == self.ids(few)

    def test_an_empty_dataset_says_so(self) -> None:
        class Nothing(ShapesDataset):
            def ids(self) -> list[str]:
                return []

        with pytest.raises(vcr.ConfigError, match="holds no video"):
            run(dataset=Nothing())
