from __future__ import annotations

import pytest
from vcr_core.testing import parametrize_contract

PARAMS = {
    "attack/ssah": {"features": "logits"},  # the kit's models have no feature layers
    "attack/amifgsm": {"quality": "torch:std"},  # NIQE needs larger frames
    "attack/cw": {"rounds": 3, "steps": 40, "weight": 1.0},
    "attack/sparse": {"rounds": 3, "steps": 30},
}
"""What the kit's models need, and less effort than the defaults where little is enough."""

EXPECTED_FAILURES = {
    "attack/succeeds-on-linear:one-frame": "the kit's model averages over 4 frames: one of them at "
    "4 times the radius only reaches a tie",
    "attack/succeeds-on-linear:korhonen": "the kit's videos are flat but for two edges, and flat "
    "parts do not change: four times the radius on a fifth of the pixels is too little",
}


@pytest.mark.contract
@parametrize_contract("vcr-attacks", params=PARAMS, expected_failures=EXPECTED_FAILURES)
def test_contract(check):
    check()
