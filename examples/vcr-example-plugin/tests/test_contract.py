"""Every component of this plugin keeps its contract."""

from vcr_core.testing import parametrize_contract


@parametrize_contract("vcr-example-plugin")
def test_contract(check):
    check()
