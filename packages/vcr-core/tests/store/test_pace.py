from __future__ import annotations

from datetime import UTC, datetime

import pytest
from vcr_core.pace import RECENT, newest_ends, recent_ends, videos_per_hour

NOW = 1_800_000_000.0


def stamp(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def stamps(*ages):
    return [stamp(NOW - age) for age in ages]


def test_pace_of_a_steady_run():
    ends = recent_ends([stamps(*range(300, -1, -10))], now=NOW)
    assert videos_per_hour(ends) == pytest.approx(360)


def test_videos_of_a_batch_end_together():
    # Four every 40 s: the first batch has no known beginning.
    ages = [age for age in range(400, -1, -40) for _ in range(4)]
    assert videos_per_hour(recent_ends([stamps(*ages)], now=NOW)) == pytest.approx(360)


def test_two_workers_are_twice_as_fast():
    ends = recent_ends([stamps(*range(300, -1, -10)), stamps(*range(305, 0, -10))], now=NOW)
    assert videos_per_hour(ends) == pytest.approx(720, rel=0.05)


def test_an_interruption_does_not_count():
    before = range(90_000 + 300, 90_000 - 1, -10)
    ends = recent_ends([stamps(*before), stamps(*range(300, -1, -10))], now=NOW)
    assert len(ends) == 62
    assert videos_per_hour(ends) == pytest.approx(360)


def test_only_recent_records_count():
    slow = [30_000 - 100 * i for i in range(200)]
    ends = recent_ends([stamps(*slow, *range(RECENT, 0, -1))], now=NOW)
    assert videos_per_hour(ends) == pytest.approx(3600)


def test_what_came_before_a_clock_was_set_back_does_not_count():
    # An hour ahead at first; merged as they are, the times would say twice the pace.
    ages = [*range(600 - 3600, -3600, -10), *range(200, -1, -10)]
    ahead = recent_ends([stamps(*ages)], now=NOW + 3600)
    assert len(ahead) == 21
    assert videos_per_hour(ahead) == pytest.approx(360)


def test_times_to_come_do_not_count():
    assert recent_ends([[stamp(NOW + 86_400), *stamps(20, 10), stamp(NOW + 60)]], now=NOW) == (
        NOW - 20, NOW - 10, NOW + 60,
    )  # fmt: skip


def test_times_that_do_not_tell_give_nothing():
    assert videos_per_hour([]) is None
    assert videos_per_hour([NOW]) is None
    assert videos_per_hour([NOW] * 50) is None
    # A hundred thousand videos in a second are a clock's fault.
    assert videos_per_hour([NOW] + [NOW + 1e-3] * 100) is None
    assert recent_ends([[None, 3, "yesterday", ""], []], now=NOW) == ()


def test_time_zones_are_read_and_none_is_utc():
    texts = ["2026-05-01T12:00:00.500+02:00", "2026-05-01T10:00:01.500Z", "2026-05-01T10:00:02.500"]
    first, second, third = recent_ends([texts], now=NOW)
    assert (second - first, third - second) == (1, 1)


def test_newest_of_several():
    assert newest_ends([(1.0, 5.0), (2.0, 3.0), ()], count=3) == (2.0, 3.0, 5.0)
