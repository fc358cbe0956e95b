"""Retry-After in the ways that servers send it (RFC 9110, 10.2.3), and in ways in which they should not.

30          seconds; 200000 is more than a day
date+30     an HTTP-date so many seconds ahead
past        an HTTP-date of yesterday
absurd      one of several texts that are no sensible time, in turn
"""

from __future__ import annotations

import math
import re
import time
from typing import NamedTuple

ABSURD = ("soon", "-30", "99999999999999999999", "1.5 minutes", "Thu, 99 Foo 2026 25:61:00 GMT")
DAY_SECONDS = 86_400
_FORM = re.compile(r"(\d+(?:\.\d+)?)|date\+(\d+)|past|absurd")


class RetryAfter(NamedTuple):
    """What is sent, and how many seconds it asks for: less than 0 for the past, NaN for what is no time."""

    text: str
    seconds: float


def is_form(form: str) -> bool:
    return _FORM.fullmatch(form) is not None


def retry_after(form: str, now: float, turn: int) -> RetryAfter:
    """The value in this form; `now` is the instant of the answer, `turn` picks one of the absurd ones."""
    match = _FORM.fullmatch(form)
    assert match is not None, form
    if form == "absurd":
        return RetryAfter(ABSURD[turn % len(ABSURD)], math.nan)
    if match[1]:
        return RetryAfter(match[1], float(match[1]))
    at = math.ceil(now + int(match[2])) if match[2] else int(now) - DAY_SECONDS
    return RetryAfter(time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(at)), round(at - now, 6))
