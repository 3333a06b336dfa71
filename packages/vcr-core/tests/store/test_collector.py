from __future__ import annotations

import gc

import pytest
from vcr_core.collector import collector_paused


@pytest.fixture(autouse=True)
def _as_before():
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


def test_collector_rests_inside_and_works_after_an_error_too():
    seen = []

    def fail():
        with collector_paused():
            seen.append(gc.isenabled())
            raise ValueError("inside")

    gc.enable()
    with pytest.raises(ValueError, match="inside"):
        fail()
    assert (seen, gc.isenabled()) == ([False], True)


def test_collector_that_was_off_stays_off():
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()
