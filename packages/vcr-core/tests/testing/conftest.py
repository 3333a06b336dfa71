from __future__ import annotations

from dataclasses import replace

import pytest
from vcr_core.testing.contract import Subject, cases


@pytest.fixture
def verdict():
    """Return a function that runs one check of a spec: ``(spec, check id, **changes) -> message``.

    The message is ``""`` when the check passes.
    """

    def run(spec, check_id, **changes):
        changed = replace(spec, **changes)
        found = [c for c in cases([changed]) if c.check.id == check_id]
        assert found, f"{check_id} does not apply to {changed}"
        assert isinstance(found[0].subject, Subject) or check_id.startswith("plugin/")
        try:
            found[0]()
        except AssertionError as error:
            return str(error) or "failed"
        return ""

    return run
