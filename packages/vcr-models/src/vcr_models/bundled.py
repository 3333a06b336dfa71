"""Files of weights that come with this package."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Final

from vcr_core.errors import ComponentUnavailable

PREFIX: Final = "package:vcr_models/weights/"


def bundled(url: str, sha256: str) -> bytes:
    """Return the content of a bundled file.

    Raises:
        ComponentUnavailable: if there is no such file, or another one.
    """
    name = url.removeprefix(PREFIX)
    path = files("vcr_models") / "weights" / name
    if not url.startswith(PREFIX) or "/" in name or not path.is_file():
        raise ComponentUnavailable(f"{url!r} names no bundled file")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if not found.startswith(sha256):
        raise ComponentUnavailable(f"the bundled {name} has sha256 {found}, not {sha256}")
    return content
