from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module, resources

import msgspec
import pytest
from vcr_attacks.params.gradient import IfgsmParams, PgdParams
from vcr_attacks.params.query import SquareParams
from vcr_attacks.plugin import vcr_register_attacks, vcr_register_presets
from vcr_core.config.check import Problems, check_table
from vcr_core.config.schema import ProtocolConfig, ThreatConfig
from vcr_core.errors import NotAvailable

SPECS = {spec.name: spec for spec in vcr_register_attacks()}
PRESETS = sorted(
    path.name.removesuffix(".toml")
    for path in (resources.files("vcr_attacks") / "presets" / "attack").iterdir()
)


def test_specs_point_at_what_they_say():
    for spec in SPECS.values():
        module, _, attribute = spec.target.partition(":")
        target = getattr(import_module(module), attribute)
        module, _, attribute = spec.params.partition(":")
        struct = getattr(import_module(module), attribute)
        try:
            assert msgspec.convert({}, type=struct) == target().params
        except NotAvailable:  # weights that are not on this machine
            assert spec.extra
        assert spec.summary
        assert spec.reference.startswith("https://")
        assert re.search(rf"(attack\.name=|--attack ){spec.name}( |$)", spec.example)


def test_each_attack_that_optimises_has_both_presets():
    optimising = [n for n, spec in SPECS.items() if spec.access != "none"]
    both = {f"{n}.{p}" for n in optimising for p in ("paper", "vcr-bench-repo")}
    assert both | {"tt.ifgsm"} == {n for n in PRESETS if n.partition(".")[0] in optimising}
    assert [source.package for source in vcr_register_presets()] == ["vcr_attacks"]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid(name):
    import tomllib

    folder = resources.files("vcr_attacks") / "presets" / "attack"
    preset = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    assert set(preset) <= {"summary", "params", "threat", "protocol"}
    assert len(preset["summary"]) <= 100
    module, _, attribute = SPECS[name.partition(".")[0]].params.partition(":")
    struct = getattr(import_module(module), attribute)
    problems = Problems()
    for table, kind in (("params", struct), ("threat", ThreatConfig), ("protocol", ProtocolConfig)):
        check_table(kind, preset.get(table, {}), (table,), problems, name)
    assert not problems, problems.found
    spec = SPECS[name.partition(".")[0]]
    norm = preset.get("threat", {}).get("norm", "linf" if spec.access != "none" else "none")
    assert norm in spec.norms


def test_a_preset_of_a_corruption_is_one_of_its_tables():
    import tomllib

    folder = resources.files("vcr_attacks") / "presets" / "attack"
    tables = set()
    for name, spec in SPECS.items():
        members = spec.corruption.member_of if spec.corruption else ()
        default = msgspec.structs.asdict(msgspec.convert({}, type=_struct(spec)))
        tables |= {
            f"{name}.{value}"
            for member in members
            for key, value in member.params
            if value != default[key]
        }
    found = {n for n in PRESETS if SPECS[n.partition(".")[0]].access == "none"}
    assert found == tables
    for name in found:
        preset = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        assert preset["params"] == {"table": name.partition(".")[2]}


def _struct(spec):
    module, _, attribute = spec.params.partition(":")
    return getattr(import_module(module), attribute)


@pytest.mark.parametrize(
    ("params", "data", "message"),
    [
        (IfgsmParams, {"steps": 0}, ">= 1"),
        (IfgsmParams, {"step": 0.0}, "> 0"),
        (IfgsmParams, {"step": "fast"}, "Invalid enum value"),
        (PgdParams, {"restarts": 2, "random_start": False}, "random_start"),
        (PgdParams, {"momentum": 1}, "unknown field"),
        (SquareParams, {"p_init": 0}, "> 0"),
        (SquareParams, {"temporal": "cube"}, "cube"),
    ],
)
def test_bad_parameters_are_refused(params, data, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(data, type=params)


def test_describing_the_attacks_imports_nothing_heavy():
    code = (
        "import sys, vcr_attacks.plugin as p, vcr_attacks.params.query; p.vcr_register_attacks(); "
        "assert not {'torch', 'numpy', 'av'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
