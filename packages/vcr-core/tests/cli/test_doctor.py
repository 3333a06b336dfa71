"""``vcr doctor``."""

from __future__ import annotations

import json

import pytest
from vcr_core.checkup import check
from vcr_core.folders import cache_folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "new" / "cache"))
    return tmp_path / "new" / "cache"


def test_doctor_of_a_sound_installation(vcr, cache):
    result = vcr("doctor")
    assert result.code == 0
    facts = dict(line.split("\t", 1) for line in result.out.splitlines())
    assert facts["cache"] == str(cache)
    assert facts["cache_writable"] == "yes"
    assert "components" in facts["vcr-core"]
    assert "python" in facts
    assert not cache.parent.exists(), "doctor must leave no trace"


def test_doctor_as_json(vcr):
    result = vcr("doctor", "--json")
    assert result.code == 0
    data = json.loads(result.out)
    assert data["schema"] == 1
    assert data["ok"] is True
    assert data["problems"] == []
    assert set(data) >= {"system", "distributions", "libraries", "devices", "video", "advice"}


def test_unwritable_cache_is_a_problem(vcr, tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("VCR_CACHE_DIR", str(blocker / "cache"))
    result = vcr("doctor", "--json")
    assert result.code == 1
    data = json.loads(result.out)
    assert data["ok"] is False
    assert "cannot be written to" in data["problems"][0]
    assert any("VCR_CACHE_DIR" in line for line in data["advice"])


def test_default_cache_folder_is_the_users(monkeypatch):
    monkeypatch.delenv("VCR_CACHE_DIR")
    assert cache_folder().name == "vcr"


def test_disabling_what_is_not_there_is_mentioned(monkeypatch):
    monkeypatch.setenv("VCR_DISABLE_PLUGINS", "vcr-nothing")
    assert any("vcr-nothing" in line for line in check().advice)


def test_missing_requirements_become_one_line_an_extra(monkeypatch):
    from vcr_core import availability, checkup

    monkeypatch.setattr(
        checkup,
        "availability",
        lambda spec: availability.Availability(spec.kind != "reporter", "needs x (x missing)"),
    )
    found = check()
    assert {row["kind"] for row in found.unavailable} == {"reporter"}
    assert not found.problems
    assert any(line.startswith("pip install 'vcr-core[report]' brings") for line in found.advice)
