"""Check that the packages agree with each other and with the project's rules.

python tools/check_projects.py [--release]
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FAMILY = re.compile(r"(vcr-(?:core|models|attacks|defenses|metrics))(\[[a-z,]+\])?(.*)")
RANGE = ">=1.0.0a1,<2"
SAME = ["license", "license-files", "requires-python", "authors", "keywords", "classifiers"]
FRAGMENT = re.compile(
    r"(\d+|\+[a-z0-9-]+)\.(added|changed|fixed|deprecated|removed|security|plugin-api|results)\.md"
)


def version_of(folder: Path) -> str:
    """Return the version that the package states."""
    (about,) = folder.glob("src/*/__about__.py")
    found = re.search(r'^__version__ = "(.+)"$', about.read_text(), re.MULTILINE)
    return found[1] if found else ""


def metadata_problems(folder: Path, data: dict[str, Any], first: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with one pyproject.toml, compared with the core's."""
    project = data["project"]
    package = folder.name.replace("-", "_")
    if project["name"] != folder.name:
        yield f"project.name is {project['name']!r}, the folder is called {folder.name}"
    for key in SAME:
        if project.get(key) != first["project"].get(key):
            yield f"project.{key} differs from vcr-core's"
    if data["build-system"] != first["build-system"]:
        yield "build-system differs from vcr-core's"
    targets = data["tool"]["hatch"]["build"]["targets"]
    for name in ("wheel", "sdist"):
        if targets[name].get("core-metadata-version") != "2.4":
            yield f"{name}: core-metadata-version is not 2.4"
    if targets["wheel"]["packages"] != [f"src/{package}"]:
        yield f"wheel: packages is not ['src/{package}']"
    if not list(project.get("entry-points", {}).get("vcr", {}).values()):
        yield "no entry point in the group vcr"
    yield from requirement_problems(folder.name, project)
    for name in ("README.md", "CHANGELOG.md", "LICENSE", f"src/{package}/py.typed"):
        if not (folder / name).is_file():
            yield f"{name} is missing"
    if (folder / "LICENSE").read_bytes() != (ROOT / "LICENSE").read_bytes():
        yield "LICENSE differs from the one at the root"


def requirement_problems(name: str, project: dict[str, Any]) -> Iterator[str]:
    """Yield requirements on our own packages that another project's package could satisfy."""
    extras = project.get("optional-dependencies", {})
    base = project["dependencies"]
    for requirement in [*base, *(r for group in extras.values() for r in group)]:
        if "opencv" in requirement:
            yield f"{requirement}: no package of ours requires an OpenCV"
        found = FAMILY.fullmatch(requirement)
        if found and found[1] != name and found[3] != RANGE:
            yield f"{requirement}: the range has to be {RANGE}"
    if name == "vcr-core" and any(re.match("torch|numpy", r) for r in base):
        yield "vcr-core alone has to install without torch and numpy"


def changelog_problems(folder: Path, release: bool) -> Iterator[str]:
    """Yield fragments that towncrier would not find, and at a release those left over."""
    fragments = [p for p in folder.glob("changelog.d/*") if p.name != ".gitkeep"]
    for path in fragments:
        if not FRAGMENT.fullmatch(path.name):
            yield f"{path.name}: a fragment is called NUMBER.TYPE.md or +WORD.TYPE.md"
        elif len(path.read_text().strip().splitlines()) != 1:
            yield f"{path.name}: a fragment has one line"
    if release and fragments:
        yield f"{len(fragments)} changelog fragments are not in CHANGELOG.md yet"


def main() -> int:
    release = "--release" in sys.argv[1:]
    folders = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
    read = {f: tomllib.loads((f / "pyproject.toml").read_text()) for f in folders}
    first = read[ROOT / "packages" / "vcr-core"]
    bad = []
    for folder, data in read.items():
        found = [*metadata_problems(folder, data, first), *changelog_problems(folder, release)]
        bad += [f"{folder.name}: {text}" for text in found]
    versions = {version_of(folder) for folder in folders}
    if len(versions) != 1 or "" in versions:
        bad.append(f"the packages' versions differ: {sorted(versions)}")
    for line in bad:
        print(line, file=sys.stderr)
    print(f"{len(folders)} packages, version {' '.join(sorted(versions))}, {len(bad)} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
