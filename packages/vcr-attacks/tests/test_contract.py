from __future__ import annotations

import pytest
from vcr_core.testing import parametrize_contract


@pytest.mark.contract
@parametrize_contract("vcr-attacks")
def test_contract(check):
    check()
