"""A hash of what a run folder claims: its manifest, its configuration and its records."""

from __future__ import annotations

import hashlib
from pathlib import Path

from vcr_core.manifest import MANIFEST_FILE
from vcr_core.records import record_files

RESOLVED_FILE = "resolved.toml"


def content_of(folder: Path) -> str:
    """Return the hash of ``run.json``, ``resolved.toml`` and the records, 32 hex digits.

    Derived files (summary, tables, reports), logs and kept clips do not count, and neither does
    where the folder lies or what it is called.
    """
    digest = hashlib.blake2b(digest_size=16, person=b"vcr-submission")
    files = [folder / MANIFEST_FILE, folder / RESOLVED_FILE, *record_files(folder)]
    for path in files:
        data = path.read_bytes() if path.is_file() else b""
        name = path.name.encode()
        digest.update(b"%d:%s%d:" % (len(name), name, len(data)))
        digest.update(data)
    return digest.hexdigest()
