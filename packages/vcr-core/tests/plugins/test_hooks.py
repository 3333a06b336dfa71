"""Every hook does what its page says; two tests keep tests and page complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from vcr_core import hookspecs

HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("vcr_"))
PAGE = Path(__file__).parents[4] / "docs" / "plugins" / "hooks.md"

HEAD = """
from vcr_core import (
    AttackSpec, ClipSpec, DatasetSpec, DefenseSpec, ExecutorSpec, MetricSpec, ModelSpec,
    PresetSource, ReporterSpec, hookimpl,
)
COMMON = dict(name="hooked", summary="Registered by a hook", target="nowhere.at:All")
"""
FIELDS = {
    "model": "label_space='l', num_classes=2, clip=ClipSpec(frames=4)",
    "attack": "access='white-box', norms=frozenset({'linf'})",
    "defense": "gradient='exact'",
    "metric": "higher_is_better=True",
    "dataset": "generated=True",
    "executor": "",
    "reporter": "format='txt'",
}


def registers(site, load, kind):
    spec = f"{kind.capitalize()}Spec"
    site.add(
        "vcr-hooked",
        f"{HEAD}\n@hookimpl\ndef vcr_register_{kind}s():\n"
        f"    return [{spec}(**COMMON, {FIELDS[kind]})]\n",
    )
    found = load()
    assert found.failures == ()
    entry, _ = found.find(kind, "hooked")
    assert (entry.kind, entry.distribution) == (kind, "vcr-hooked")
    assert type(entry.spec).__name__ == spec


def observes(site, load, hook, arguments):
    module = site.add(
        "vcr-hooked",
        f"{HEAD}\nseen = []\n@hookimpl\ndef {hook}({', '.join(arguments)}):\n"
        f"    seen.append(({', '.join(arguments)},))\n",
        module=f"{hook}_mod",
    )
    (observe,) = load().observers(hook)
    observe(**arguments)
    assert __import__(module).seen == [tuple(arguments.values())]


def test_hook_vcr_register_models(site, load):
    registers(site, load, "model")


def test_hook_vcr_register_attacks(site, load):
    registers(site, load, "attack")


def test_hook_vcr_register_defenses(site, load):
    registers(site, load, "defense")


def test_hook_vcr_register_metrics(site, load):
    registers(site, load, "metric")


def test_hook_vcr_register_datasets(site, load):
    registers(site, load, "dataset")


def test_hook_vcr_register_executors(site, load):
    registers(site, load, "executor")


def test_hook_vcr_register_reporters(site, load):
    registers(site, load, "reporter")


def test_hook_vcr_register_presets(site, load):
    site.add(
        "vcr-hooked",
        f"{HEAD}\n@hookimpl\ndef vcr_register_presets():\n"
        "    return [PresetSource(package='vcr_hooked_mod')]\n",
    )
    packages = {distribution: s.package for distribution, s in load().preset_sources}
    assert packages["vcr-hooked"] == "vcr_hooked_mod"


def test_hook_vcr_register_commands(site, load):
    site.add(
        "vcr-hooked",
        f"{HEAD}\nimport click\n@hookimpl\ndef vcr_register_commands(cli):\n"
        "    cli.add_command(click.Command('hooked'))\n",
    )
    assert list(load().commands()) == ["hooked"]


def test_hook_vcr_run_started(site, load):
    observes(site, load, "vcr_run_started", {"run": {"id": "r"}})


def test_hook_vcr_record_written(site, load):
    observes(site, load, "vcr_record_written", {"run": {"id": "r"}, "record": {"video": "v"}})


def test_hook_vcr_run_finished(site, load):
    observes(site, load, "vcr_run_finished", {"run": {"id": "r"}, "summary": {"counts": {}}})


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_test(hook):
    assert f"test_hook_{hook}" in globals()


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of an sdist")
@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_heading(hook):
    assert re.search(rf"^##+ `?{hook}\b", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
