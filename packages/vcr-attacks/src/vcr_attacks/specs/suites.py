"""Suites of corruptions, and how a type comes to belong to one."""

from __future__ import annotations

from vcr_core.specs import Suite, SuiteMember

GU10 = Suite(name="gu10", version="1", types=10)
MINI_KINETICS_C = Suite(name="mini-kinetics-c", version="1", types=12)
MINI_SSV2_C = Suite(name="mini-ssv2-c", version="1", types=12)
KINETICS400_P = Suite(name="kinetics400-p", version="1", types=18)


def within(suite: Suite, **params: str) -> SuiteMember:
    """Return that a type belongs to a suite, with parameters if it takes some."""
    return SuiteMember(suite=suite, params=tuple(params.items()))
