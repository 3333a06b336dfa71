"""Checks of a distribution as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from vcr_core.errors import ComponentUnavailable
from vcr_core.specs import ComponentSpec, MetricSpec, ModelSpec, to_plain
from vcr_core.testing.contract import PluginSubject, require

HEAVY = (
    "torch", "torchvision", "numpy", "mmaction", "mmcv", "mmengine", "pytorchvideo", "diffusers",
    "transformers", "open_clip", "lpips", "cv2", "av", "pandas", "scipy",
)  # fmt: skip
"""Libraries that importing a plugin module must not import; each costs every command its time."""

_LIGHT = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted(set(json.loads(sys.argv[2])) & set(sys.modules))))
"""

_ALONE = """
import json
from vcr_core.plugins import load_registry
found = load_registry()
print(json.dumps({
    "failures": [f"{f.distribution}: {f.reason}" for f in found.failures],
    "entries": sorted(f"{e.kind}/{e.qualified}" for e in found.entries()),
}))
"""


def imports_light(subject: PluginSubject) -> None:
    """Importing the plugin module imports no heavy library."""
    modules = [point.value.partition(":")[0] for point in _points(subject)]
    heavy = _run(_LIGHT, json.dumps(modules), json.dumps(HEAVY))
    require(
        not heavy,
        f"importing {', '.join(modules)} imports {', '.join(heavy)}; name targets as strings and "
        "keep the package's __init__ free of them",
    )


def hooks_known(subject: PluginSubject) -> None:
    """The plugin loads, and every ``vcr_`` function in it is a known hook."""
    from vcr_core.failures import format_failure
    from vcr_core.plugins import registry

    failed = [f for f in registry().failures if f.distribution == _normal(subject)]
    require(not failed, "\n".join(format_failure(f) for f in failed))


def specs_valid(subject: PluginSubject) -> None:
    """Every spec prints as JSON and its fields hold allowed values."""
    from packaging.requirements import InvalidRequirement, Requirement

    from vcr_core.spec_rules import spec_problems

    problems: list[str] = []
    for spec in subject.specs:
        problems.extend(spec_problems(spec))
        problems.extend(f"{spec.kind} {spec.name!r}: {text}" for text in _incomplete(spec))
        for requirement in spec.requires:
            try:
                Requirement(requirement)
            except InvalidRequirement:
                problems.append(
                    f"{spec.kind} {spec.name!r}: requires {requirement!r} is no PEP 508"
                )
        try:
            json.dumps(to_plain(spec))
        except TypeError as error:
            problems.append(f"{spec.kind} {spec.name!r}: does not print as JSON: {error}")
    require(not problems, "\n".join(problems))


def targets_import(subject: PluginSubject) -> None:
    """Target and params of every spec whose requirements are met import."""
    from vcr_core.availability import availability
    from vcr_core.components import load_attr, params_type

    problems: list[str] = []
    for spec in subject.specs:
        try:
            params_type(spec)
            if availability(spec).ok and not callable(load_attr(spec.target, spec)):
                problems.append(f"{spec.kind} {spec.name!r}: {spec.target} cannot be called")
        except ComponentUnavailable as error:
            problems.append(str(error))
    require(not problems, "\n".join(problems))


def names_canonical(subject: PluginSubject) -> None:
    """Names are canonical, and unique within their kind."""
    from vcr_core.refs import is_canonical

    odd = [f"{s.kind} {s.name!r}" for s in subject.specs if not is_canonical(s.name)]
    require(not odd, f"not canonical ([a-z0-9] joined by '-', at most 40): {', '.join(odd)}")
    keys = [(s.kind, s.name) for s in subject.specs]
    twice = sorted({f"{kind} {name!r}" for kind, name in keys if keys.count((kind, name)) > 1})
    require(not twice, f"registered twice: {', '.join(twice)}")


def isolated(subject: PluginSubject) -> None:
    """The plugin loads when all others are disabled, and registers the same components."""
    from vcr_core.plugins import registry

    own = _normal(subject)
    everyone = {p.distribution for p in registry().plugins}
    others = {d for d in everyone | {f.distribution for f in registry().failures} if d != own}
    alone = _run(_ALONE, disabled=others)
    require(not alone["failures"], "; ".join(alone["failures"]))
    wanted = sorted(f"{s.kind}/{own}/{s.name}" for s in subject.specs)
    require(
        alone["entries"] == wanted,
        f"alone it registers {len(alone['entries'])} components, with others {len(wanted)}",
    )


def _incomplete(spec: ComponentSpec) -> list[str]:
    found = []
    if spec.summary.rstrip().endswith("."):
        found.append("the summary ends with a full stop")
    if spec.reference and not spec.reference.startswith(("https://", "http://")):
        found.append(f"reference {spec.reference!r} is not an address")
    if isinstance(spec, ModelSpec):
        free = [w.variant or "default" for w in spec.weights if w.url and not w.license]
        if free:
            found.append(f"weights {', '.join(free)} state no licence")
    if isinstance(spec, MetricSpec):
        lowest, highest = spec.value_range
        if lowest is not None and highest is not None and lowest >= highest:
            found.append(f"value_range {spec.value_range} is empty")
    return found


def _points(subject: PluginSubject) -> list[Any]:
    from vcr_core.discovery import discover

    points, _ = discover()
    return [p for p in points if p.distribution == _normal(subject)]


def _normal(subject: PluginSubject) -> str:
    from vcr_core.refs import normal_distribution

    return normal_distribution(subject.distribution)


def _run(code: str, *arguments: str, disabled: set[str] | None = None) -> Any:
    environment = dict(os.environ)
    environment.pop("VCR_STRICT_PLUGINS", None)
    if disabled is not None:
        environment["VCR_DISABLE_PLUGINS"] = ",".join(sorted(disabled))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )
    require(done.returncode == 0, f"a bare interpreter failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
