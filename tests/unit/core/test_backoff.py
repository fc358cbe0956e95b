"""A host that asks for time gets it; one that does not answer is tried less and less often, then given up."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webcrawl.core.backoff import (
    LONGEST_REST_SECONDS,
    NO_WORD,
    BackoffPolicy,
    Health,
    is_pages_fault,
    is_push_back,
    retry_after_seconds,
)
from webcrawl.core.reasons import Reason

PLAIN = BackoffPolicy(jitter=0.0)


def test_without_a_word_the_pause_doubles_with_every_incident():
    health, pauses, now = Health(), [], 1000.0
    for _ in range(5):
        rest = PLAIN.after_push_back(health, claimed_at=now, ended_at=now + 1, retry_after=NO_WORD, chance=0.5)
        health, now = rest.health, now + 1 + rest.seconds
        pauses.append(rest.seconds)
    assert pauses == [60, 120, 240, 480, 960]


def test_a_word_of_the_host_counts_and_zero_is_no_word_to_hurry():
    for said in (0.0, 5.0, 90_000.0):
        assert PLAIN.after_push_back(Health(), 0.0, 1.0, said, 0.0).seconds == said
    assert PLAIN.after_push_back(Health(), 0.0, 1.0, 1e12, 0.0).seconds == LONGEST_REST_SECONDS


def test_eight_answers_of_one_incident_are_one_step():
    health = Health()
    for _ in range(8):  # all asked before the first answer came
        rest = PLAIN.after_push_back(health, claimed_at=100.0, ended_at=101.0, retry_after=NO_WORD, chance=0.0)
        health = rest.health
    assert (health.steps, health.trouble, rest.seconds) == (1, 1, 60.0)


def test_steps_are_forgiven_after_a_quiet_time_and_trouble_at_once():
    hurt = Health(steps=3, trouble=3, incident_at=1000.0)
    assert PLAIN.after_answer(hurt, 1001.0) == Health(3, 0, 1000.0)
    assert PLAIN.after_answer(hurt, 1000.0 + 1800.0) == Health(0, 0, 1000.0)
    again = PLAIN.after_push_back(PLAIN.after_answer(hurt, 1001.0), 1002.0, 1003.0, NO_WORD, 0.0)
    assert again.seconds == 480.0  # the fourth step


def test_a_silent_host_sleeps_half_days_and_is_given_up():
    health, now, rests = Health(), 0.0, []
    for _ in range(9):
        rest = PLAIN.after_silence(health, now, now, is_nameless=False, chance=0.0)
        health, now = rest.health, now + rest.seconds + 1
        rests.append((rest.seconds, rest.gives_up))
    assert [seconds for seconds, _ in rests] == [60, 120, 240, 480, 960, *[43_200] * 4]
    assert [gives_up for _, gives_up in rests] == [False] * 8 + [True]


def test_a_name_without_an_address_is_tried_again_after_a_week_and_then_given_up():
    first = PLAIN.after_silence(Health(), 0.0, 1.0, is_nameless=True, chance=0.0)
    assert (first.seconds, first.gives_up) == (7 * 86_400.0, False)
    second = PLAIN.after_silence(first.health, 700_000.0, 700_001.0, is_nameless=True, chance=0.0)
    assert second.gives_up
    other = PLAIN.after_silence(Health(1, 1, 1000.0), 1070.0, 1071.0, is_nameless=True, chance=0.0)
    assert not other.gives_up  # it was in trouble of another kind a minute ago


def test_a_host_that_pushes_back_is_never_given_up():
    health, now = Health(), 0.0
    for number in range(50):
        rest = PLAIN.after_push_back(health, now, now, 5.0 if number % 2 else NO_WORD, 0.0)
        health, now = rest.health, now + rest.seconds + 1
        assert not rest.gives_up


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 60), st.integers(0, 250))
def test_jitter_only_makes_a_rest_longer(chance: float, steps: int, trouble: int):
    health = Health(steps, trouble, 5.0)
    plain = PLAIN.after_silence(health, 10.0, 11.0, is_nameless=False, chance=chance).seconds
    jittered = BackoffPolicy(jitter=0.1).after_silence(health, 10.0, 11.0, is_nameless=False, chance=chance).seconds
    assert plain <= jittered <= plain * 1.1
    assert 0 < plain <= 86_400.0


def test_what_counts_as_a_push_back():
    asked = [status for status in range(200, 600) if is_push_back(status, NO_WORD)]
    assert asked == [429, 503]
    with_word = [status for status in range(200, 600) if is_push_back(status, 1.0)]
    assert with_word == [429, *range(500, 600)]


def test_a_page_is_not_to_blame_for_its_host():
    assert is_pages_fault(0, 503, Reason.HTTP_ERROR, NO_WORD)
    assert not is_pages_fault(1, 503, Reason.HTTP_ERROR, NO_WORD)
    assert not is_pages_fault(1, 0, Reason.TIMEOUT, NO_WORD)
    assert is_pages_fault(1, 500, Reason.HTTP_ERROR, NO_WORD)
    assert is_pages_fault(1, 0, Reason.BROKEN_ANSWER, NO_WORD)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Wed, 21 Oct 2015 07:28:10 GMT", 10.0),
        ("Wednesday, 21-Oct-15 07:28:10 GMT", 10.0),
        ("Wed Oct 21 07:28:10 2015", 10.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("", NO_WORD),
        ("soon", NO_WORD),
        ("-5", NO_WORD),
        ("1.5", NO_WORD),
        ("Wed, 99 Foo 99999 99:99:99 GMT", NO_WORD),
    ],
)
def test_retry_after_in_every_form(said: str, seconds: float):
    assert retry_after_seconds(said, now=1445412480.0) == seconds


@given(st.text())
def test_any_header_is_read(text: str):
    assert retry_after_seconds(text, now=1e9) >= NO_WORD


def test_rests_never_get_shorter_while_trouble_lasts():
    health, now, seconds = Health(), 0.0, []
    for _ in range(30):
        rest = PLAIN.after_push_back(health, now, now, NO_WORD, 0.0)
        health, now = rest.health, now + rest.seconds + 1
        seconds.append(rest.seconds)
    assert all(late >= early for early, late in pairwise(seconds))
