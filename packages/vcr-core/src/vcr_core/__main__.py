"""``python -m vcr_core`` is ``vcr``."""

from __future__ import annotations

from vcr_core.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
