from __future__ import annotations

import pytest
from vcr_core.ranking import mean_ranks, pareto_front, robustness_curve


def test_curve_area_and_violations():
    curve = robustness_curve({0.0: 1.0, 1 / 255: 0.5, 2 / 255: 0.6, 4 / 255: 0.2})
    # Trapezoids 0.75·1 + 0.55·1 + 0.4·2 over a span of 4.
    assert curve.area == pytest.approx((0.75 + 0.55 + 0.8) / 4)
    assert curve.violations == ((1 / 255, 2 / 255),)


def test_curve_needs_two_budgets():
    with pytest.raises(ValueError, match="two budgets"):
        robustness_curve({0.0: 1.0})


def test_mean_ranks_share_ties_and_skip_incomplete_cells():
    cells = {
        "pgd": {"a": 0.5, "b": 0.5, "c": 0.1},
        "square": {"a": 0.9, "b": 0.2, "c": 0.3},
        "stadv": {"a": None, "b": 0.2, "c": 0.9},
    }
    assert mean_ranks(cells) == {"a": 1.25, "b": 2.25, "c": 2.5}
    assert mean_ranks({"stadv": cells["stadv"]}) == {}


def test_pareto_front():
    points = {
        "best": (0.8, 0.1, 3.0),
        "fast": (0.5, 0.2, 1.0),
        "beaten": (0.5, 0.3, 1.0),
        "unknown": (0.9, None, 1.0),
    }
    assert pareto_front(points, (True, False, False)) == ["best", "fast"]
