from __future__ import annotations

import pytest
from vcr_core.testing import parametrize_contract

PARAMS = {
    "attack/ssah": {"features": "logits"},  # the kit's models have no feature layers
    "attack/amifgsm": {"quality": "torch:std"},  # NIQE needs larger frames
    "attack/cw": {"rounds": 3, "steps": 40, "weight": 1.0},
    "attack/sparse": {"rounds": 3, "steps": 30},
    # Weights of VGG19 are on few machines.
    "attack/stylefool": {"styliser": "statistics", "iterations": 20},
}
"""What the kit's models need, and less effort than the defaults where little is enough."""

EXPECTED_FAILURES = {
    "attack/succeeds-on-linear:one-frame": "the kit's model averages over 4 frames: one of them at "
    "4 times the radius only reaches a tie",
    "attack/succeeds-on-linear:korhonen": "the kit's videos are flat but for two edges, and flat "
    "parts do not change: four times the radius on a fifth of the pixels is too little",
    "attack/targeted-moves-target:flickering-universal": "the kit's model tells directions of "
    "motion, and a colour that is the same everywhere moves in none of them",
    "attack/targeted-moves-target:ssah": "the kit's training videos have the classes of the "
    "attacked ones; ssah needs one of the target's",
}


@pytest.mark.contract
@parametrize_contract("vcr-attacks", params=PARAMS, expected_failures=EXPECTED_FAILURES)
def test_contract(check):
    check()
