"""The test file behind ``pytest -p vcr_core.testing.plugin --vcr-contract DISTRIBUTION``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from vcr_core.testing.contract import Case


@pytest.mark.contract
def test_contract(vcr_core_case: Case) -> None:
    """Run one check of one component."""
    vcr_core_case()
