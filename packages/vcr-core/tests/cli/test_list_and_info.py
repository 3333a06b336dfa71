"""``vcr list`` and ``vcr info``."""

from __future__ import annotations

import json

import pytest


def test_list_in_a_pipe_is_tab_separated(vcr):
    result = vcr("list")
    assert result.code == 0
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert {len(row) for row in rows} == {6}
    assert ["dataset", "motion", "", "ok", "vcr-core"] in [row[:5] for row in rows]


@pytest.mark.parametrize("word", ["dataset", "datasets", "Datasets"])
def test_list_of_one_kind(vcr, word):
    rows = [line.split("\t") for line in vcr("list", word).out.splitlines()]
    assert {row[0] for row in rows} == {"dataset"}


def test_list_as_json(vcr):
    data = json.loads(vcr("list", "executors", "--json").out)
    assert data["schema"] == 1
    assert data["failures"] == []
    names = {c["name"]: c for c in data["components"]}
    assert {"inline", "process"} <= set(names)
    inline = names["inline"]
    assert inline["kind"] == "executor"
    assert inline["available"] is True
    assert inline["qualified"] == "vcr-core/inline"
    assert set(inline) >= {"target", "params", "version", "location", "variants", "ambiguous"}


def test_verbose_list_adds_version_and_location(vcr):
    plain = vcr("list", "reporters").out.splitlines()
    verbose = vcr("list", "reporters", "-v").out.splitlines()
    assert [len(line.split("\t")) for line in verbose] == [8] * len(plain)


def test_list_of_an_unknown_kind(vcr):
    result = vcr("list", "atacks")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: unknown kind 'atacks'; did you mean 'attack'?")


def test_list_on_a_terminal_has_headings(vcr, monkeypatch):
    monkeypatch.setattr("vcr_core.cli.output.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    out = vcr("list", "datasets").out
    assert "availability" in out.splitlines()[0]
    assert "\t" not in out


def test_info_of_a_component_without_parameters(vcr):
    result = vcr("info", "reporter/md")
    assert result.code == 0
    facts = dict(line.split("\t", 1) for line in result.out.splitlines())
    assert facts["kind"] == "reporter"
    assert facts["parameters"] == "none"
    assert facts["distribution"].startswith("vcr-core ")


def test_info_as_json(vcr):
    data = json.loads(vcr("info", "vcr-core/slurm", "--json").out)
    assert data["component"]["name"] == "slurm"
    assert data["component"]["distribution"] == "vcr-core"
    cpus = {param["name"]: param for param in data["parameters"]}["cpus"]
    assert set(cpus) == {"name", "type", "allowed", "default", "required", "description"}
    assert (cpus["type"], cpus["default"]) == ("integer", 1)


def test_info_of_an_unknown_component(vcr):
    result = vcr("info", "inlnie")
    assert (result.code, result.out) == (2, "")
    assert "did you mean 'inline'" in result.err


def test_info_needs_a_reference(vcr):
    result = vcr("info")
    assert result.code == 2
    assert "error:" in result.err


def test_info_that_is_no_reference(vcr):
    assert vcr("info", "a//b").code == 2
