from __future__ import annotations

import pytest
from vcr_core.testing import parametrize_contract


@pytest.mark.contract
@parametrize_contract("vcr-models")
def test_contract(check):
    check()
