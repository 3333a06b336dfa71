"""A new plugin distribution from the templates in this package."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, TypeAlias

from vcr_core.errors import UsageError
from vcr_core.refs import NAME_LENGTH, is_canonical, normal_distribution

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vcr_core.specs import Kind

PLUGIN_KINDS: tuple[Kind, ...] = ("attack", "defense", "model", "metric", "dataset")
FIRST_PARTY = ("vcr-core", "vcr-models", "vcr-attacks", "vcr-defenses", "vcr-metrics")

Files: TypeAlias = dict[str, str]

_MODULES: dict[Kind, str] = {
    "attack": "noise",
    "defense": "average",
    "model": "linear",
    "metric": "mae",
    "dataset": "gradients",
}
_SPEC_NAMES: dict[Kind, tuple[str, ...]] = {
    "attack": ("AttackSpec",),
    "defense": ("DefenseSpec",),
    "model": ("ClipSpec", "ModelSpec"),
    "metric": ("MetricSpec",),
    "dataset": ("DatasetSpec",),
}
_WITH_PARAMS: tuple[Kind, ...] = ("attack", "defense", "model", "dataset")
_WITH_COLOURS: tuple[Kind, ...] = ("model", "dataset")


def plugin_files(name: str, kinds: Sequence[Kind] = PLUGIN_KINDS) -> Files:
    """Return the files of a new plugin: path relative to its folder, and text.

    Args:
        name: name of the distribution, such as ``vcr-acme``.
        kinds: kinds of components, one of each.

    Raises:
        UsageError: if the name cannot be used.
    """
    distribution = checked_name(name)
    package = distribution.replace("-", "_")
    chosen = [kind for kind in PLUGIN_KINDS if kind in kinds]
    words = {"distribution": distribution, "package": package, "prefix": prefix_of(distribution)}
    words["first"] = f"{chosen[0]}/{words['prefix']}-{_MODULES[chosen[0]]}"
    words["table"] = _table(chosen, words["prefix"])
    words["imports"] = ", ".join(_imports(chosen))
    source = f"src/{package}"
    files = {
        "pyproject.toml": _fill("pyproject.toml", words),
        "README.md": _fill("README.md", words),
        "LICENSE": _fill("LICENSE", words),
        f"{source}/__init__.py": _fill("init.py", words),
        f"{source}/py.typed": "",
        f"{source}/plugin.py": _joined("plugin.py", chosen, "spec", words),
        "tests/test_contract.py": _fill("test_contract.py", words),
    }
    with_params = [kind for kind in chosen if kind in _WITH_PARAMS]
    if with_params:
        files[f"{source}/params.py"] = _joined("params.py", with_params, "params", words)
    if any(kind in _WITH_COLOURS for kind in chosen):
        files[f"{source}/colours.py"] = _fill("colours.py", words)
    for kind in chosen:
        files[f"{source}/{_MODULES[kind]}.py"] = _fill(f"{kind}.py", words)
    return dict(sorted(files.items()))


def write_plugin(name: str, folder: Path, kinds: Sequence[Kind] = PLUGIN_KINDS) -> list[Path]:
    """Write a new plugin into ``folder / name`` and return the files.

    Raises:
        UsageError: if that folder exists and is not empty; nothing is written then.
    """
    files = plugin_files(name, kinds)
    root = folder / checked_name(name)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} exists; choose another name or another --output")
    written = []
    for relative, text in files.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return written


def checked_name(name: str) -> str:
    """Return a distribution name in normal form.

    Raises:
        UsageError: if it is no name, too long, a first-party name or a Python keyword.
    """
    distribution = normal_distribution(name)
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", distribution):
        raise UsageError(
            f"{name!r} cannot be the name of a distribution: use letters, digits and '-', "
            "and begin with a letter, for example vcr-acme"
        )
    if distribution in FIRST_PARTY or distribution == "vcr":
        raise UsageError(f"{distribution} is taken; choose a name such as vcr-acme")
    if keyword.iskeyword(distribution):
        raise UsageError(f"{distribution} is a Python keyword; choose a name such as vcr-acme")
    longest = max(len(module) for module in _MODULES.values())
    if not is_canonical(f"{prefix_of(distribution)}-{'x' * longest}"):
        raise UsageError(
            f"{name!r} is too long: component names have at most {NAME_LENGTH} characters"
        )
    return distribution


def prefix_of(distribution: str) -> str:
    """Return what the components' names begin with.

    Example:
        >>> prefix_of("vcr-example-plugin"), prefix_of("vcr-acme-models")
        ('example', 'acme')
    """
    core = re.sub(r"-(plugins?|models|attacks|defenses|metrics|datasets)$", "", distribution)
    return core.removeprefix("vcr-")


def _imports(kinds: Sequence[Kind]) -> list[str]:
    names = {name for kind in kinds for name in _SPEC_NAMES[kind]}
    return [*sorted(names), "hookimpl"]


def _table(kinds: Sequence[Kind], prefix: str) -> str:
    lines = ["| Kind | Name |", "|---|---|"]
    lines += [f"| {kind} | `{prefix}-{_MODULES[kind]}` |" for kind in kinds]
    return "\n".join(lines)


def _joined(head: str, kinds: Sequence[Kind], part: str, words: dict[str, str]) -> str:
    parts = [_fill(head, words), *(_fill(f"{kind}.{part}", words) for kind in kinds)]
    return "\n\n".join(parts)


def _fill(name: str, words: dict[str, str]) -> str:
    file = resources.files("vcr_core") / "templates" / "plugin" / f"{name}.tmpl"
    return Template(file.read_text(encoding="utf-8")).substitute(words)
