"""Every sound toy passes every check that its spec asks for."""

from __future__ import annotations

import pytest
from vcr_core.testing import parametrize_contract
from vcr_core.testing.toys.specs import TOYS


@pytest.mark.contract
@parametrize_contract(TOYS)
def test_contract(check):
    check()
