"""Pauses count from the end of an answer, and grow with every failure in a row."""

from __future__ import annotations

import pytest

from webcrawl.core.politeness import HostPolicy, RetryPolicy, hosts_needed, hours, quiet_until


def test_the_pause_is_the_longest_of_all_that_ask_for_one():
    policy = HostPolicy(15.0, large_delay_seconds=5.0, large_pages=100, factor=10.0, factor_most_seconds=120.0)
    assert policy.pause(stored=100) == 15.0  # more than a hundred
    assert policy.pause(stored=101) == 5.0
    assert policy.pause(stored=101, took=2.0) == 20.0
    assert policy.pause(stored=0, took=60.0) == 120.0  # not ten minutes
    assert policy.pause(stored=101, crawl_delay=7.5, took=0.1) == 7.5
    assert policy.pause(stored=0, crawl_delay=100_000.0) == 100_000.0
    assert policy.connections == 1


def test_a_large_host_is_never_asked_less_often_than_a_small_one():
    assert HostPolicy(1.0, large_delay_seconds=5.0).pause(stored=1000) == 1.0


def test_only_a_setting_shortens_a_crawl_delay():
    assert HostPolicy(15.0, crawl_delay_most_seconds=60.0).pause(stored=0, crawl_delay=3600.0) == 60.0


def test_jitter_only_makes_a_pause_longer():
    policy = HostPolicy(10.0, jitter=0.5)
    assert [policy.pause(0, chance=chance) for chance in (0.0, 0.5, 0.999)] == pytest.approx([10.0, 12.5, 14.995])


@pytest.mark.parametrize(
    ("text", "clock", "until"),
    [
        ("08:00-18:00", "12:00", "18:00"),
        ("08:00-18:00", "18:00", ""),
        ("08:00-18:00", "07:59", ""),
        ("22:30-06:00", "23:00", "06:00"),
        ("22:30-06:00", "05:59", "06:00"),
        ("22:30-06:00", "06:00", ""),
    ],
)
def test_quiet_hours(text: str, clock: str, until: str):
    day = 86_400.0 * 20_000
    now = day + _seconds(clock)
    expected = 0.0 if not until else next(at for at in (day, day + 86_400.0) if at + _seconds(until) > now)
    expected += _seconds(until) if until else 0.0
    assert quiet_until(now, [hours(text)]) == expected


def _seconds(text: str) -> float:
    hour, minute = text.split(":")
    return int(hour) * 3600.0 + int(minute) * 60.0


@pytest.mark.parametrize("text", ["", "8-18", "08:00", "08:00-08:00", "25:00-26:00", "08:00-18:00-20:00", "a:b-c:d"])
def test_what_are_no_hours(text: str):
    with pytest.raises(ValueError, match="22:00-06:00"):
        hours(text)


def test_a_fast_crawl_needs_many_hosts():
    assert hosts_needed(100, 30) == 3001


def test_no_pause_for_webs_you_own():
    assert HostPolicy(0.0, connections=8).pause(stored=0) == 0.0


def test_each_pause_is_twice_the_last():
    retry = RetryPolicy(times=4, delay_seconds=60)
    assert [retry.due_at(failures, 0.0) for failures in (1, 2, 3, 4)] == [60, 120, 240, 480]


def test_after_the_last_attempt_a_page_is_given_up():
    assert RetryPolicy(times=2, delay_seconds=60).due_at(3, 0.0) is None
    assert RetryPolicy(times=0, delay_seconds=60).due_at(1, 0.0) is None
