"""Fixtures of the tests that run ``vcr`` as its users do; a conftest imports those it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import importlib_metadata
import pytest
from vcr_core.cli import main
from vcr_core.plugins import reset_registry
from vcr_core.testing.toys.installed import installed

from vcr_e2e.harness import EXPERIMENT, Done, Process, Reference, essence

PLUGIN = Path(__file__).parent.parent


@pytest.fixture(scope="session", autouse=True)
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the toys and the plugin of these tests, for this process and those it starts."""
    metadata = tmp_path_factory.mktemp("metadata")
    info = metadata / "vcr_e2e-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vcr-e2e\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[vcr]\ne2e = vcr_e2e.plugin\n")
    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join(filter(None, [str(metadata), str(PLUGIN), os.getenv("PYTHONPATH")]))
        patch.setenv("PYTHONPATH", path)
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(sys, "path", [*sys.path, str(metadata)])
        for name in [n for n in os.environ if n.startswith("VCR_")]:
            patch.delenv(name)
        patch.setenv("VCR_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        importlib_metadata.MetadataPathFinder.invalidate_caches()
        with installed():
            yield
    reset_registry()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with ``experiment.toml``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    return tmp_path


@pytest.fixture
def vcr(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run ``vcr`` in this process."""

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


@pytest.fixture
def start(here: Path) -> Iterator[Callable[..., Process]]:
    """Start ``vcr`` as a process; what is left of it at the end of the test is killed."""
    started: list[Process] = []

    def run(*arguments: str | Path, results: str = "results", **environment: str) -> Process:
        process = subprocess.Popen(
            [sys.executable, "-m", "vcr_core", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        started.append(Process(process, here / results))
        return started[-1]

    yield run
    for one in started:
        if one.done is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture(scope="session")
def reference(plugins: None, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.execution import execute
    from vcr_core.engine.run import open_run

    where = tmp_path_factory.mktemp("reference")
    (where / "experiment.toml").write_text(EXPERIMENT)
    run = open_run(resolve_run(str(where / "experiment.toml")), results=where)
    assert execute(run).exit_code == 0
    return Reference(run.folder, essence(run.folder))
