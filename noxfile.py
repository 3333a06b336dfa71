"""Every check of the project. ``./dev test`` runs the default ones, in the order below.

All sessions share the environment that nox runs in, because torch alone is gigabytes. The few
that need a clean one make it with uv, whose cache gives hard links, and remove it afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PACKAGES = ["vcr-core", "vcr-metrics", "vcr-models", "vcr-attacks", "vcr-defenses"]
PYTHON = sys.executable
SCRATCH = ROOT / ".nox"
WORKERS = str(min(os.cpu_count() or 1, 4))
UNASKED = "not slow and not weights and not gpu"
OWN_SESSION = "not contract and not e2e and not cluster"

# One thread each: two workers with a thread pool each are slower than either alone.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "none"
nox.options.stop_on_first_error = False
nox.options.sessions = [
    "lint",
    "typecheck",
    "tests_core_light",
    "tests",
    "contract",
    "e2e",
    "cluster",
    "build",
    "plugin_smoke",
    "docs",
    "tally",
]

reports: list[Path] = []


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting, lint rules, files and package metadata."""
    python(session, "-m", "ruff", "format", "--check", ".")
    python(session, "-m", "ruff", "check", ".")
    python(session, "tools/check_files.py")
    python(session, "tools/check_projects.py")


@nox.session
def typecheck(session: nox.Session) -> None:
    """Run mypy --strict on the sources of all packages."""
    python(session, "-m", "mypy")


@nox.session
def tests_core_light(session: nox.Session) -> None:
    """Test vcr-core where torch is not installed."""
    wanted = ["packages/vcr-core[report,parquet]", "--group", "test"]
    with clean_venv(session, "light", *wanted) as light:
        # Without what they require: describing and checking components takes their specs alone.
        light.install("--no-deps", *(f"packages/{name}" for name in PACKAGES[1:]))
        light.run("-c", "import importlib.util as u; assert u.find_spec('torch') is None")
        for command in (["list"], ["doctor"], ["config", "validate", "demo"]):
            light.run("-m", "vcr_core", *command)
        folders = [f"packages/vcr-core/tests/{name}" for name in LIGHT]
        light.pytest("core-light", *folders, "-m", UNASKED)


LIGHT = ["cli", "config", "plugins", "reporters", "robustness", "store"]


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests of all packages; arguments after -- go to pytest."""
    pytest(session, "tests", "-n", WORKERS, "-m", f"{OWN_SESSION} and {UNASKED}")


@nox.session
def contract(session: nox.Session) -> None:
    """Run the conformance kit over every component."""
    pytest(session, "contract", "-n", WORKERS, "-m", f"contract and {UNASKED}")


@nox.session
def e2e(session: nox.Session) -> None:
    """Run vcr as a user does, as a subprocess."""
    pytest(session, "e2e", "-n", WORKERS, "-m", f"e2e and {UNASKED}", "tests/e2e")


@nox.session
def cluster(session: nox.Session) -> None:
    """Run jobs on a cluster that the tests start; skipped without Slurm. One at a time."""
    pytest(session, "cluster", "-n", "0", "-m", f"cluster and {UNASKED}", "tests/cluster")


@nox.session
def build(session: nox.Session) -> None:
    """Build each package into dist/, the wheel from the sdist, and look inside."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for package in PACKAGES:
        arguments = ["--build-constraints", "constraints.txt", "--out-dir", "dist"]
        python(session, "-m", "uv", "build", "--quiet", *arguments, f"packages/{package}")
    python(session, "tools/check_dist.py", "dist")


@nox.session
def plugin_smoke(session: nox.Session) -> None:
    """Install the built wheels where there is no checkout, use them, and add plugins."""
    if not list(ROOT.glob("dist/*.whl")):
        build(session)
    extras = {"vcr_core": "[all]"}
    wheels = [
        f"{wheel}{extras.get(wheel.name.partition('-')[0], '')}"
        for wheel in sorted(ROOT.glob("dist/*.whl"))
    ]
    with clean_venv(session, "smoke", *wheels) as smoke:
        python(session, "tools/smoke.py", str(smoke.folder), env=ONE_THREAD)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, with every warning an error, and run the commands of its pages."""
    site = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", ".nox/site"]
    python(session, *site, env={"NO_MKDOCS_2_WARNING": "1"})
    pytest(session, "docs", "-n", WORKERS, "docs")


@nox.session
def tally(session: nox.Session) -> None:
    """Count the tests of the sessions before this one; fail if there were none."""
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for report in reports:
        for suite in ET.parse(report).iter("testsuite"):
            for key in total:
                total[key] += int(suite.get(key, "0"))
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    print(f"tests: {passed} passed, {failed} failed, {total['skipped']} skipped", flush=True)
    if failed or not passed:
        session.error("no test ran" if not passed else "tests failed")


# -- not in the default list ---------------------------------------------------------------------


@nox.session(default=False)
def minimums(session: nox.Session) -> None:
    """Test with the lowest versions that the packages say they work with (weekly)."""
    paths = ["packages/vcr-core[all]", *(f"packages/{name}" for name in PACKAGES[1:])]
    lowest = ["--resolution", "lowest-direct", "--no-config"]
    with clean_venv(session, "minimums", *paths, *lowest, pinned=False) as oldest:
        oldest.install("--group", "test")
        folders = [f"packages/{name}/tests" for name in PACKAGES]
        oldest.pytest("minimums", *folders, "-m", UNASKED)


@nox.session(default=False)
def release_check(session: nox.Session) -> None:
    """Check that a release can be made: versions, changelogs, metadata."""
    for package in PACKAGES:
        where = ["--config", "pyproject.toml", "--dir", f"packages/{package}"]
        python(session, "-m", "towncrier", "build", "--draft", "--version", "next", *where)
    build(session)
    python(session, "tools/check_projects.py", "--release")


# -- how -----------------------------------------------------------------------------------------


def python(session: nox.Session, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run the shared environment's Python in the checkout."""
    session.run(PYTHON, *arguments, env=env, external=True)


def pytest(session: nox.Session, name: str, *arguments: str, program: str = PYTHON) -> None:
    """Run pytest and remember its report for `tally`. No test at all is a failure."""
    report = SCRATCH / "reports" / f"{name}.xml"
    report.unlink(missing_ok=True)
    reports.append(report)
    session.run(
        program,
        *("-m", "pytest", "--junitxml", str(report), "--durations", "10"),
        *arguments,
        *session.posargs,
        env=ONE_THREAD,
        external=True,
    )


class CleanVenv:
    """An environment of its own, made by uv."""

    def __init__(self, session: nox.Session, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")

    def install(self, *arguments: str) -> None:
        """Install with uv; the working folder is the checkout."""
        python(self.session, "-m", "uv", "pip", "install", "-q", "-p", self.python, *arguments)

    def run(self, *arguments: str) -> None:
        """Run its Python."""
        self.session.run(self.python, *arguments, external=True)

    def pytest(self, name: str, *arguments: str) -> None:
        """Run pytest in it."""
        pytest(self.session, name, *arguments, program=self.python)


@contextlib.contextmanager
def clean_venv(
    session: nox.Session, name: str, *requirements: str, pinned: bool = True
) -> Iterator[CleanVenv]:
    """Make an environment with nothing but `requirements`, and remove it at the end."""
    folder = SCRATCH / f"clean-{name}"
    python(session, "-m", "uv", "venv", "--quiet", "--clear", "--python", PYTHON, str(folder))
    venv = CleanVenv(session, folder)
    try:
        pins = ["--constraints", "constraints.txt"] if pinned else []
        venv.install(*pins, *requirements)
        yield venv
    finally:
        shutil.rmtree(folder, ignore_errors=True)
