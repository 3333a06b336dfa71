"""Running the command line in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from vcr_core.cli import main
from vcr_core.plugins import reset_registry


@dataclass
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def vcr(capsys: pytest.CaptureFixture[str], monkeypatch) -> Iterator[Callable[..., Result]]:
    """Run ``vcr`` with arguments and return code, stdout and stderr."""
    for name in ("VCR_DISABLE_PLUGINS", "VCR_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    reset_registry()

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        code = main(list(arguments))
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    yield run
    reset_registry()
