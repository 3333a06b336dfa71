from __future__ import annotations

import json
import subprocess
import sys

import pytest
from vcr_core.environment import command_line, environment, git_state, versions
from vcr_core.errors import StoreError
from vcr_core.manifest import (
    MANIFEST_FIELDS,
    component_ref,
    defense_refs,
    finish_manifest,
    is_adaptive,
    is_targeted,
    new_manifest,
    planned_videos,
    read_manifest,
    update_manifest,
    utc_now,
    write_manifest,
)


def test_manifest_round_trip_keeps_unknown_fields(tmp_path, manifest):
    write_manifest(tmp_path, {**manifest, "from_the_future": {"a": 1}})
    found = update_manifest(tmp_path, status="interrupted")
    assert found["from_the_future"] == {"a": 1}
    assert read_manifest(tmp_path) == {
        **manifest, "from_the_future": {"a": 1}, "status": "interrupted",
    }  # fmt: skip


def test_new_manifest_has_every_documented_field(manifest):
    assert list(manifest) == list(MANIFEST_FIELDS)
    assert manifest["status"] == "planned"
    assert manifest["seed"] == 42
    assert manifest["batch_videos"] == 4
    asked = new_manifest(
        run="r", experiment={}, experiment_hash="", components=[], dataset={}, batches=[["a"]],
        batch_videos=8,
    )  # fmt: skip
    assert asked["batch_videos"] == 8
    assert manifest["ended"] is None


def test_finish_sets_status_and_end(tmp_path, manifest):
    write_manifest(tmp_path, manifest)
    found = finish_manifest(tmp_path, "done")
    assert found["status"] == "done"
    assert found["ended"] >= found["started"]


def test_unknown_status_is_refused_and_nothing_changes(tmp_path, manifest):
    write_manifest(tmp_path, manifest)
    with pytest.raises(StoreError, match="'finished' is none of"):
        update_manifest(tmp_path, status="finished")
    assert read_manifest(tmp_path)["status"] == "planned"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 2}', "newer than this version.*upgrade"),
        ('{"schema": "1"}', "must be a whole number"),
        ('{"schema": 1', "cannot be read"),
        ("[]", "an object is needed"),
    ],
)
def test_bad_manifest_says_what_to_do(tmp_path, text, message):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(StoreError, match=message):
        read_manifest(tmp_path)


def test_missing_manifest(tmp_path):
    with pytest.raises(StoreError, match=r"not a run folder, it has no run\.json"):
        read_manifest(tmp_path)


def test_reading_the_experiment(manifest):
    assert component_ref(manifest, "model") == "tiny.r3d"
    assert defense_refs(manifest) == ("blur",)
    assert is_targeted(manifest)
    assert not is_adaptive(manifest)
    assert planned_videos(manifest) == [f"v{i}" for i in range(10)]


def test_chain_of_defenses_and_defaults():
    experiment = {
        "attack": {"name": "pgd"},
        "defense": [
            {"name": "vcr-defenses/blur"},
            {"name": "vcr-core/identity"},
            {"name": "x", "variant": "strong"},
        ],
    }
    assert defense_refs({"experiment": experiment}) == ("blur", "x.strong")
    # An attacker is assumed to know the defense unless the run says otherwise.
    assert is_adaptive({"experiment": experiment})
    assert not is_adaptive({"experiment": {"defense": {"name": "blur"}}})
    assert not is_targeted({"experiment": {"threat": {"targeted": True}}})
    assert defense_refs({}) == ()


def test_time_is_utc_and_sorts():
    first, second = utc_now(), utc_now()
    assert first.endswith("Z")
    assert len(first) == len("2026-05-01T10:00:00.000Z")
    assert first <= second


def test_environment_is_plain_and_does_not_import_torch():
    code = (
        "import json, sys\n"
        "from vcr_core.environment import environment\n"
        "found = environment()\n"
        "assert not {'torch', 'numpy', 'av'} & set(sys.modules)\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["torch"] is None
    assert found["versions"]["vcr-core"]
    assert found["versions"]["msgspec"]


def test_environment_asks_torch_if_it_is_there():
    torch = pytest.importorskip("torch")
    found = environment(with_torch=True)["torch"]
    assert found["version"] == torch.__version__
    assert len(found["devices"]) == (torch.cuda.device_count() if torch.cuda.is_available() else 0)


def test_versions_follow_requirements_and_ignore_what_is_missing():
    found = versions(["vcr-core", "no-such-distribution"])
    assert {"vcr-core", "pluggy", "click", "rich", "pygments"} <= set(found)
    assert "no-such-distribution" not in found
    assert list(found) == sorted(found)


def test_git_state_of_a_repository(tmp_path):
    assert git_state(tmp_path) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (tmp_path / "file").write_text("a")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    clean = git_state(tmp_path)
    (tmp_path / "file").write_text("b")
    dirty = git_state(tmp_path)
    assert len(clean["commit"]) == 40
    assert (clean["dirty"], dirty["dirty"]) == (False, True)


def test_git_state_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) is None


def test_command_line_has_no_folder_of_the_program():
    assert command_line(["/usr/somewhere/bin/vcr", "run", "demo.toml"]) == [
        "vcr", "run", "demo.toml",
    ]  # fmt: skip
    assert command_line([]) == []
