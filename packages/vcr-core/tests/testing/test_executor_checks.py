from __future__ import annotations

import pytest
from vcr_core.specs import ExecutorSpec

_EXECUTORS = "vcr_core.testing.toys.broken.executors"
_SPEC = ExecutorSpec(name="toy-executor", summary="Breaks a rule", target=f"{_EXECUTORS}:NeverRuns")


@pytest.mark.parametrize(
    ("check_id", "target", "words"),
    [
        ("executor/equals-inline", "DropsLast", "no record of"),
        ("executor/survives-crash", "NeverRuns", "no worker ran"),
        ("executor/several-runs", "LosesRuns", "4 shards gave 2 statuses"),
        ("executor/resumes", "WritesAgain", "finished ones were done again"),
    ],
)
def test_a_broken_executor_is_caught(verdict, check_id, target, words):
    assert words in verdict(_SPEC, check_id, target=f"{_EXECUTORS}:{target}")


def test_an_executor_in_this_process_is_not_asked_to_survive_a_crash():
    from vcr_core.testing.catalog import checks_for

    inline = ExecutorSpec(
        name="toy-inline", summary="In place", target="x:Y", tags=frozenset({"in-process"})
    )
    assert "executor/survives-crash" not in {c.id for c in checks_for(inline)}
