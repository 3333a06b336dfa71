"""Parameter sets that this distribution ships."""

from __future__ import annotations

import tomllib
from importlib import import_module, resources

import pytest
from vcr_core.config.check import Problems, check_table
from vcr_defenses.plugin import vcr_register_defenses, vcr_register_presets

SPECS = {spec.name: spec for spec in vcr_register_defenses()}
FOLDER = resources.files("vcr_defenses") / "presets" / "defense"
PRESETS = sorted(
    path.name.removesuffix(".toml")
    for path in FOLDER.iterdir()
    if path.name.partition(".")[0] in SPECS
)
IN_THE_BENCHMARK_CODE = (
    "bilateral", "crop-resize", "domain-transform", "flip", "gaussian-blur", "rotate",
    "temporal-median", "temporal-shuffle",
)  # fmt: skip


def test_what_the_benchmark_code_has_can_be_asked_for_with_its_values():
    assert {f"{name}.vcr-bench-repo" for name in IN_THE_BENCHMARK_CODE} <= set(PRESETS)
    assert [source.package for source in vcr_register_presets()] == ["vcr_defenses"]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_builds_its_defense(name):
    preset = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    assert set(preset) <= {"summary", "params"}
    assert preset["summary"]
    spec = SPECS[name.partition(".")[0]]
    module, _, attribute = spec.params.partition(":")
    problems = Problems()
    struct = getattr(import_module(module), attribute)
    check_table(struct, preset.get("params", {}), ("params",), problems, name)
    assert not problems, problems.found
