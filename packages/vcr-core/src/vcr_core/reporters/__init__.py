"""What runs look like to a reader: tables, an HTML report, Markdown and CSV."""

from __future__ import annotations

from pathlib import Path


def target_file(out: Path, name: str) -> Path:
    """Return ``out``, or the file ``name`` in it where ``out`` is an existing folder."""
    return out / name if out.is_dir() else out
