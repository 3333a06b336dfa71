"""Runs whose labels are what the bare model says of the clean videos."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import vcr_core as vcr
from torch import Tensor
from vcr_core.cli import main
from vcr_core.datasets.labels import UNLABELLED
from vcr_core.definitions import OWN_LABELS
from vcr_core.errors import ConfigError
from vcr_core.leaderboard.manifest_check import check_manifest
from vcr_core.protocols import BaseVideoClassifier, ClipSpec, LabelSpace, VideoItem
from vcr_core.record_schema import validate_record
from vcr_core.reporters.columns import reading_columns
from vcr_core.reporters.extras import LEGEND_OWN_LABELS, extra_legends
from vcr_core.reporters.rows import make_row, make_rows
from vcr_core.reporters.terminal import plain_table
from vcr_core.summary import load_run
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.shapes import ShapesDataset

OWN = {"labels": "clean-prediction"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "cache"))


class Unlabelled(ShapesDataset):
    """The toy videos, of which nobody knows the classes."""

    labels = UNLABELLED

    def item(self, video_id: str) -> VideoItem:
        return VideoItem(video_id, 0, super().item(video_id).source)


class Descend:
    """Three sign steps; white-box."""

    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        adv = video.clone()
        for _ in range(3):
            grad = victim.loss_and_grad(adv).grad
            adv = ctx.threat.project(adv - 2 / 255 * grad.sign(), video)
        return adv


class Keeps:
    """Adds nothing, and keeps the labels that it was told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        self.told += goals.labels.tolist()
        return video


class Backwards:
    """A defense after which the toy says something else of some videos."""

    def wrap(self, predict: Any, random: Any) -> Any:
        return lambda clips: predict(clips.flip(2))


def run(**options: Any) -> Any:
    chosen = {
        "model": ToyCnn(), "attack": Descend(), "dataset": Unlabelled(), "metrics": [],
        "limit": 8, "threat": vcr.Linf("8/255"), "protocol": OWN, **options,
    }  # fmt: skip
    return vcr.evaluate(**chosen)


def corner_labels(result: Any) -> list[tuple[Any, Any]]:
    return [(r["label"], r["clean"]["pred"]) for r in result.records]


def test_the_label_is_the_clean_prediction_and_every_video_is_eligible() -> None:
    result = run()
    assert all(label == pred for label, pred in corner_labels(result))
    assert len({r["label"] for r in result.records}) > 1
    for record in result.records:
        validate_record(record)
        assert record["status"] == "ok"
        assert record["label_source"] == "clean-prediction"
        assert record["success"]["changed"] is (record["attacked"]["pred"] != record["label"])
        assert record["clean"]["p_label"] == record["clean"]["p_pred"]


def test_attacks_are_told_these_labels() -> None:
    attack = Keeps()
    result = run(attack=attack)
    assert sorted(attack.told) == sorted(r["label"] for r in result.records)
    assert [r["success"]["changed"] for r in result.records] == [False] * 8


def test_accuracy_on_clean_videos_is_no_number_and_success_is_a_changed_decision() -> None:
    result = run()
    summary = load_run(result.folder).summary
    rates = summary["definitions"]
    assert summary["labels"] == "clean-prediction"
    for name in ("clean_accuracy", "clean_top5_accuracy"):
        assert (rates[name]["value"], rates[name]["n"]) == (None, 0)
        assert rates[name]["reason"] == OWN_LABELS
    changed = sum(r["attacked"]["pred"] != r["label"] for r in result.records)
    assert (rates["asr_untargeted"]["k"], rates["asr_untargeted"]["n"]) == (changed, 8)
    assert rates["robust_accuracy"]["k"] == 8 - changed
    assert summary["headline"]["values"]["clean_accuracy"] is None
    assert "accuracy is agreement" in summary["headline"]["note"]


def test_the_label_stays_that_of_the_bare_model_behind_a_defense() -> None:
    bare, defended = run(), run(defense=Backwards())
    assert corner_labels(bare) == corner_labels(defended)
    kept = [r["clean_defended"]["pred"] == r["label"] for r in defended.records]
    assert not all(kept)
    assert [r["status"] == "ok" for r in defended.records] == kept
    rates = load_run(defended.folder).summary["definitions"]
    assert rates["defended_clean_accuracy"]["value"] == sum(kept) / 8
    assert rates["harm"]["value"] == pytest.approx(1 - sum(kept) / 8)


def test_labels_do_not_depend_on_the_batch() -> None:
    one, many = (run(runtime={"batch_videos": n}) for n in (1, 8))
    assert corner_labels(one) == corner_labels(many)
    assert [r["success"]["changed"] for r in one.records] == [
        r["success"]["changed"] for r in many.records
    ]


def test_labels_that_are_there_and_fit_no_model_are_left_alone() -> None:
    class Foreign(ShapesDataset):
        labels = LabelSpace("foreign", tuple(f"word {i}" for i in range(len(ShapesDataset.labels))))

    assert all(label == pred for label, pred in corner_labels(run(dataset=Foreign())))
    with pytest.raises(ConfigError, match="not among"):
        run(dataset=Foreign(), protocol={})


def test_a_dataset_without_labels_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"protocol\.labels = 'clean-prediction'"):
        run(protocol={})


def test_targets_are_never_the_clean_prediction() -> None:
    for record in run(targeted=True, target="next").records:
        assert record["target"] != record["label"]


class Refuses(BaseVideoClassifier):
    """Says nothing of any video."""

    labels = ToyCnn.labels
    clip = ClipSpec(frames=4)

    def logits(self, clips: Tensor) -> Tensor:
        return torch.zeros(len(clips), 1, len(self.labels))

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[dict[str, Any]]]:
        return self.logits(clips), [{"abstained": True} for _ in clips]

    def to(self, device: Any) -> Refuses:
        return self


def test_a_video_of_which_the_model_says_nothing_is_skipped() -> None:
    for record in run(model=Refuses(), attack=None).records:
        assert (record["status"], record["label"]) == ("skipped", None)
        assert "was to be the label" in record["notes"][0]


def test_a_video_that_cannot_be_read_has_no_label() -> None:
    class Broken(Unlabelled):
        def item(self, video_id: str) -> VideoItem:
            return VideoItem(video_id, 0, _Unreadable(video_id))

    record = run(dataset=Broken(), limit=1).records[0]
    assert (record["status"], record["label"]) == ("error", None)
    validate_record(record)


class _Unreadable:
    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, sampler: Any) -> Any:
        raise OSError("gone")

    def sha256(self) -> None:
        return None


class Learns:
    """Keeps the labels that an offline step is given."""

    norms = frozenset({"linf"})

    def prepare(self, ctx: Any) -> None:
        batches = ctx.load(ctx.items)
        loaded = [label for batch in batches for label in batch.labels.tolist()]
        (ctx.folder / "labels.txt").write_text(f"{loaded}\n{[item.label for item in ctx.items]}")

    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        return video


def test_offline_steps_learn_from_the_same_kind_of_labels() -> None:
    options: dict[str, Any] = {
        "model": ToyCnn(), "attack": Learns(), "dataset": Unlabelled(), "limit": 4,
        "prepared": {"videos": 5},
    }  # fmt: skip
    folder = vcr.prepare(**options, protocol=OWN)
    loaded, listed = (folder / "labels.txt").read_text().split("\n")
    made = json.loads((folder / "manifest.json").read_text())
    names = [video["id"] for video in made["videos"]]
    said = {r["video"]: r["clean"]["pred"] for r in run(attack=None, limit=None).records}
    assert loaded == listed == str([said[name] for name in names])
    assert made["made_for"]["protocol"]["labels"] == "clean-prediction"


class TestTables:
    def test_say_whose_labels_they_are(self) -> None:
        view = load_run(run().folder)
        row = make_row(view)
        assert row.dataset.endswith("(labels: clean predictions)")
        assert row.own_labels
        assert row.undefended.clean.value is None
        assert row.undefended.clean.reason == OWN_LABELS
        text = plain_table(make_rows([view]))
        assert "labels: clean predictions" in text
        assert OWN_LABELS in text

    def test_tell_such_runs_from_others(self) -> None:
        usual = run(dataset=ShapesDataset(), protocol={})
        rows = make_rows([load_run(usual.folder), load_run(run().folder)])
        assert len({row.dataset for row in rows}) == 2
        assert "Dataset" in [column.title for column in reading_columns(rows)]
        assert "Dataset" not in [column.title for column in reading_columns(rows[:1])]
        assert LEGEND_OWN_LABELS in extra_legends(rows)

    def test_and_no_leaderboard_takes_such_runs(self) -> None:
        found = check_manifest(load_run(run().folder).manifest)
        assert found.outcome == "failed"
        assert "ranks no models" in found.detail


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clips").mkdir()
    shapes = ShapesDataset()
    for number, name in enumerate(sorted(shapes.ids())[:3]):
        np.save(f"clips/{number}.npy", shapes.item(name).source.read(_all).frames)
    line = [
        *("run", "--model", "toy-cnn", "--dataset", "folder", "--set", "dataset.root=clips"),
        *("--set", "protocol.labels=clean-prediction", "--set", "metrics.names=[]"),
    ]
    with installed():
        assert main(line) == 0
        said = capsys.readouterr()
        assert "clean 100" not in said.out + said.err
        assert "labels: clean predictions" in said.out


def _all(count: int) -> Any:
    from vcr_core.video.sampling import whole_video

    return whole_video(count)
