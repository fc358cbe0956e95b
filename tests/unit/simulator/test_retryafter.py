"""Retry-After in all its forms, read by a parser of its own."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime

import pytest

from webcrawl.simulator.retryafter import ABSURD, is_form, retry_after

NOW = 1_800_000_000.25


@pytest.mark.parametrize(("form", "seconds"), [("0", 0), ("30", 30), ("2.5", 2.5), ("200000", 200_000)])
def test_seconds(form, seconds):
    assert retry_after(form, NOW, 0) == (form, seconds)


@pytest.mark.parametrize(
    ("form", "low", "high"), [("date+30", 30, 31), ("date+90000", 90_000, 90_001), ("past", -86_401, -86_399)]
)
def test_dates_say_the_seconds_that_are_logged(form, low, high):
    sent = retry_after(form, NOW, 0)
    assert sent.text.endswith(" GMT")
    assert parsedate_to_datetime(sent.text).timestamp() == pytest.approx(NOW + sent.seconds, abs=1e-5)
    assert low <= sent.seconds <= high


def test_absurd_ones_come_in_turn():
    sent = [retry_after("absurd", NOW, turn) for turn in range(len(ABSURD) + 1)]
    assert [one.text for one in sent] == [*ABSURD, ABSURD[0]]
    assert all(math.isnan(one.seconds) for one in sent)


def test_other_forms_do_not_exist():
    assert not any(map(is_form, ["", "-1", "date", "date+", "date+1.5", "tomorrow"]))
