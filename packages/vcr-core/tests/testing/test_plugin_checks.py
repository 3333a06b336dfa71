"""Checks of whole distributions, on distributions that exist for one test only."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from vcr_core.plugins import reset_registry
from vcr_core.testing.contract import cases

_GOOD = """
from vcr_core.hookspecs import hookimpl
from vcr_core.specs import ReporterSpec

@hookimpl
def vcr_register_reporters():
    return [ReporterSpec(name="acme", summary="Nothing", target="acme_toy.plugin:ReporterSpec")]
"""
_HEAVY = "import numpy\n" + _GOOD
_MISSPELT = _GOOD.replace("vcr_register_reporters", "vcr_register_reporter")
_NEEDY = (
    _GOOD
    + """
from vcr_core.plugins import KINDS
import vcr_core.builtin
from vcr_core.discovery import discover
import os
if os.environ.get("VCR_DISABLE_PLUGINS"):
    raise RuntimeError("needs the others")
"""
)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a distribution ``acme-toy`` for this test."""

    def write(source: str) -> None:
        package = tmp_path / "acme_toy"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "plugin.py").write_text(textwrap.dedent(source))
        info = tmp_path / "acme_toy-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-toy\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[vcr]\nacme = acme_toy.plugin\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.delenv("VCR_STRICT_PLUGINS", raising=False)
        reset_registry()

    yield write
    for name in [m for m in sys.modules if m.partition(".")[0] == "acme_toy"]:
        del sys.modules[name]
    reset_registry()


def _run(check_id: str) -> None:
    (case,) = [c for c in cases("acme-toy") if c.check.id == check_id]
    case()


@pytest.mark.parametrize("check_id", ["imports-light", "hooks-known", "isolated"])
def test_a_good_plugin_passes(install, check_id):
    install(_GOOD)
    _run(f"plugin/{check_id}")


@pytest.mark.parametrize(
    ("check_id", "source", "words"),
    [
        ("imports-light", _HEAVY, "imports numpy"),
        ("hooks-known", _MISSPELT, "vcr_register_reporter"),
        ("isolated", _NEEDY, "needs the others"),
    ],
)
def test_a_bad_plugin_is_caught(install, check_id, source, words):
    install(source)
    with pytest.raises(AssertionError, match=words):
        _run(f"plugin/{check_id}")


def test_a_plugin_that_cannot_be_imported_still_has_cases(install):
    install("import acme_native")
    ids = {c.id for c in cases("acme-toy")}
    assert "plugin/hooks-known:acme-toy" in ids
    with pytest.raises(AssertionError, match="acme_native"):
        _run("plugin/hooks-known")


def test_the_kit_runs_from_the_command_line_without_a_file(install, tmp_path):
    install(_GOOD)
    arguments = ["-m", "pytest", "-p", "vcr_core.testing.plugin", "--vcr-contract", "acme-toy"]
    arguments += ["-q", "-rX", "-p", "no:cacheprovider", "--strict-markers"]
    arguments += ["--vcr-expected-failure", "plugin/specs-valid:acme-toy=it is fine, in truth"]
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=empty,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 5 passed" in done.stdout, done.stdout + done.stderr
    assert "[XPASS(strict)] it is fine, in truth" in done.stdout
