from __future__ import annotations

from pathlib import Path

import pytest
from vcr_core.config.resolve import resolve_run
from vcr_core.errors import ConfigError

RUN = """
model = "net"
[attack]
name = "ifgsm"
steps = 3
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_later_layers_win_and_are_named(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "user/config.toml", '[runtime]\ndevice = "cpu"\nthreads = 1\n')
    write(folder / "vcr.toml", "[runtime]\nthreads = 2\nbatch_videos = 4\n")
    write(folder / "vcr.local.toml", "[runtime]\nbatch_videos = 16\n[paths.datasets]\nx = 'y'\n")
    write(folder / "demo.toml", RUN.replace("ifgsm", "ifgsm.strong") + "[runtime]\nthreads = 3\n")
    resolved = resolve_run("demo.toml", overrides=["seed=7"], shortcuts={"limit": 5})
    runtime = resolved.experiment.runtime
    assert (runtime.device, runtime.threads, runtime.batch_videos) == ("cpu", 3, 16)
    assert resolved.experiment.paths.datasets == {"x": "y"}
    where = resolved.provenance
    assert where["runtime.device"].startswith("user file ")
    assert where["runtime.threads"] == "demo.toml"
    assert where["runtime.batch_videos"] == "vcr.local.toml"
    assert where["paths.datasets.x"] == "vcr.local.toml"
    assert where["attack.steps"] == "demo.toml"
    assert where["threat.eps"] == "preset ifgsm.strong"
    assert where["protocol.stop"] == "preset ifgsm.strong"
    assert where["seed"] == "--set"
    assert where["dataset.limit"] == "--limit"
    assert where["attack.momentum"] == "default"


def test_an_empty_local_table_erases_nothing(folder: Path) -> None:
    write(folder / "vcr.toml", "[runtime]\nthreads = 2\n")
    write(folder / "vcr.local.toml", "[runtime]\n")
    assert resolve_run(None, shortcuts={"model": "net"}).experiment.runtime.threads == 2


def test_user_file_is_shown_below_home(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    write(tmp_path / "user/config.toml", "[runtime]\nthreads = 1\n")
    resolved = resolve_run(None, shortcuts={"model": "net"})
    assert resolved.provenance["runtime.threads"] == "user file ~/user/config.toml"


@pytest.mark.parametrize("name", ["vcr.toml", "vcr.local.toml", "../user/config.toml"])
def test_local_files_cannot_change_an_experiment(folder: Path, name: str) -> None:
    write(folder / name, '[attack]\nname = "pgd"\n[threat]\neps = 1\n[runtime]\nthreads = 1\n')
    with pytest.raises(ConfigError) as caught:
        resolve_run(None, shortcuts={"model": "net"})
    assert len(caught.value.problems) == 2
    for key, problem in zip(("attack", "threat"), caught.value.problems, strict=True):
        assert f": {key}: not allowed in a local file" in problem
        assert "[paths], [runtime], [executor]" in problem


def test_component_preset_is_below_the_run_file_and_the_command_line(folder: Path) -> None:
    document = {"model": "net", "attack": {"name": "ifgsm.strong"}, "threat": {"eps": "1/255"}}
    resolved = resolve_run(document)
    assert resolved.experiment.attack is not None
    assert resolved.experiment.attack.params["steps"] == 50
    assert resolved.experiment.threat.eps == 1 / 255
    assert resolved.experiment.threat.max_forwards == 1000
    resolved = resolve_run(document, overrides=["attack.steps=9"])
    assert resolved.experiment.attack is not None
    assert resolved.experiment.attack.params["steps"] == 9


def test_model_variant_is_weights_or_a_preset_that_may_name_weights() -> None:
    plain = resolve_run({"model": "net"}).experiment
    assert plain.model.ref == "net.small"
    assert resolve_run({"model": "Net.Large"}).experiment.model.ref == "net.large"
    full = resolve_run({"model": "net.full"})
    assert full.experiment.model.ref == "net.large"
    assert full.experiment.protocol.views == "full"


def test_run_presets_by_name_and_files_win(folder: Path) -> None:
    assert resolve_run("quick").experiment.dataset_keys.limit == 2
    assert resolve_run("quick").provenance["dataset.limit"] == "preset quick"
    table2 = resolve_run("paper/table2").experiment
    assert table2.attack is not None
    assert table2.attack.ref == "pgd"
    write(folder / "quick", RUN)
    assert resolve_run("quick").experiment.dataset_keys.limit is None


def test_a_run_folder_stands_for_its_resolved_file(folder: Path) -> None:
    write(folder / "results/some-run/resolved.toml", RUN)
    attack = resolve_run("results/some-run").experiment.attack
    assert attack is not None
    assert attack.params["steps"] == 3


def test_naming_another_component_drops_the_parameters_of_the_first(folder: Path) -> None:
    write(folder / "demo.toml", RUN + "[dataset]\nname='folder'\nsplit='train'\nlimit=3\n")
    resolved = resolve_run("demo.toml", shortcuts={"attack": "pgd", "dataset": "motion"})
    attack = resolved.experiment.attack
    assert attack is not None
    assert (attack.ref, attack.params["steps"]) == ("pgd", 20)
    assert resolved.experiment.dataset_keys.limit == 3
    same = resolve_run("demo.toml", shortcuts={"attack": "IFGSM"}).experiment.attack
    assert same is not None
    assert same.params["steps"] == 3


def test_none_takes_attack_and_defense_away() -> None:
    document = {"model": "net", "attack": "ifgsm", "defense": ["jpeg", "rotate"]}
    resolved = resolve_run(document, shortcuts={"attack": "none", "defense": "none"})
    assert resolved.experiment.attack is None
    assert resolved.experiment.defenses == ()


def test_defaults_of_metrics_are_those_that_are_installed() -> None:
    metrics = resolve_run({"model": "net"}).experiment.metrics
    assert [metric.ref for metric in metrics] == ["mse", "psnr", "ssim"]


def test_default_metrics_without_the_metrics_package(use_registry, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from vcr_core import plugins

    installed = plugins.registry()
    kept = [entry.spec for entry in installed.entries() if entry.name not in ("psnr", "ssim")]
    use_registry(_same_without(installed, kept))
    assert [m.ref for m in resolve_run({"model": "net"}).experiment.metrics] == ["mse"]
    with pytest.raises(ConfigError, match=r"metrics\.names: found 'ssim'"):
        resolve_run({"model": "net", "metrics": {"names": ["ssim"]}})


def _same_without(installed, kept):  # type: ignore[no-untyped-def]
    import dataclasses

    entries = tuple(entry for entry in installed.entries() if entry.spec in kept)
    values = {
        field.name: getattr(installed, field.name)
        for field in dataclasses.fields(installed)
        if field.init
    }
    return type(installed)(**{**values, "_entries": entries})


def test_metric_parameters_by_name_reference_or_preset() -> None:
    for document in (
        {"names": ["ssim"], "params": {"ssim": {"window": 21}}},
        {"names": ["vcr-fake/ssim"], "params": {"vcr-fake/ssim": {"window": 21}}},
        {"names": ["ssim.wide"]},
    ):
        [ssim] = resolve_run({"model": "net", "metrics": document}).experiment.metrics
        assert ssim.params == {"window": 21}
    resolved = resolve_run({"model": "net"}, overrides=["metrics.params.ssim.window=5"])
    assert resolved.experiment.metrics[2].params == {"window": 5}
    assert resolved.provenance["metrics.params.ssim.window"] == "--set"


def test_norm_follows_an_attack_that_has_only_one() -> None:
    resolved = resolve_run({"model": "net", "attack": "stadv"})
    assert resolved.experiment.threat.norm == "none"
    assert resolved.provenance["threat.norm"] == "spec of stadv"
    assert "eps" not in resolved.toml


def test_notes_say_what_is_no_mistake() -> None:
    resolved = resolve_run(
        {"model": "net", "attack": {"name": "bank", "bank": "b.pt"}, "threat": {"eps": 0}},
        overrides=["protocol.eot=4"],
    )
    assert len(resolved.notes) == 2
    # The engine says so when an artifact is missing, with the whole command.
    assert not any("vcr prepare" in text for text in resolved.notes)


def test_byte_order_mark_and_crlf_are_read(folder: Path) -> None:
    (folder / "demo.toml").write_bytes(b"\xef\xbb\xbf" + RUN.replace("\n", "\r\n").encode())
    assert resolve_run("demo.toml").experiment.attack is not None
