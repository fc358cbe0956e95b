"""Pauses count from the end of an answer, and grow with every failure in a row."""

from __future__ import annotations

from webcrawl.core.politeness import HostPolicy, RetryPolicy


def test_the_pause_counts_from_the_end_of_the_answer():
    assert HostPolicy(15.0).next_at(ended_at=1003.5) == 1018.5
    assert HostPolicy(15.0).connections == 1


def test_no_pause_for_webs_you_own():
    assert HostPolicy(0.0, connections=8).next_at(1000.0) == 1000.0


def test_each_pause_is_twice_the_last():
    retry = RetryPolicy(times=4, delay_seconds=60)
    assert [retry.due_at(failures, 0.0) for failures in (1, 2, 3, 4)] == [60, 120, 240, 480]


def test_after_the_last_attempt_a_page_is_given_up():
    assert RetryPolicy(times=2, delay_seconds=60).due_at(3, 0.0) is None
    assert RetryPolicy(times=0, delay_seconds=60).due_at(1, 0.0) is None
