"""Messages as results of checks show them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def first_line(error: Exception, folder: Path) -> str:
    """Return the beginning of a message; where the folder lies is nobody's business."""
    text = str(error).strip().partition("\n")[0]
    return text.replace(f"{folder}{os.sep}", "").replace(str(folder), folder.name)
