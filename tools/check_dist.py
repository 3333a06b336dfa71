"""Check built archives: the wheel holds the package, all of it and nothing else.

python tools/check_dist.py dist
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).parents[1]


def source_files(package: Path) -> set[str]:
    """Return the files of the import package, relative to src/."""
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def wheel_problems(wheel: Path, package: Path) -> Iterator[str]:
    """Yield differences between a wheel and the source of its package."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        info = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
        metadata = archive.read(f"{info}/METADATA")
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
    inside = {name for name in names if not name.startswith(f"{info}/")}
    wanted = source_files(package)
    yield from (f"{name} is missing" for name in sorted(wanted - inside))
    yield from (f"{name} should not be in it" for name in sorted(inside - wanted))
    if f"{package.name}/py.typed" not in inside:
        yield "py.typed is missing"
    if f"{info}/licenses/LICENSE" not in names:
        yield "LICENSE is missing"
    if "[vcr]" not in entry_points:
        yield "no entry point in the group vcr"
    parsed = Metadata.from_email(metadata)
    if parsed.metadata_version != "2.4":
        yield f"metadata version {parsed.metadata_version}, not 2.4"
    if not parsed.description or parsed.description_content_type != "text/markdown":
        yield "README.md is not in the metadata"


def sdist_problems(sdist: Path, folder: Path, package: Path) -> Iterator[str]:
    """Yield what an sdist lacks to build and to test the package."""
    with tarfile.open(sdist) as archive:
        files = {m.name.partition("/")[2]: m.size for m in archive.getmembers() if m.isfile()}
    wanted = {f"src/{name}" for name in source_files(package)}
    wanted |= {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO"}
    wanted |= {p.relative_to(folder).as_posix() for p in folder.glob("tests/**/test_*.py")}
    yield from (f"{name} is missing" for name in sorted(wanted - set(files)))
    strange = {name for name in files if "cache" in name.lower() and name not in wanted}
    yield from (f"{name} should not be in it" for name in sorted(strange))


def main() -> int:
    dist = Path(sys.argv[1])
    bad = []
    for folder in sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml")):
        name = folder.name.replace("-", "_")
        package = folder / "src" / name
        wheels, sdists = list(dist.glob(f"{name}-*.whl")), list(dist.glob(f"{name}-*.tar.gz"))
        if len(wheels) != 1 or len(sdists) != 1:
            bad.append(f"{folder.name}: {len(wheels)} wheels and {len(sdists)} sdists in {dist}")
            continue
        found = wheel_problems(wheels[0], package)
        bad += [f"{wheels[0].name}: {text}" for text in found]
        bad += [f"{sdists[0].name}: {text}" for text in sdist_problems(sdists[0], folder, package)]
        print(f"{wheels[0].name}  {wheels[0].stat().st_size / 1000:.0f} kB")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
