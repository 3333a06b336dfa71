"""Attack once, defend many: records are the same without, with an empty and with a full store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import vcr_core as vcr
from vcr_core.config.identity import attack_identity
from vcr_core.config.resolve import resolve_run
from vcr_core.config.sweep import expand
from vcr_core.engine import contest as contest_module
from vcr_core.engine.decode import Decoded, decode
from vcr_core.engine.reuse import open_reuse
from vcr_core.engine.reuse_keys import Shelves, _code, _source_digest, group_key
from vcr_core.engine.setup import Parts, build_setup
from vcr_core.metering import modules_of
from vcr_core.protocols import VideoItem
from vcr_core.record_schema import stable_part
from vcr_core.records import read_records
from vcr_core.reuse_store import REUSED
from vcr_core.sweep_order import sweep_steps
from vcr_core.sweeping import run_sweep
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.shapes import ShapesDataset

RUN: dict[str, Any] = {
    "schema": 1,
    "dataset": {"name": "toy-shapes", "limit": 4},
    "model": {"name": "toy-cnn"},
    "attack": {"name": "toy-search"},
    "threat": {"eps": "4/255"},
    "protocol": {"eval_repeats": 2, "attacker_knows_defense": False},
    "metrics": {"names": ["mse", "psnr", "toy-difference"]},
    "runtime": {"device": "cpu", "threads": 1, "batch_videos": 3},
}
MATRIX: dict[str, Any] = {
    "matrix": {"defense": ["none", "toy-darken", "toy-noise"]},
    "include": [{"defense": "toy-noise", "protocol.attacker_knows_defense": True}],
}


@pytest.fixture(autouse=True)
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "cache"))
    with installed():
        yield


@pytest.fixture
def attacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the groups that were attacked, in the order of the attacks."""
    seen: list[int] = []
    whole = contest_module.Contest._perturb

    def counted(self: Any, results: Any, final: Any, rows: Any, *rest: Any) -> None:
        seen.append(len(rows))
        whole(self, results, final, rows, *rest)

    monkeypatch.setattr(contest_module.Contest, "_perturb", counted)
    return seen


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {**base, **{name: {**base.get(name, {}), **t} for name, t in changes.items()}}


def sweep(results: Path, **changes: Any) -> dict[str, list[dict[str, Any]]]:
    """Run the sweep and return the records of every run by run id, in the order of its file."""
    outcome = run_sweep(expand({**changed(RUN, changes), **MATRIX}), results=results)
    assert outcome.exit_code == 0, outcome.messages
    return {folder.name: read_records(folder) for folder in outcome.folders}


def bare(record: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal, without the note that says where it comes from."""
    stable = stable_part(record)
    notes = [note for note in stable.pop("notes", []) if not note.startswith(REUSED)]
    return {**stable, "notes": notes} if notes else stable


def essence(runs: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [bare(record) for record in records] for name, records in runs.items()}


def reused(records: Sequence[dict[str, Any]]) -> set[str]:
    return {n for r in records for n in r.get("notes", ()) if n.startswith(REUSED)}


class TestRecords:
    def test_cold_warm_and_off_are_equal(self, tmp_path: Path, attacks: list[int]) -> None:
        off = sweep(tmp_path / "off", runtime={"reuse": False})
        assert not (tmp_path / "cache").exists()
        each = [3, 1]
        assert attacks == 4 * each
        del attacks[:]
        cold = sweep(tmp_path / "cold")
        assert attacks == 2 * each  # the bare model's, and the adaptive one
        del attacks[:]
        warm = sweep(tmp_path / "warm")
        assert attacks == each  # the adaptive one
        assert essence(off) == essence(cold) == essence(warm)
        source, made = next(iter(cold.items()))
        assert not reused(made)
        assert all(record["cost"]["t_attack_s"] > 0 for record in made)
        for records in list(cold.values())[1:3]:
            assert reused(records) == {f"reused: the attack of run {source}"}
            for record, original in zip(records, made, strict=True):
                assert record["cost"]["t_attack_s"] == 0
                assert record["cost"]["forwards"] == original["cost"]["forwards"] > 0
        assert [bool(reused(records)) for records in cold.values()] == [False, True, True, False]
        # The same run in another folder is another run: it says what it did not compute.
        assert [bool(reused(records)) for records in warm.values()] == [True, True, True, False]

    def test_without_rounding_floats_are_kept(self, tmp_path: Path) -> None:
        off = sweep(tmp_path / "off", threat={"quantize": False}, runtime={"reuse": False})
        assert essence(sweep(tmp_path / "cold", threat={"quantize": False})) == essence(off)

    def test_damaged_files_are_made_anew(self, tmp_path: Path, attacks: list[int]) -> None:
        kept = [run(tmp_path, "a", reuse=True)]
        for path in (tmp_path / "cache").rglob("*.entry"):
            path.write_bytes(path.read_bytes()[:-1])
        kept.append(run(tmp_path, "b", reuse=True))
        kept.append(run(tmp_path, "c", reuse=True))
        assert attacks == [4, 4]
        assert [bare(r) for r in kept[0].records] == [bare(r) for r in kept[1].records]
        assert [bare(r) for r in kept[0].records] == [bare(r) for r in kept[2].records]

    def test_ineligible_videos_stay_what_they_are(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {"dataset": Mislabelled(), "metrics": ["mse"], "limit": 6}
        run(tmp_path, "source", reuse=True, defense=None, **options)
        off = run(tmp_path, "off", reuse=False, **options)
        warm = run(tmp_path, "warm", reuse=True, **options)
        assert [bare(r) for r in off.records] == [bare(r) for r in warm.records]
        assert {r["status"] for r in warm.records} == {"ok", "ineligible"}
        for record in warm.records:
            is_taken = record["status"] == "ok"
            assert bool(reused([record])) == is_taken
            assert ("t_attack_s" in record["cost"]) == is_taken


class TestWhoShares:
    def test_a_run_alone_takes_over_but_keeps_nothing(
        self, tmp_path: Path, attacks: list[int]
    ) -> None:
        run(tmp_path, "a")
        assert not (tmp_path / "cache").exists()
        run(tmp_path, "b", reuse=True)
        del attacks[:]
        assert reused(run(tmp_path, "c", defense="toy-noise").records)
        assert attacks == []
        assert not reused(run(tmp_path, "d", reuse=False).records)
        assert attacks == [4]

    def test_what_only_python_knows_is_never_shared(
        self, tmp_path: Path, attacks: list[int]
    ) -> None:
        for where in "ab":
            run(tmp_path, where, reuse=True, model=ToyCnn())
        assert attacks == [4, 4]

    def test_objects_that_were_loaded_by_name_share_when_asked(self) -> None:
        setup = built({"runtime": {"reuse": "auto"}})
        parts = Parts(model=vcr.load("model", "toy-cnn"))
        manifest = {"run": "r", "started": "t"}
        assert open_reuse(setup, parts, manifest, 1) is None
        asked = built({"runtime": {"reuse": True}})
        assert open_reuse(asked, parts, manifest, 1) is not None

    def test_a_model_whose_weights_were_changed_is_another_one(self) -> None:
        setup, model = built({}), vcr.load("model", "toy-batch-norm")
        before = Shelves(setup, Parts(model=model), 1).attack()
        assert Shelves(setup, Parts(model=model), 1).attack() == before
        (module,) = modules_of(model)
        with torch.no_grad():
            next(iter(module.state_dict().values())).add_(1e-3)
        assert Shelves(setup, Parts(model=model), 1).attack() != before

    def test_a_sweep_of_attacks_alone_keeps_no_clips(self) -> None:
        tables = {**RUN, "matrix": {"attack": ["toy-search", "toy-descent"]}}
        assert [step.shares for step in sweep_steps(expand(tables))] == [False, False]


class TestKeys:
    @pytest.mark.parametrize(
        "change",
        [
            {"seed": 43},
            {"model": {"name": "toy-batch-norm"}},
            {"attack": {"name": "toy-descent"}},
            {"threat": {"eps": "3/255"}},
            {"threat": {"targeted": True}},
            {"threat": {"max_forwards": 7}},
            {"threat": {"quantize": False}},
            {"protocol": {"stop": "budget"}},
            {"protocol": {"tie_frames": False}},
            {"protocol": {"views": "full"}},
            {"runtime": {"deterministic": True}},
        ],
        ids=str,
    )
    def test_another_attack_has_another_key(self, change: dict[str, Any]) -> None:
        assert shelf(change) != shelf({})

    @pytest.mark.parametrize(
        "change",
        [
            {"defense": {"name": "toy-noise"}},
            {"protocol": {"eval_repeats": 9}},
            {"metrics": {"names": []}},
            {"dataset": {"limit": 5}},
            {"dataset": {"rule": "list"}},
            {"output": {"keep_clips": 0}},
            {"executor": {"name": "process"}},
        ],
        ids=str,
    )
    def test_what_only_judges_does_not_count(self, change: dict[str, Any]) -> None:
        assert shelf(change) == shelf({})

    def test_threads_count(self) -> None:
        setup = built({})
        assert Shelves(setup, None, 1).attack() != Shelves(setup, None, 2).attack()

    def test_an_attack_that_knows_the_defense_has_none(self) -> None:
        knows = {"defense": {"name": "toy-noise"}, "protocol": {"attacker_knows_defense": True}}
        assert shelf(knows) is None
        assert shelf({"protocol": {"attacker_knows_defense": True}}) == shelf({})

    def test_a_transform_before_the_sampling_has_none(self) -> None:
        experiment = built({}).experiment
        assert attack_identity(experiment) is not None
        spec = replace(experiment.attack.spec, access="none", stage="source")
        transform = replace(experiment, attack=replace(experiment.attack, spec=spec))
        assert attack_identity(transform) is None

    def test_a_group_is_its_videos_in_their_order(self) -> None:
        setup = built({})
        one, two = (decode(setup, video) for video in ShapesDataset().ids()[:2])
        key = group_key([one, two], None)
        brighter = replace(one, frames=one.frames + 1e-7)
        other = [
            group_key([two, one], None),
            group_key([one], None),
            group_key([one, two], 1),
            group_key([brighter, two], None),
            group_key([replace(one, label=one.label + 1), two], None),
            group_key([replace(one, id="x"), two], None),
            group_key([replace(one, gather=one.gather.flip(1)), two], None),
        ]
        assert len({key, *other}) == 8
        assert group_key([same(one), same(two)], None) == key

    def test_code_that_somebody_works_on_is_another_version(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = tmp_path / "src" / "vcr_worked_on"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "attack.py").write_text("STEPS = 1\n")
        monkeypatch.setattr(sys, "path", [str(tmp_path / "src"), *sys.path])
        before = _source_digest("vcr_worked_on")
        _source_digest.cache_clear()
        assert _source_digest("vcr_worked_on") == before
        found = {before}
        for file, text in (("attack.py", "STEPS = 2\n"), ("bank.bin", "1"), ("bank.bin", "22")):
            (package / file).write_text(text)
            _source_digest.cache_clear()
            found.add(_source_digest("vcr_worked_on"))
        assert len(found) == 4
        assert "vcr_worked_on" not in sys.modules

    def test_a_transfer_attack_may_ask_any_model(self) -> None:
        assert len(_code([], models=True)) > len(_code([]))


def test_the_order_of_a_sweep_and_who_takes_over_from_whom() -> None:
    matrix = {
        "attack": ["toy-search", "none"],
        "defense": ["toy-darken", "none", "toy-noise"],
        "protocol.attacker_knows_defense": [True, False],
    }
    combinations = expand({**RUN, "matrix": matrix})
    told = [
        (
            step.resolved.experiment.attack.ref if step.resolved.experiment.attack else "none",
            combinations[step.index].values["defense"],
            None if step.attack_of is None else combinations[step.attack_of].values["defense"],
            step.shares,
        )
        for step in sweep_steps(combinations)
    ]
    assert told == [
        ("none", "none", None, True),
        ("none", "toy-darken", None, True),
        ("none", "toy-noise", None, True),
        ("toy-search", "none", None, True),
        ("toy-search", "toy-darken", "none", True),
        ("toy-search", "toy-noise", "none", True),
        ("toy-search", "toy-darken", None, False),
        ("toy-search", "toy-noise", None, False),
    ]


class Mislabelled(ShapesDataset):
    """Every third video has a label that no model can get right."""

    def item(self, video_id: str) -> VideoItem:
        found = super().item(video_id)
        is_wrong = self.ids().index(video_id) % 3 == 0
        return VideoItem(found.id, (found.label + is_wrong) % 8, found.source)


def run(where: Path, name: str, *, reuse: bool | str = "auto", **options: Any) -> vcr.api.Result:
    chosen = {
        "model": "toy-cnn", "attack": "toy-descent", "defense": "toy-darken",
        "dataset": "toy-shapes", "metrics": [], "limit": 4, **options,
    }  # fmt: skip
    return vcr.evaluate(
        **chosen,
        protocol={"attacker_knows_defense": False},
        runtime={"reuse": reuse, "batch_videos": 6},
        results=where / name,
    )


def built(change: dict[str, Any]) -> Any:
    tables = {**RUN, **{k: v for k, v in change.items() if not isinstance(v, dict)}}
    nested = {k: v for k, v in change.items() if isinstance(v, dict)}
    return build_setup(resolve_run(changed(tables, nested)).experiment)


def shelf(change: dict[str, Any]) -> Any:
    found = Shelves(built(change), None, 1).attack()
    return found and found.name


def same(video: Decoded) -> Decoded:
    return replace(video, frames=video.frames.clone(), seconds=video.seconds + 1)
