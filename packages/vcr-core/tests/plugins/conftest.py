"""Fake distributions on disk: metadata, an entry point and a module."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vcr_core import availability
from vcr_core.plugins import Registry, load_registry, reset_registry

GOOD = """
from vcr_core import MetricSpec, hookimpl

@hookimpl
def vcr_register_metrics():
    return [MetricSpec(name="{name}", summary="A metric", target="nowhere.at:All",
                       higher_is_better=True)]
"""


class Site:
    """A folder on the import path to which distributions are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        distribution: str,
        source: str | None,
        *,
        version: str = "0.3.1",
        module: str | None = None,
        entry_points: str | None = None,
        entry: str = "plugin",
    ) -> str:
        """Write a distribution and return its module; ``source=None`` writes no module."""
        stem = distribution.replace("-", "_").replace(".", "_")
        module = module or f"{stem.lower()}_mod"
        info = self.folder / f"{stem}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {distribution}\nVersion: {version}\n"
        )
        text = f"[vcr]\n{entry} = {module}\n" if entry_points is None else entry_points
        (info / "entry_points.txt").write_text(text)
        if source is not None:
            (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        return module

    def good(self, distribution: str, name: str, **options: str) -> str:
        """Write a plugin that registers one metric."""
        return self.add(distribution, GOOD.format(name=name), **options)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    for name in ("VCR_DISABLE_PLUGINS", "VCR_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    reset_registry()
    availability.forget()
    yield Site(folder)
    reset_registry()
    availability.forget()
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        if str(getattr(module, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def load(site: Site) -> Callable[[], Registry]:
    """Load a fresh registry after the distributions were written."""

    def _load() -> Registry:
        importlib.invalidate_caches()
        return load_registry()

    return _load
