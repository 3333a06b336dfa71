"""Where caches of the user lie."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder of caches: ``VCR_CACHE_DIR``, else the user's cache folder."""
    chosen = os.environ.get("VCR_CACHE_DIR")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("vcr", appauthor=False))
