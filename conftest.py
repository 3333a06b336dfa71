"""What holds for every test of the repository."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure, and CI looks at the same examples every time.
settings.register_profile(
    "repository",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repository")

LOCAL = {"localhost", "127.0.0.1", "::1"}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines, so that no test depends on any."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in LOCAL:
            raise PermissionError(f"a test tried to connect to {address[0]}; tests use no network")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", local_only)
