from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from vcr_core.cli import main

RUN = 'model = "net"\n[attack]\nname = "ifgsm"\nsteps = 3\n'


@pytest.fixture(autouse=True)
def demo(folder: Path) -> Path:
    path = folder / "demo.toml"
    path.write_text(RUN)
    return path


def test_show_prints_a_run_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "demo.toml", "--set", "attack.steps=9", "--eps", "4/255"]) == 0
    document = tomllib.loads(capsys.readouterr().out)
    assert document["attack"]["steps"] == 9
    assert document["threat"]["eps"] == "4/255"
    assert "runtime" not in document


def test_show_all_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "demo.toml", "--all"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["runtime"]["device"] == "auto"
    assert main(["config", "show", "quick", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["experiment"]["dataset"]["limit"] == 2


def test_show_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--model", "net", "--attack", "none", "--limit", "3"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["dataset"]["limit"] == 3


def test_explain_names_the_layer_of_each_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "demo.toml", "--defense", "jpeg", "--seed", "3"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    table = {key: (value, layer) for key, value, layer in lines}
    assert table["attack.steps"] == ("3", "demo.toml")
    assert table["defense.name"] == ("vcr-fake/jpeg", "--defense")
    assert table["seed"] == ("3", "--seed")
    assert table["attack.momentum"] == ("0.0", "default")
    assert main(["config", "explain", "demo.toml", "--json"]) == 0
    keys = json.loads(capsys.readouterr().out)["keys"]
    assert keys["attack.steps"] == {"value": 3, "layer": "demo.toml"}


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema", "attack/ifgsm"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["$defs"]["IfgsmParams"]["properties"]["steps"]["minimum"] == 1
    assert main(["config", "schema"]) == 0
    properties = json.loads(capsys.readouterr().out)["$defs"]["RunFile"]["properties"]
    assert {"model", "attack", "defense", "threat", "protocol"} <= set(properties)
    assert main(["config", "schema", "square"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"] == {}


def test_validate_prints_every_problem(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.toml").write_text(RUN + "stepz = 1\n[threat]\neps = 8\n")
    (folder / "worse.toml").write_text("model = ")
    assert main(["config", "validate", "demo.toml", "bad.toml", "worse.toml"]) == 2
    streams = capsys.readouterr()
    assert streams.out == "demo.toml: ok\n"
    assert streams.err.count("error: ") == 3
    assert "Traceback" not in streams.err
    assert main(["config", "validate", "bad.toml", "--json"]) == 2
    [file] = json.loads(capsys.readouterr().out)["files"]
    assert not file["ok"]
    assert len(file["problems"]) == 2


def test_validate_reads_sweeps_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sweep.toml").write_text('attack = "ifgsm"\n[matrix]\nmodel = ["net", "opaque"]\n')
    assert main(["config", "validate", "sweep.toml", "grid"]) == 0
    streams = capsys.readouterr()
    assert streams.out == "sweep.toml: ok\ngrid: ok\n"
    assert "warning: sweep.toml: model=opaque: " in streams.err
    (folder / "sweep.toml").write_text('attack = "ifgsm"\n[matrix]\nmodel = ["opaque"]\n')
    assert main(["config", "validate", "sweep.toml"]) == 2
    assert "no combination of the sweep is possible" in capsys.readouterr().err


def test_validate_warns_of_a_missing_requirement(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "heavy.toml").write_text('model = "heavy"\n')
    assert main(["config", "validate", "heavy.toml"]) == 0
    assert "vcr-fake[heavy]" in capsys.readouterr().err


def test_nothing_heavy_is_imported() -> None:
    code = """
import sys
from vcr_core.config import identity, json_schema, resolve, sweep
from vcr_core.cli import config, experiment_options
from vcr_core import compat, preset_files
from vcr_core.errors import VcrError
try:
    resolve.resolve_run({"model": "tiny-r3d", "attack": "pgd", "defense": "jpeg"})
except VcrError:
    pass
print(sorted({"torch", "numpy", "av", "torchvision", "scipy", "rich"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
