from __future__ import annotations

import io
from typing import Any

import pytest
from vcr_core.progress import Progress, Tally


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_come_every_half_minute(records: Any) -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Progress(title="tiny, ifgsm", stream=stream, clock=clock)
    progress.started(total=10, done=2)
    progress.record(records.video("a", right=True, held=True))
    clock.now += 29
    progress.record(records.video("b", right=True, held=False))
    assert stream.getvalue() == ""
    clock.now += 1
    progress.record(records.error("c", "torn"))
    assert stream.getvalue() == (
        "tiny, ifgsm: 5/10 videos; clean 100.0 % [34.2, 100.0], robust 50.0 % [9.5, 90.5]; "
        "1 error; 0:30 elapsed; about 0:50 left\n"
    )
    clock.now += 10
    progress.batch()
    progress.finished()
    progress.finished()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "0:40 elapsed" in lines[1]


def test_line_without_results_says_so_without_numbers() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress(stream=stream, clock=clock) as progress:
        progress.started(total=4)
        clock.now += 3700
        progress.batch()
    assert stream.getvalue().splitlines()[0] == "0/4 videos; 0 errors; 1:01:40 elapsed"


def test_adaptive_run_shows_defended_accuracies(records: Any) -> None:
    tally = Tally(defended=True, total=2)
    tally.add(records.video("a", right=True, held=True, defended=(True, False)))
    tally.add(records.video("b", right=True, held=True, defended=(True, True)))
    text = tally.accuracies()
    assert text.startswith("defended: clean 100.0 %")
    assert "robust 50.0 %" in text


def test_draws_of_a_random_defense_count_as_shares(records: Any) -> None:
    record = records.video("a", right=True, held=True, defended=(True, True))
    record["attacked_defended"] = [{"pred": 0}, {"pred": 1}, {"pred": 1}, {"pred": 1}]
    tally = Tally(defended=True)
    tally.add(record)
    assert tally.robust == pytest.approx(0.25)


def test_run_without_attack_shows_clean_accuracy_alone(records: Any) -> None:
    tally = Tally()
    tally.add(records.video("a", right=False, held=None))
    assert tally.accuracies() == "clean 0.0 % [0.0, 79.3]"


def test_counts_by_status_and_device(records: Any) -> None:
    tally = Tally(before=3)
    for record in (
        records.video("a", right=True, held=True),
        {**records.video("b", right=False, held=None), "status": "ineligible"},
        records.error("c", "torn"),
        {"status": "skipped"},
    ):
        tally.add(record)
    assert (tally.done, tally.judged, tally.errors, tally.other) == (7, 2, 1, 1)
    assert tally.devices == {"cpu": 2}


def test_terminal_gets_one_live_display(records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with Progress(title="tiny", stream=stream) as progress:
        progress.started(total=2)
        progress.record(records.video("a", right=True, held=False))
        progress.record(records.error("b", "torn"))
    text = stream.getvalue()
    assert "2/2" in text
    assert "robust 0.0 %" in text
    assert "1 error" in text


def test_quiet_shows_nothing(records: Any) -> None:
    stream = io.StringIO()
    with Progress(stream=stream, quiet=True) as progress:
        progress.started(total=1)
        progress.record(records.video("a", right=True, held=True))
    assert stream.getvalue() == ""
    assert progress.tally.judged == 1
