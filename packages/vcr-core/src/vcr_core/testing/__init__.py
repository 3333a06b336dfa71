"""The conformance kit: checks that every component of a plugin has to pass.

Example:
    A plugin's whole contract test::

        from vcr_core.testing import parametrize_contract


        @parametrize_contract("vcr-acme-models")
        def test_contract(check):
            check()
"""

from __future__ import annotations

from vcr_core.testing.contract import Case, Check, Subject, parametrize_contract

__all__ = ["Case", "Check", "Subject", "parametrize_contract"]
