from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vcr_core.config.identity import identity_of, run_id
from vcr_core.config.resolve import resolve_run
from vcr_core.specs import AttackSpec

BASE: dict[str, Any] = {
    "seed": 1,
    "dataset": {"name": "motion", "limit": 3},
    "model": {"name": "net"},
    "attack": {"name": "ifgsm", "steps": 5},
    "threat": {"norm": "linf", "eps": "4/255"},
    "defense": {"name": "jpeg", "quality": 50},
}
VIDEOS = [("a/1", 0), ("b_2", 3)]


def full_hash(document: dict[str, Any], **more: Any) -> str:
    return run_id(resolve_run(document, **more).identity, VIDEOS)[1]


def test_golden_hash_of_a_fixed_identity() -> None:
    identity = {
        "evaluation_version": 1,
        "seed": 42,
        "dataset": {"ref": "vcr-core/motion", "version": "1", "params": {}, "limit": 2},
        "model": {"ref": "vcr-models/tiny-r3d.v1", "version": "1", "params": {}, "weights": "ab"},
        "attack": {"ref": "vcr-attacks/ifgsm", "version": "1", "params": {"steps": 20}},
        "defense": [],
        "threat": {"norm": "linf", "eps": 8 / 255},
        "protocol": {"views": "light"},
        "metrics": [],
    }
    name, whole = run_id(identity, VIDEOS)
    # This number may change only together with EVALUATION_VERSION.
    assert whole == "dcd1abab582f1b97175dfe400bf9456ce0b27c711fb6644ebd0caddfa7c07d99"
    assert name == f"motion-tiny-r3d.v1-ifgsm-nodefense-{whole[:10]}"


def test_id_has_a_word_for_what_is_absent_and_joins_chains() -> None:
    clean = resolve_run({"model": "net"}).identity
    assert run_id(clean, VIDEOS)[0].startswith("motion-net.small-clean-nodefense-")
    chain = resolve_run({"model": "net", "defense": "jpeg+gaussian-blur"}).identity
    assert run_id(chain, VIDEOS)[0].startswith("motion-net.small-clean-jpeg+gaussian-blur-")
    long = resolve_run({"model": "net", "defense": "+".join(["gaussian-blur"] * 20)}).identity
    assert len(run_id(long, VIDEOS)[0]) < 190


def test_hash_does_not_depend_on_order_folder_or_machine(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = full_hash(BASE)
    assert full_hash(dict(reversed(list(BASE.items())))) == expected
    assert run_id(resolve_run(BASE).identity, VIDEOS[::-1])[1] == expected
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "vcr.toml").write_text(
        "[runtime]\ndevice='cpu'\nbatch_videos=1\n[paths]\nresults='/x'\n[executor]\nname='process'\n"
    )
    monkeypatch.chdir(other)
    assert full_hash(BASE) == expected
    assert full_hash(BASE, cwd=folder) == expected
    assert full_hash({**BASE, "output": {"keep_clips": 0}}) == expected
    assert full_hash({**BASE, "metrics": {"names": ["ssim", "mse", "psnr"]}}) == expected
    assert full_hash(json.loads(json.dumps(BASE))) == expected


@pytest.mark.parametrize(
    "override",
    [
        "seed=2",
        "threat.eps=8/255",
        "threat.targeted=true",
        "threat.max_forwards=10",
        "dataset.limit=4",
        "dataset.rule=shuffle",
        "dataset.subset=mini",
        "model=net.large",
        "attack=pgd",
        "attack.steps=6",
        "defense=none",
        "defense.quality=51",
        "defense=jpeg+rotate",
        "protocol.eot=2",
        "protocol.eval_repeats=6",
        "protocol.stop=budget",
        "protocol.attacker_knows_defense=false",
        "protocol.views=full",
        "protocol.labels=clean-prediction",
        "protocol.autocast=bfloat16",
        'metrics.names=["mse"]',
        "metrics.params.ssim.window=7",
    ],
)
def test_another_experiment_has_another_hash(override: str) -> None:
    assert full_hash(BASE, overrides=[override]) != full_hash(BASE)


def test_the_dataset_s_labels_are_what_runs_without_the_key_have() -> None:
    assert "labels" not in resolve_run(BASE).identity["protocol"]
    assert full_hash(BASE, overrides=["protocol.labels=dataset"]) == full_hash(BASE)
    assert full_hash(BASE, overrides=["protocol.autocast=off"]) == full_hash(BASE)


def test_other_videos_or_labels_have_another_hash() -> None:
    identity = resolve_run(BASE).identity
    hashes = {
        run_id(identity, videos)[1]
        for videos in (VIDEOS, VIDEOS[:1], [("a/1", 1), ("b_2", 3)], [("a/2", 0), ("b_2", 3)], [])
    }
    assert len(hashes) == 5


def test_an_offline_step_can_depend_on_a_parameter() -> None:
    for loss, prepares in (("ce", False), ("dlr", True)):
        experiment = resolve_run(
            {"model": "net", "attack": {"name": "pgd", "loss": loss}}
        ).experiment
        assert experiment.attack is not None
        assert isinstance(experiment.attack.spec, AttackSpec)
        spec = replace(experiment.attack.spec, prepares=True, prepares_when=("loss", "dlr"))
        changed = replace(experiment, attack=replace(experiment.attack, spec=spec))
        assert changed.prepares is prepares
        assert ("prepare" in identity_of(changed)) is prepares


def test_paths_never_count() -> None:
    for document in (
        {"model": "net", "dataset": {"name": "folder", "root": "%s"}},
        {"model": "net", "attack": {"name": "bank", "bank": "%s"}},
        {"model": "net", "dataset": {"name": "motion", "subset": "%s/list.csv"}},
    ):
        text = json.dumps(document)
        here, there = (json.loads(text.replace("%s", place)) for place in ("/a", "b/c"))
        assert full_hash(here) == full_hash(there)
        assert "/a" not in json.dumps(resolve_run(here).identity)


@pytest.mark.parametrize(
    ("document", "overrides"),
    [
        (
            {"model": "net", "defense": "jpeg"},
            ["threat.eps=1/255", "threat.targeted=true", "protocol.stop=budget", "protocol.eot=9",
             "protocol.confidence=0.9", "protocol.confirm=9", "protocol.gradient=surrogate",
             "protocol.attacker_knows_defense=false", "protocol.tie_frames=false",
             'metrics.names=["mse"]'],
        ),
        (
            {"model": "net", "attack": "ifgsm"},
            ["protocol.eval_repeats=9", "protocol.eot=9", "protocol.gradient=surrogate",
             "protocol.attacker_knows_defense=false", "protocol.confidence=0.9",
             "threat.target=random"],
        ),
    ],
)  # fmt: skip
def test_keys_that_cannot_matter_do_not_count(
    document: dict[str, Any], overrides: list[str]
) -> None:
    for override in overrides:
        assert full_hash(document, overrides=[override]) == full_hash(document), override


def test_confidence_counts_where_it_is_used() -> None:
    document = {"model": "net", "attack": "ifgsm", "protocol": {"stop": "confidence"}}
    assert full_hash(document, overrides=["protocol.confidence=0.9"]) != full_hash(document)


def test_a_preset_and_its_parameters_are_one_experiment() -> None:
    by_preset = resolve_run({"model": "net", "attack": "ifgsm.strong"})
    by_hand = resolve_run(
        {
            "model": "net",
            "attack": {"name": "ifgsm", "steps": 50},
            "threat": {"eps": "16/255", "max_forwards": 1000},
            "protocol": {"stop": "budget"},
        }
    )
    assert by_preset.identity == by_hand.identity


@pytest.mark.parametrize(
    ("document", "overrides"),
    [
        (BASE, []),
        ({"model": "net.full", "attack": "ifgsm.strong", "defense": "jpeg+gaussian-blur"}, []),
        ({"model": "net", "attack": "ifgsm.strong"}, ["threat.max_forwards=none"]),
        ({"model": "net", "attack": {"name": "pgd", "cap": "none"}}, []),
        ({"model": "net", "attack": "pgd.open"}, ["threat.norm=l2", "threat.eps=1.5"]),
        ({"model": "net", "attack": {"name": "bank", "bank": "b.pt", "strength": 1 / 3}}, []),
        ({"model": "net", "attack": "stadv"}, []),
        ({"model": "net", "dataset": "folder"}, ["threat.per_frame_eps=['1/255', 0.02]"]),
        ({"model": "net", "metrics": {"names": ["ssim.wide"]}}, ["threat.eps=0.05"]),
        ({"model": "net", "metrics": {"names": []}}, ["threat.frames=[0, 2]"]),
    ],
)
def test_the_resolved_file_gives_the_same_experiment(
    folder: Path, document: dict[str, Any], overrides: list[str]
) -> None:
    first = resolve_run(document, overrides=overrides)
    (folder / "resolved.toml").write_text(first.toml, encoding="utf-8")
    (folder / "vcr.toml").write_text("[runtime]\nthreads = 5\n")
    again = resolve_run("resolved.toml")
    assert again.identity == first.identity
    assert again.toml == first.toml
    assert again.experiment.attack == first.experiment.attack
    assert again.experiment.threat == first.experiment.threat
    assert str(folder) not in first.toml
    assert "[runtime]" not in first.toml.replace("# [paths], [runtime]", "")


def test_identity_is_plain_json() -> None:
    identity = resolve_run(BASE).identity
    assert json.loads(json.dumps(identity, allow_nan=False)) == identity
