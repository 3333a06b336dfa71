"""``vcr new-plugin`` and the example that it made."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from vcr_core.errors import UsageError
from vcr_core.scaffold import PLUGIN_KINDS, plugin_files, prefix_of, write_plugin

EXAMPLE = Path(__file__).parents[4] / "examples" / "vcr-example-plugin"
BY_PRODUCTS = re.compile(r"(^|/)(\.[^/]*|__pycache__|dist|[^/]*\.(egg|dist)-info)/")


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not part of an sdist")
def test_the_example_is_what_the_command_makes():
    found = {
        path.relative_to(EXAMPLE).as_posix(): path.read_text(encoding="utf-8")
        for path in EXAMPLE.rglob("*")
        if path.is_file() and not BY_PRODUCTS.search(path.relative_to(EXAMPLE).as_posix())
    }
    assert found == plugin_files("vcr-example-plugin")


def test_command_writes_and_names_every_file(vcr, tmp_path):
    result = vcr("new-plugin", "vcr-acme", "--output", str(tmp_path))
    assert result.code == 0
    written = sorted(str(p) for p in (tmp_path / "vcr-acme").rglob("*") if p.is_file())
    assert sorted(result.out.splitlines()) == written
    assert "pip install -e" in result.err


def test_nothing_is_overwritten(vcr, tmp_path):
    (tmp_path / "vcr-acme").mkdir()
    (tmp_path / "vcr-acme" / "mine.txt").write_text("mine")
    result = vcr("new-plugin", "vcr-acme", "--output", str(tmp_path))
    assert (result.code, result.out) == (2, "")
    assert "exists" in result.err
    assert [p.name for p in (tmp_path / "vcr-acme").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("kinds", [[kind] for kind in PLUGIN_KINDS] + [["attack", "metric"]])
def test_chosen_kinds_only(vcr, tmp_path, kinds):
    output = str(tmp_path)
    result = vcr("new-plugin", "vcr-acme", "--kind", ",".join(kinds), "--output", output)
    assert result.code == 0
    source = tmp_path / "vcr-acme" / "src" / "vcr_acme"
    hooks = [
        node.name
        for node in ast.parse((source / "plugin.py").read_text()).body
        if isinstance(node, ast.FunctionDef)
    ]
    assert sorted(hooks) == sorted(f"vcr_register_{kind}s" for kind in kinds)
    for path in source.rglob("*.py"):
        ast.parse(path.read_text())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vcr-core"], "taken"),
        (["9lives"], "cannot be the name"),
        (["a b"], "cannot be the name"),
        (["../up"], "cannot be the name"),
        (["vcr-" + "x" * 60], "too long"),
        (["class"], "keyword"),
        (["vcr-acme", "--kind", "atack"], "did you mean 'attack'"),
        (["vcr-acme", "--kind", "executor"], "no template"),
        ([], "Missing argument"),
    ],
)
def test_refusals(vcr, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = vcr("new-plugin", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert list(tmp_path.iterdir()) == []


def test_unusual_name_is_made_and_mentioned(vcr, tmp_path):
    result = vcr("new-plugin", "Acme_Things", "--output", str(tmp_path))
    assert result.code == 0
    assert (tmp_path / "acme-things" / "src" / "acme_things" / "plugin.py").exists()
    assert "usually called vcr-" in result.err


def test_prefix():
    assert prefix_of("vcr-acme-attacks") == "acme"
    assert prefix_of("acme") == "acme"


def test_metadata_is_complete(tmp_path):
    write_plugin("vcr-acme", tmp_path)
    data = tomllib.loads((tmp_path / "vcr-acme" / "pyproject.toml").read_text())
    assert data["project"]["name"] == "vcr-acme"
    assert data["project"]["entry-points"]["vcr"] == {"plugin": "vcr_acme.plugin"}
    with pytest.raises(UsageError, match="exists"):
        write_plugin("vcr-acme", tmp_path)


def installed(folder: Path, name: str) -> dict[str, str]:
    """Return an environment in which a written plugin looks installed."""
    package = name.replace("-", "_")
    info = folder / name / "src" / f"{package}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[vcr]\nplugin = {package}.plugin\n")
    path = [str(folder / name / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in path if part)}


def test_a_new_plugin_is_listed_and_explained(tmp_path):
    write_plugin("vcr-acme", tmp_path)
    code = (
        "import sys\nfrom vcr_core.cli import main\n"
        "assert main(['list']) == 0\n"
        "for kind, name in [('attack', 'noise'), ('defense', 'average'), ('model', 'linear'),\n"
        "                   ('metric', 'mae'), ('dataset', 'gradients')]:\n"
        "    assert main(['info', f'{kind}/acme-{name}']) == 0\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env=installed(tmp_path, "vcr-acme"),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "strength\tnumber\t1.0\t" in done.stdout


def test_a_new_plugin_passes_its_own_contract_tests(tmp_path):
    pytest.importorskip("torch")
    write_plugin("vcr-acme", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        capture_output=True,
        text=True,
        timeout=500,
        cwd=tmp_path / "vcr-acme",
        env={**installed(tmp_path, "vcr-acme"), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout
