"""Offline steps: refused when missing, made once, resumed, and kept apart from what is judged."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
import vcr_core as vcr
from vcr_core.artifacts import ArtifactDamaged, ArtifactMissing
from vcr_core.cli import main
from vcr_core.config.command_text import command_text
from vcr_core.config.identity import identity_of
from vcr_core.config.resolve import resolve_run
from vcr_core.engine.artifact import required_artifact, wanted_artifact
from vcr_core.engine.prepare import Limits, PrepareStopped, prepare_artifact
from vcr_core.engine.setup import build_dataset
from vcr_core.engine.subset import select_videos, training_videos
from vcr_core.errors import ConfigError, ContractViolation, StoreError, UsageError
from vcr_core.metering import modules_of
from vcr_core.record_schema import validate_record
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.shapes import ShapesDataset

BASE: dict[str, Any] = {
    "dataset": {"name": "toy-shapes", "limit": 6},
    "model": "toy-cnn",
    "attack": "toy-universal",
    "threat": {"eps": "4/255"},
    "metrics": {"names": []},
}


@pytest.fixture(autouse=True)
def _toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with installed():
        yield


def experiment(**changes: Any) -> Any:
    return resolve_run({**BASE, **changes}).experiment


class Slow:
    """Counts to ten, three videos a step, and keeps where it is."""

    norms = frozenset({"linf"})

    def prepare(self, ctx: Any) -> None:
        path = ctx.folder / "count.json"
        count = json.loads(path.read_text())["count"] if path.exists() else 0
        (batch,) = ctx.load(ctx.items[:3])
        for done in range(count + 1, 11):
            ctx.victim(batch, repeat=done).loss_and_grad(batch.videos)
            path.write_text(json.dumps({"count": done, "labels": batch.labels.tolist()}))
            ctx.progress(done, 10)

    def attack(self, victim: Any, video: Any, goals: Any, ctx: Any) -> Any:
        told = json.loads((ctx.folder / "count.json").read_text())
        assert told["count"] == 10
        return (video + 1 / 255).clamp(0, 1)


def test_a_run_without_its_artifact_prints_the_line_that_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shlex.split(
        "run --model toy-cnn --attack toy-universal --dataset toy-shapes --limit 6 --seed 3 "
        "--eps 4/255 --set dataset.rule=stratified --set metrics.names=[] --results results"
    )
    assert main(run) == 3
    assert not Path("results").exists()
    said = capsys.readouterr().err
    (line,) = [text.strip() for text in said.splitlines() if text.startswith("  vcr prepare")]
    assert main(shlex.split(line)[1:]) == 0
    told = capsys.readouterr().out
    assert "state\tmade" in told
    assert main(run) == 0
    (folder,) = Path("results").iterdir()
    manifest = json.loads((folder / "run.json").read_text())
    (attack,) = [c for c in manifest["components"] if c["role"] == "attack"]
    assert f"sha256\t{attack['artifact']['sha256']}" in told
    assert attack["artifact"]["videos"] == 18
    lines = [x for f in (folder / "records").iterdir() for x in f.read_text().splitlines()]
    records = [json.loads(x) for x in lines]
    assert {r["artifact"] for r in records} == {attack["artifact"]["sha256"]}
    assert not any("leak" in r["flags"] for r in records)
    for record in records:
        validate_record(record)
    capsys.readouterr()
    assert main([*shlex.split(line)[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["artifacts"][0]["made"] is False
    assert main(["prepare", str(folder)]) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seed": 7, "prepare": {"videos": 5, "allow_overlap": True}},
        {"threat": {"eps": 0.0123, "frames": [0, 2], "region": [0, 0, 0.5, 1], "quantize": False}},
        {"threat": {"per_frame_eps": ["1/255", 0.1, 0, 0]}, "protocol": {"stop": "budget"}},
        {"defense": "toy-quantise+toy-noise", "protocol": {"eot": 2}},
        {"dataset": {"name": "toy-shapes", "rule": "shuffle"}, "prepare": {"allow_overlap": True}},
    ],
)
def test_the_printed_line_describes_the_same_run(changes: dict[str, Any]) -> None:
    asked = experiment(**changes)
    line = wanted_artifact(asked, build_dataset(asked)).command
    (*_,) = words = shlex.split(line)
    assert words[:2] == ["vcr", "prepare"]
    named = {"model": "model", "attack": "attack", "defense": "defense", "dataset": "dataset",
             "limit": "limit", "seed": "seed", "eps": "threat.eps"}  # fmt: skip
    shortcuts: dict[str, Any] = {}
    overrides: list[str] = []
    for option, value in zip(words[2::2], words[3::2], strict=True):
        if option == "--set":
            overrides.append(value)
        else:
            key = named[option.removeprefix("--")]
            shortcuts[key] = int(value) if key in ("limit", "seed") else value
    again = resolve_run(None, shortcuts=shortcuts, overrides=overrides).experiment
    mine, theirs = identity_of(asked), identity_of(again)
    assert {**mine, "metrics": []} == {**theirs, "metrics": []}


def test_training_videos_are_the_next_ones_and_never_the_evaluated(tmp_path: Path) -> None:
    for rule in ("hash", "shuffle", "stratified", "list"):
        asked = experiment(dataset={"name": "toy-shapes", "limit": 6, "rule": rule},
                           prepare={"videos": 10})  # fmt: skip
        longer = experiment(dataset={"name": "toy-shapes", "limit": 16, "rule": rule})
        dataset = build_dataset(asked)
        training, overlap = training_videos(asked, dataset)
        assert training == select_videos(longer, dataset)[6:]
        assert overlap == []


def test_overlap_is_refused_unless_allowed_and_then_flagged(tmp_path: Path) -> None:
    everything = experiment(dataset={"name": "toy-shapes"})
    with pytest.raises(ConfigError, match=r"prepare\.allow_overlap"):
        prepare_artifact(everything)
    arguments: dict[str, Any] = {
        "model": "toy-cnn", "attack": "toy-universal", "dataset": "toy-shapes", "metrics": [],
        "limit": 20, "prepared": {"videos": 7, "allow_overlap": True}, "results": tmp_path,
    }  # fmt: skip
    folder = vcr.prepare(**{k: v for k, v in arguments.items() if k not in ("results", "metrics")})
    result = vcr.evaluate(**arguments)
    leaked = [r["video"] for r in result.records if "leak" in r["flags"]]
    assert leaked == [r["video"] for r in result.records][:3]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["overlap"] == leaked
    assert len(manifest["videos"]) == 7


def test_videos_outside_of_a_subset_manifest_train(tmp_path: Path) -> None:
    ids = list(ShapesDataset().ids())
    text = "id,path,label,sha256\n" + "".join(f"{i},{i},x,\n" for i in ids[:4])
    (tmp_path / "four.csv").write_text(text)
    asked = experiment(dataset={"name": "toy-shapes", "subset": str(tmp_path / "four.csv")})
    training, overlap = training_videos(asked, build_dataset(asked))
    assert {i for i, _ in training} == {*ids[4:]}
    assert not overlap


def test_what_determines_the_content_determines_the_place() -> None:
    def key(**changes: Any) -> str:
        asked = experiment(**changes)
        return wanted_artifact(asked, build_dataset(asked)).key

    first = key()
    assert key() == first
    assert key(runtime={"batch_videos": 2}, output={"keep_clips": 0}) == first
    assert key(protocol={"autocast": "off"}, runtime={"channels_last": True}) == first
    # Budgets of the run and metrics are nothing to the offline step.
    assert key(threat={"eps": "4/255", "max_forwards": 9}, metrics={"names": ["psnr"]}) == first
    others = [
        key(seed=2),
        key(threat={"eps": "8/255"}),
        key(prepare={"videos": 5}),
        key(dataset={"name": "toy-shapes", "limit": 7}),
        key(defense="toy-darken"),
        key(protocol={"tie_frames": False}),
        key(protocol={"autocast": "bfloat16"}),
        key(model={"name": "toy-batch-norm"}),
    ]
    assert len({first, *others}) == len(others) + 1
    # A defense that the attacker does not know changes nothing.
    assert key(defense="toy-darken", protocol={"attacker_knows_defense": False}) == first


def test_clips_at_a_time_may_be_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    from vcr_core.engine import prepare

    asked: list[Any] = []

    def fitted(of: Any, _model: Any, _device: Any) -> int:
        asked.append(of.runtime.chunk_clips)
        return 2

    monkeypatch.setattr(prepare, "fitted_chunk", fitted)
    assert prepare_artifact(experiment(runtime={"chunk_clips": "auto", "device": "cpu"}))
    assert asked == ["auto"]


def test_a_changed_or_foreign_artifact_is_refused() -> None:
    asked = experiment()
    artifact, made = prepare_artifact(asked)
    assert made
    assert prepare_artifact(asked) == (artifact, False)
    dataset = build_dataset(asked)
    assert required_artifact(asked, dataset).sha256 == artifact.sha256
    with pytest.raises(ArtifactMissing, match=r"threat\.eps is 4/255, needed 8/255\).*\n  vcr"):
        required_artifact(experiment(threat={"eps": "8/255"}), dataset)
    (artifact.folder / "shift.json").write_text("[1, 1, 1]")
    with pytest.raises(ArtifactDamaged, match=r"shift\.json is not the one"):
        required_artifact(asked, dataset)
    mended, made = prepare_artifact(asked)
    assert made
    assert mended.sha256 == artifact.sha256
    (artifact.folder / "manifest.json").write_text("{")
    with pytest.raises(ArtifactDamaged, match=r"manifest\.json cannot be read"):
        required_artifact(asked, dataset)


def test_nothing_is_needed_where_nothing_may_change() -> None:
    asked = experiment(threat={"eps": 0})
    assert wanted_artifact(asked, build_dataset(asked)) is None
    with pytest.raises(UsageError, match="eps = 0"):
        prepare_artifact(asked)
    with pytest.raises(UsageError, match="no offline step"):
        prepare_artifact(experiment(attack="toy-descent"))
    with pytest.raises(UsageError, match="--attack"):
        prepare_artifact(resolve_run({k: v for k, v in BASE.items() if k != "attack"}).experiment)


def test_limits_stop_and_the_next_call_goes_on(tmp_path: Path) -> None:
    from vcr_core.config.objects import resolve_objects

    resolved, parts = resolve_objects(
        {"seed": 1}, model=ToyCnn(), attack=Slow(), defenses=[], dataset=ShapesDataset(),
        metrics=[], limit=6,
    )  # fmt: skip
    seen: list[tuple[int, int]] = []

    def go(**limits: Any) -> Any:
        return prepare_artifact(
            resolved.experiment, parts=parts, limits=Limits(**limits),
            progress=lambda done, total: seen.append((done, total)),
        )  # fmt: skip

    with pytest.raises(PrepareStopped, match="limit of 4 iterations, 4 of 10") as stopped:
        go(iterations=4)
    assert stopped.value.exit_code == 1
    with pytest.raises(PrepareStopped, match="limit of 0 s, 5 of 10"):
        go(seconds=0)
    with pytest.raises(PrepareStopped) as stopped:
        go(stop=lambda: True)
    assert stopped.value.exit_code == 130
    with pytest.raises(ArtifactMissing, match="stopped before it was done"):
        required_artifact(resolved.experiment, parts.dataset, parts)
    artifact, made = go()
    assert made
    assert seen == [(done, 10) for done in range(1, 11)]
    # Four calls, one gradient of three videos an iteration.
    assert artifact.manifest["cost"]["backwards"] == 30
    assert artifact.manifest["cost"]["calls"] == 4
    assert sorted(artifact.manifest["files"]) == ["count.json"]


def test_objects_from_python_are_prepared_by_their_parameters(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "model": ToyCnn(), "attack": Slow(), "dataset": ShapesDataset(), "limit": 4,
    }  # fmt: skip
    with pytest.raises(ArtifactMissing, match=r"vcr_core\.prepare"):
        vcr.evaluate(**arguments, metrics=[], results=tmp_path)
    folder = vcr.prepare(**arguments)
    result = vcr.evaluate(**arguments, metrics=[], results=tmp_path)
    assert {r["status"] for r in result.records} == {"ok"}
    other = ToyCnn()
    with torch.no_grad():
        first = next(iter(p for m in modules_of(other) for p in m.parameters()))
        first.add_(1)
    with pytest.raises(ArtifactMissing):
        vcr.evaluate(**{**arguments, "model": other}, metrics=[], results=tmp_path / "other")
    assert vcr.prepare(**arguments) == folder


def test_a_run_does_not_go_on_with_another_artifact(tmp_path: Path) -> None:
    from vcr_core.engine.run import open_run

    asked = resolve_run(BASE)
    artifact, _ = prepare_artifact(asked.experiment)
    run = open_run(asked, results=tmp_path / "results")
    facts = json.loads((run.folder / "run.json").read_text())
    for component in facts["components"]:
        if "artifact" in component:
            component["artifact"]["sha256"] = "0" * 64
    (run.folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(StoreError, match="made anew"):
        open_run(asked, results=tmp_path / "results")
    assert artifact.folder.is_dir()


def test_a_finished_run_needs_its_artifact_no_more(tmp_path: Path) -> None:
    import shutil

    from vcr_core.engine.execution import execute
    from vcr_core.engine.run import open_run

    asked = resolve_run(BASE)
    artifact, _ = prepare_artifact(asked.experiment)
    execute(open_run(asked, results=tmp_path / "results"))
    shutil.rmtree(artifact.folder)
    assert open_run(asked, results=tmp_path / "results").pending == ()


def test_passes_around_the_context_are_refused() -> None:
    class Around(Slow):
        def prepare(self, ctx: Any) -> None:
            (batch,) = ctx.load(ctx.items[:1])
            ctx.model.logits(batch.videos)
            (ctx.folder / "x").write_text("x")

    class Peeks(Slow):
        access = "transfer"

    for attack, said in ((Around(), "without ctx.victim"), (Peeks(), "use ctx.surrogate")):
        with pytest.raises(ContractViolation, match=said):
            vcr.prepare(model=ToyCnn(), attack=attack, dataset=ShapesDataset(), limit=4)


def test_an_adaptive_attack_is_prepared_against_the_defended_model(tmp_path: Path) -> None:
    seen: list[float] = []

    class Watches(Slow):
        def prepare(self, ctx: Any) -> None:
            (batch,) = ctx.load(ctx.items[:3])
            seen.append(float(ctx.victim(batch).scores(batch.videos).sum()))
            (ctx.folder / "x").write_text("x")

    common: dict[str, Any] = {
        "model": ToyCnn(), "attack": Watches(), "dataset": ShapesDataset(), "limit": 4,
    }  # fmt: skip
    vcr.prepare(**common)
    vcr.prepare(**common, defense="toy-darken")
    assert seen[0] != seen[1]


def test_a_sweep_does_the_cells_that_need_no_artifact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("sweep.toml").write_text(
        'model = "toy-cnn"\n[dataset]\nname = "toy-shapes"\nlimit = 2\n'
        "[metrics]\nnames = []\n"
        '[matrix]\nattack = ["toy-descent", "toy-universal"]\n'
    )
    assert main(["sweep", "sweep.toml", "--results", "results"]) == 3
    assert "vcr prepare --model toy-cnn --attack toy-universal" in capsys.readouterr().err
    (folder,) = [p for p in Path("results").iterdir() if (p / "run.json").is_file()]
    assert "toy-descent" in folder.name


def test_defaults_are_left_out_of_the_printed_line() -> None:
    pytest.importorskip("vcr_attacks.bmtc")
    asked = resolve_run({"model": "toy-cnn", "attack": "bmtc", "dataset": "toy-shapes"}).experiment
    assert command_text("prepare", asked) == (
        "vcr prepare --model toy-cnn --attack bmtc --dataset toy-shapes"
    )


def test_command_line_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "toy-universal", "--attack", "toy-descent", "--model", "toy-cnn"]) == 2
    assert "two attacks" in capsys.readouterr().err
    assert main(["prepare", "toy-descent", "--model", "toy-cnn", "--dataset", "toy-shapes"]) == 2
    assert "no offline step" in capsys.readouterr().err
    assert main(["prepare", "toy-univers", "--model", "toy-cnn"]) == 2
