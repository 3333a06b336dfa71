"""A new process with a deliberately broken plugin installed: everything else works."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

RUN = "import sys; from vcr_core.cli import main; raise SystemExit(main(sys.argv[1:]))"


@pytest.fixture
def vcr(tmp_path):
    info = tmp_path / "vcr_acme_models-0.3.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: vcr-acme-models\nVersion: 0.3.1\n")
    (info / "entry_points.txt").write_text("[vcr]\nmodels = vcr_acme_models.plugin\n")
    package = tmp_path / "vcr_acme_models"
    package.mkdir()
    (package / "__init__.py").write_text("print('hello from acme')\n")
    (package / "plugin.py").write_text("import acme_native\nNAMES = ['acme-net']\n")

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        return subprocess.run(
            [sys.executable, "-c", RUN, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": path, "VCR_CACHE_DIR": str(tmp_path / "c"), **env},
            check=False,
        )

    return run


def test_list_works_and_shows_the_broken_plugin(vcr):
    done = vcr("list", "--json")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert "motion" in {c["name"] for c in data["components"]}
    (failure,) = data["failures"]
    assert (failure["distribution"], failure["version"]) == ("vcr-acme-models", "0.3.1")
    assert failure["error"] == "ModuleNotFoundError: No module named 'acme_native'"
    assert done.stderr.count("warning: plugin vcr-acme-models 0.3.1 could not be loaded") == 1
    assert "Traceback" not in done.stderr
    rows = [line.split("\t") for line in vcr("list").stdout.splitlines()]
    assert [row[4] for row in rows if row[0] == "broken"] == ["vcr-acme-models"]


def test_help_and_info_work(vcr):
    assert vcr("--help").returncode == 0
    assert vcr("info", "dataset/motion", "--help").returncode == 0


def test_naming_its_component_ends_with_code_3(vcr):
    done = vcr("info", "model/acme-net")
    assert (done.returncode, done.stdout) == (3, "")
    assert "error: model 'model/acme-net' is not available" in done.stderr
    assert "vcr-acme-models 0.3.1" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in vcr("--debug", "info", "model/acme-net").stderr


def test_disabled_it_is_silent(vcr):
    done = vcr("list", VCR_DISABLE_PLUGINS="vcr-acme-models")
    assert (done.returncode, done.stderr) == (0, "")


def test_quiet_silences_the_warning(vcr):
    done = vcr("-q", "list")
    assert done.returncode == 0
    assert "warning" not in done.stderr


def test_strict_ends_with_code_3(vcr):
    done = vcr("list", VCR_STRICT_PLUGINS="1")
    assert (done.returncode, done.stdout) == (3, "")
    assert "VCR_STRICT_PLUGINS is set" in done.stderr


def test_doctor_shows_the_traceback_and_ends_with_code_1(vcr):
    done = vcr("doctor", VCR_STRICT_PLUGINS="1")
    assert done.returncode == 1
    assert "Traceback" in done.stdout
    assert "acme_native" in done.stdout
    data = json.loads(vcr("doctor", "--json").stdout)
    assert data["ok"] is False
    assert "vcr-acme-models 0.3.1" in data["problems"][0]
