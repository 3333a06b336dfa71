"""``vcr`` as its users run it: in this process where that is enough, else as a process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "plugin"))

from vcr_e2e.fixtures import here, plugins, reference, start, vcr

__all__ = ["here", "plugins", "reference", "start", "vcr"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(300))
