"""Attacks on one model, shown to another: what is shown, what is shared, what is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import vcr_core as vcr
from torch import Tensor
from vcr_core.artifacts import ArtifactMissing
from vcr_core.config.objects import resolve_objects
from vcr_core.config.resolve import resolve_run
from vcr_core.config.sweep import expand
from vcr_core.engine import contest as contest_module
from vcr_core.engine.decode import decode, stackable
from vcr_core.engine.execution import execute
from vcr_core.engine.prepare import prepare_all
from vcr_core.engine.run import open_run
from vcr_core.engine.setup import Setup, build_setup
from vcr_core.errors import ConfigError, UsageError
from vcr_core.protocols import LabelSpace, VideoItem
from vcr_core.record_schema import stable_part, validate_record
from vcr_core.records import read_records
from vcr_core.reuse_store import REUSED
from vcr_core.specs import ClipSpec
from vcr_core.sweeping import run_sweep
from vcr_core.testing.toys.cnn import MotionEnergyNet, ToyCnn
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.shapes import FRAMES, ShapesDataset

RUN: dict[str, Any] = {
    "schema": 1,
    "dataset": {"name": "toy-shapes", "limit": 4},
    "attack": {"name": "toy-descent"},
    "threat": {"eps": "6/255"},
    "protocol": {"eval_repeats": 2, "attacker_knows_defense": False, "stop": "budget"},
    "metrics": {"names": ["mse", "psnr", "toy-difference"]},
    "runtime": {"device": "cpu", "threads": 1, "batch_videos": 3},
}


class Slow(ToyCnn):
    """Looks at three frames side by side, where ``toy-cnn`` looks at every other one of seven."""

    clip = ClipSpec(frames=3, stride=1, size=32)

    def __init__(self) -> None:
        self.network = MotionEnergyNet(speed=1.0)


class Twin(ToyCnn):
    """The same network under another name."""


class Backwards(ToyCnn):
    """The same network with its classes in the opposite order."""

    labels = LabelSpace("", tuple(reversed(ToyCnn.labels.names)))

    def logits(self, clips: Tensor) -> Tensor:
        return super().logits(clips).flip(-1)


class Mislabelled(ShapesDataset):
    """Every third video has a label that no model can get right."""

    def item(self, video_id: str) -> VideoItem:
        found = super().item(video_id)
        is_wrong = self.ids().index(video_id) % 3 == 0
        return VideoItem(found.id, (found.label + is_wrong) % 8, found.source)


@pytest.fixture(autouse=True)
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "cache"))
    with installed():
        yield


@pytest.fixture
def attacks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Model and size of every group that was attacked, in the order of the attacks."""
    seen: list[tuple[str, int]] = []
    whole = contest_module.Contest._perturb

    def counted(self: Any, results: Any, final: Any, rows: Any, *rest: Any) -> None:
        seen.append((self.experiment.model.ref, len(rows)))
        whole(self, results, final, rows, *rest)

    monkeypatch.setattr(contest_module.Contest, "_perturb", counted)
    return seen


def evaluate(where: Path, name: str, **options: Any) -> vcr.api.Result:
    chosen: dict[str, Any] = {
        "attack": "toy-descent", "dataset": "toy-shapes", "metrics": ["mse"], "limit": 6,
        "threat": vcr.Linf("6/255"), **options,
    }  # fmt: skip
    protocol = {"attacker_knows_defense": False, "stop": "budget", **chosen.pop("protocol", {})}
    runtime = {"batch_videos": 4, "device": "cpu", **chosen.pop("runtime", {})}
    return vcr.evaluate(**chosen, protocol=protocol, runtime=runtime, results=where / name)


def of_videos(result: vcr.api.Result) -> dict[str, dict[str, Any]]:
    return {record["video"]: record for record in result.records}


def bare(record: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal, without the note that says where it comes from."""
    stable = stable_part(record)
    notes = [note for note in stable.pop("notes", []) if not note.startswith(REUSED)]
    return {**stable, "notes": notes} if notes else stable


def kept(result: vcr.api.Result) -> dict[str, tuple[Tensor, Tensor]]:
    """Return clean and attacked frames ``[T, C, H, W]`` of the kept videos."""
    found = {}
    for entry in json.loads((result.folder / "artifacts" / "clips.json").read_text()):
        with np.load(result.folder / "artifacts" / entry["file"]) as arrays:
            pair = (arrays["clean"], arrays["adversarial"])
        clean, attacked = (torch.from_numpy(a).permute(0, 3, 1, 2) / 255 for a in pair)
        found[entry["video"]] = (clean, attacked)
    return found


def transfer_setup(model: Any, source: Any) -> Setup:
    resolved, parts = resolve_objects(
        {"threat": {"eps": 6 / 255}}, model=model, source=source, attack="toy-descent",
        defenses=[], dataset="toy-shapes", metrics=[], limit=None,
    )  # fmt: skip
    return build_setup(resolved.experiment, parts)


class TestWhatIsShown:
    def test_the_videos_are_those_of_the_sources_own_run(self, tmp_path: Path) -> None:
        own = of_videos(evaluate(tmp_path, "own", model="toy-cnn"))
        shown = evaluate(tmp_path, "shown", model=Slow(), source="toy-cnn")
        assert len(own) == 6
        for video, record in of_videos(shown).items():
            validate_record(record)
            there = own[video]
            for name in ("label", "clean", "attacked", "success"):
                assert record["source"][name] == there[name]
            for name in ("status", "perturbation", "metrics", "seeds", "trace"):
                assert record.get(name) == there.get(name)
            assert record["cost"]["backwards"] == there["cost"]["backwards"] > 0
            assert record["input"]["indices"] == there["input"]["indices"]
            assert record["input"]["plan"] == there["input"]["plan"]

    def test_the_model_samples_from_those_frames(self, tmp_path: Path) -> None:
        model = Slow()
        shown = evaluate(tmp_path, "shown", model=model, source="toy-cnn")
        frames = kept(shown)
        assert len(frames) == 4
        for video, pair in frames.items():
            record = of_videos(shown)[video]
            assert record["input"]["shown"] == "uniform_clips 3x1x1 loop of 4 frames"
            for name, clip in zip(("clean", "attacked"), pair, strict=True):
                # Of four frames, three side by side begin at the first one: (4 - 3) // 2 = 0.
                logits = model.logits(clip[None, :3])[0, 0]
                probabilities = logits.softmax(0)
                assert record[name]["pred"] == int(logits.argmax())
                assert record[name]["p_label"] == pytest.approx(
                    float(probabilities[record["label"]]), abs=1e-5
                )

    def test_frames_that_it_would_sample_anyway_are_sampled_as_always(self) -> None:
        setup = transfer_setup(Twin(), "toy-cnn")
        alone = build_setup(setup.experiment.attack_run)
        video = ShapesDataset().ids()[0]
        seen, own = decode(setup, video), decode(alone, video)
        assert seen.facts["shown"] == "uniform_clips 4x2x1 loop"
        assert torch.equal(seen.frames, own.frames)
        assert torch.equal(seen.gather, own.gather)
        assert seen.gather.tolist() == [[0, 1, 2, 3]]

    def test_others_are_a_video_of_their_own(self) -> None:
        setup = transfer_setup("toy-cnn", Slow())
        seen = decode(setup, ShapesDataset().ids()[0])
        middle = (FRAMES - 3) // 2
        assert seen.facts["indices"] == [middle, middle + 1, middle + 2]
        # Every other frame of three, from the first on, begins again after the last.
        assert seen.gather.tolist() == [[0, 2, 1, 0]]
        assert seen.facts["shown"] == "uniform_clips 4x2x1 loop of 3 frames"
        assert seen.as_attacked is not None
        assert seen.as_attacked.gather.tolist() == [[0, 1, 2]]

    def test_groups_are_those_of_the_source(self) -> None:
        setup = transfer_setup(Slow(), "toy-cnn")
        videos = [decode(setup, video) for video in ShapesDataset().ids()[:3]]
        videos[1].gather = videos[1].gather.flip(1)
        assert [len(group) for group in stackable(videos)] == [3]
        videos[2].as_attacked.gather = videos[2].as_attacked.gather.flip(1)  # type: ignore[union-attr]
        assert [len(group) for group in stackable(videos)] == [2, 1]

    def test_order_and_batches_of_the_evaluated_model_do_not_matter(self, tmp_path: Path) -> None:
        tables = {**RUN, "model": "toy-batch-norm", "source": "toy-cnn"}
        found = []
        for name in ("forwards", "backwards"):
            run = open_run(resolve_run(tables), results=tmp_path / name)
            assert execute(run, reverse=name == "backwards").exit_code == 0
            found.append([bare(record) for record in read_records(run.folder)])
        assert found[0] == found[1]


class TestOutcomes:
    def test_eligible_is_what_the_source_has_right(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {"dataset": Mislabelled(), "limit": 9, "metrics": ["mse"]}
        result = evaluate(tmp_path, "r", model="toy-batch-norm", source="toy-cnn", **options)
        records = result.records
        assert {record["status"] for record in records} == {"ok", "ineligible"}
        for record in records:
            right = record["source"]["clean"]["pred"] == record["source"]["label"]
            assert (record["status"] == "ok") == right
            assert ("success" in record) == right
            assert ("perturbation" in record) == right
            if not right:
                assert record["attacked"] == record["clean"]
                assert "success" not in record["source"]
        both = [
            r for r in records
            if r["status"] == "ok" and r["clean"]["pred"] == r["label"]
        ]  # fmt: skip
        rates = result.summary()
        assert rates["transfer_rate"]["n"] == len(both)
        assert rates["transfer_rate"]["k"] == sum(r["success"]["changed"] for r in both)
        assert rates["source_asr"]["n"] == sum(r["status"] == "ok" for r in records)

    def test_labels_are_matched_by_name(self, tmp_path: Path) -> None:
        own = evaluate(tmp_path, "own", model="toy-cnn")
        shown = evaluate(tmp_path, "shown", model=Backwards(), source="toy-cnn")
        last = len(ToyCnn.labels.names) - 1
        for video, record in of_videos(shown).items():
            there = of_videos(own)[video]
            assert record["label"] == last - record["source"]["label"]
            assert record["source"]["label"] == there["label"]
            assert record["attacked"]["pred"] == last - there["attacked"]["pred"]
            assert record["success"]["changed"] == there["success"]["changed"]
        rates = shown.summary()
        assert rates["transfer_rate"]["value"] == rates["source_asr"]["value"] > 0

    def test_targets_are_the_same_class_on_both_sides(self, tmp_path: Path) -> None:
        result = evaluate(
            tmp_path, "r", model=Backwards(), source="toy-cnn", targeted=True, target="next"
        )
        names, theirs = Backwards.labels.names, ToyCnn.labels.names
        for record in result.records:
            assert names[record["target"]] == theirs[record["source"]["target"]]
            assert record["source"]["target"] == (record["source"]["label"] + 1) % 8
            assert record["success"]["target"] == record["source"]["success"]["target"]
        rates = result.summary()
        assert rates["transfer_rate_targeted"]["k"] == rates["source_asr_targeted"]["k"]

    def test_a_target_that_the_model_does_not_know_is_refused(self, tmp_path: Path) -> None:
        class Fewer(Backwards):
            labels = LabelSpace("", (*Backwards.labels.names[:7], "something else"))

        with pytest.raises(ConfigError, match="source model 'toy-cnn'"):
            evaluate(
                tmp_path, "r", model=Fewer(), source="toy-cnn", targeted=True,
                protocol={"labels": "clean-prediction"},
            )  # fmt: skip

    def test_own_labels_are_those_of_each_model(self, tmp_path: Path) -> None:
        result = evaluate(
            tmp_path, "r", model="toy-batch-norm", source="toy-cnn",
            protocol={"labels": "clean-prediction"},
        )  # fmt: skip
        for record in result.records:
            assert record["status"] == "ok"
            assert record["label_source"] == "clean-prediction"
            assert record["label"] == record["clean"]["pred"] == 2
            assert record["source"]["label"] == record["source"]["clean"]["pred"]

    def test_a_defense_stands_before_the_evaluated_model_alone(self, tmp_path: Path) -> None:
        result = evaluate(
            tmp_path, "r", model=Twin(), source="toy-cnn", defense="toy-noise",
            protocol={"eval_repeats": 3},
        )  # fmt: skip
        for record in result.records:
            assert len(record["clean_defended"]) == len(record["attacked_defended"]) == 3
            assert set(record["source"]) == {"label", "clean", "attacked", "success"}
            # The same network: what the bare one says is what the source says.
            assert record["attacked"] == record["source"]["attacked"]
        assert result.summary()["defended_transfer_rate"]["n"] == 6

    def test_a_failure_is_one_record_with_the_evaluated_models_label(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bad = ShapesDataset().ids()[1]

        class Broken(ShapesDataset):
            def item(self, video_id: str) -> VideoItem:
                found = super().item(video_id)
                return VideoItem(
                    found.id, found.label, Unreadable() if video_id == bad else found.source
                )

        class Unreadable:
            name = "unreadable"

            def read(self, _sampler: Any) -> Any:
                raise OSError("no such disk")

            def sha256(self) -> str | None:
                return None

        options: dict[str, Any] = {"dataset": Broken(), "limit": 24, "metrics": []}
        records = of_videos(evaluate(tmp_path, "r", model=Backwards(), source="toy-cnn", **options))
        assert records[bad]["status"] == "error"
        item = ShapesDataset().item(bad)
        assert Backwards.labels.names[records[bad]["label"]] == ToyCnn.labels.names[item.label]
        assert sum(record["status"] == "ok" for record in records.values()) == 23

    def test_two_objects_that_look_alike_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="attribute 'name'"):
            evaluate(tmp_path, "r", model=Slow(), source=Slow())

    def test_videos_are_exported_from_the_sources_run(self, tmp_path: Path) -> None:
        result = evaluate(tmp_path, "r", model="toy-batch-norm", source="toy-cnn")
        with pytest.raises(UsageError, match="the same attack on toy-cnn itself"):
            result.export_videos(tmp_path / "videos")


def sweep(results: Path, **runtime: Any) -> dict[str, list[dict[str, Any]]]:
    """Run a sweep of two models and return the records of every run by run id."""
    tables = {
        **RUN,
        "runtime": {**RUN["runtime"], **runtime},
        "matrix": {"model": ["toy-cnn", "toy-batch-norm"], "defense": ["none", "toy-noise"]},
    }
    outcome = run_sweep(expand(tables, transfer=True), results=results)
    assert outcome.exit_code == 0, outcome.messages
    return {folder.name: read_records(folder) for folder in outcome.folders}


def essence(runs: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [bare(record) for record in records] for name, records in runs.items()}


def makers(records: Sequence[dict[str, Any]]) -> set[str]:
    return {
        note.removeprefix(f"{REUSED}: the attack of run ")
        for record in records
        for note in record.get("notes", ())
        if note.startswith(REUSED)
    }


class TestAttackOnce:
    def test_cold_warm_and_off_are_equal(
        self, tmp_path: Path, attacks: list[tuple[str, int]]
    ) -> None:
        off = sweep(tmp_path / "off", reuse=False)
        assert len(off) == 8
        # The other model is right about no video of these, so there is nothing to attack on it.
        once = [("toy-cnn", 3), ("toy-cnn", 1)]
        assert attacks == 4 * once
        del attacks[:]
        cold = sweep(tmp_path / "cold")
        assert attacks == once
        del attacks[:]
        warm = sweep(tmp_path / "warm")
        assert attacks == []
        assert essence(off) == essence(cold) == essence(warm)
        own = next(n for n in cold if n.startswith("toy-shapes-toy-cnn-toy-descent-nodefense"))
        for name, records in cold.items():
            eligible = [r for r in records if r["status"] == "ok"]
            of_cnn = "@toy-cnn" in name or ("-toy-cnn-" in name and "@" not in name)
            if of_cnn and name != own:
                assert makers(records) == {own}
                assert all(r["cost"]["t_attack_s"] == 0 for r in eligible)
        assert not makers(cold[own])
        assert all(record["cost"]["t_attack_s"] > 0 for record in cold[own])

    def test_a_run_alone_takes_over_the_sources_own_attack(
        self, tmp_path: Path, attacks: list[tuple[str, int]]
    ) -> None:
        share = {"reuse": True}
        own = evaluate(tmp_path, "own", model="toy-cnn", runtime=share)
        assert attacks == [("toy-cnn", 4), ("toy-cnn", 2)]
        shown = evaluate(tmp_path, "shown", model="toy-batch-norm", source="toy-cnn")
        assert len(attacks) == 2
        assert makers(shown.records) == {own.view.name}
        # The other way round it is the same: what the transfer run made serves the white-box run.
        evaluate(tmp_path, "a", model="toy-batch-norm", source="toy-cnn", seed=7, runtime=share)
        assert len(attacks) == 4
        evaluate(tmp_path, "b", model="toy-cnn", seed=7)
        assert len(attacks) == 4

    def test_predictions_of_the_source_are_not_taken_for_those_of_the_model(
        self, tmp_path: Path
    ) -> None:
        share = {"reuse": True}
        evaluate(tmp_path, "own", model="toy-cnn", runtime=share)
        options: dict[str, Any] = {"model": "toy-batch-norm", "source": "toy-cnn"}
        warm = evaluate(tmp_path, "warm", runtime=share, **options)
        again = evaluate(tmp_path, "again", runtime=share, **options)
        off = evaluate(tmp_path, "off", runtime={"reuse": False}, **options)
        for result in (warm, again):
            assert [bare(r) for r in result.records] == [bare(r) for r in off.records]
        assert {record["attacked"]["pred"] for record in off.records} == {2}

    def test_an_offline_step_is_that_of_the_source(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {
            "attack": "toy-universal", "limit": 4, "prepared": {"videos": 4}
        }  # fmt: skip
        shown: dict[str, Any] = {"model": "toy-batch-norm", "source": "toy-cnn", **options}
        with pytest.raises(ArtifactMissing, match="--model toy-cnn") as caught:
            evaluate(tmp_path, "before", **shown)
        assert "source" not in str(caught.value)
        for_own = {k: v for k, v in options.items() if k != "attack"}
        vcr.prepare(
            model="toy-cnn", attack="toy-universal", dataset="toy-shapes",
            threat=vcr.Linf("6/255"), **for_own,
            protocol={"attacker_knows_defense": False, "stop": "budget"},
        )  # fmt: skip
        own = evaluate(tmp_path, "own", model="toy-cnn", **options)
        pair = {
            **RUN, "model": "toy-batch-norm", "source": "toy-cnn", "attack": "toy-universal",
            "prepare": {"videos": 4},
        }  # fmt: skip
        for command in (prepare_all, prepare_all):
            ((artifact, is_new),) = command(resolve_run(pair).experiment)
            assert artifact.manifest["made_for"]["model"]["ref"] == "vcr-toys/toy-cnn"
            assert not is_new
        taken = evaluate(tmp_path, "after", **shown)
        assert {r["artifact"] for r in taken.records} == {r["artifact"] for r in own.records}
