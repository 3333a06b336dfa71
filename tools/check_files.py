"""Check every tracked file: size, whitespace, line ends, syntax of TOML, YAML and JSON.

python tools/check_files.py [FILE...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
TEXT = {".cff", ".css", ".html", ".js", ".json", ".md", ".py", ".sh", ".tmpl", ".toml", ".txt"}
TEXT |= {".yaml", ".yml", ".csv"}
LARGEST = 200_000
LARGEST_WEIGHTS = 2_000_000
ALL_WEIGHTS = 12_000_000


def tracked() -> list[Path]:
    """Return the files that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = sorted(set(listed.stdout.decode().split("\0")) - {""})
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def problems(path: Path) -> Iterator[str]:
    """Yield what is wrong with one file."""
    size = path.stat().st_size
    allowed = LARGEST_WEIGHTS if path.suffix == ".safetensors" else LARGEST
    if size > allowed:
        yield f"{size} bytes; at most {allowed} are allowed"
    if path.suffix not in TEXT:
        return
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        yield f"no UTF-8: {error}"
        return
    if "\r" in text:
        yield "carriage returns; lines end with a newline alone"
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield "does not end with exactly one newline"
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip(" \t"):
            yield f"line {number}: trailing whitespace"
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            yield f"line {number}: a merge conflict"
    yield from syntax_problems(path, text)


def syntax_problems(path: Path, text: str) -> Iterator[str]:
    """Yield what a parser says about data files."""
    try:
        if path.suffix == ".toml" and ".broken." not in path.name:
            tomllib.loads(text)
        elif path.suffix == ".json":
            json.loads(text)
        elif path.suffix in {".yaml", ".yml", ".cff"}:
            yaml.compose(text)
    except (ValueError, yaml.YAMLError) as error:
        yield f"not valid: {error}"


def main() -> int:
    given = [Path(name).resolve() for name in sys.argv[1:]]
    files = given or tracked()
    bad = [f"{path.relative_to(ROOT)}: {text}" for path in files for text in problems(path)]
    weights = sum(path.stat().st_size for path in files if path.suffix == ".safetensors")
    if weights > ALL_WEIGHTS:
        bad.append(f"bundled weights: {weights} bytes; at most {ALL_WEIGHTS} are allowed")
    for line in bad:
        print(line, file=sys.stderr)
    print(f"{len(files)} files, {len(bad)} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
