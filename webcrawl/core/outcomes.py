"""What happens to a page after an answer, or after none: store it, try again later, or give it up."""

from __future__ import annotations

from typing import NamedTuple

from webcrawl.core.backoff import NO_WORD, is_pages_fault, is_push_back
from webcrawl.core.lifecycle import Event
from webcrawl.core.politeness import RetryPolicy
from webcrawl.core.reasons import Reason

# Answers that may be different next time; the list Scrapy and Heritrix share, with 429 (RFC 6585).
PASSING_STATUS = frozenset({408, 429, 500, 502, 503, 504, 522, 524})
MISSING_STATUS = frozenset({404, 410})
REDIRECT_STATUS = frozenset({301, 302, 303, 307, 308})
LASTING = frozenset({Reason.IGNORED, Reason.TOO_LARGE, Reason.ADDRESS_REFUSED})


class Outcome(NamedTuple):
    """The end of a visit."""

    event: Event
    reason: Reason
    due_at: float = 0.0
    counts: bool = True  # as a failure of the page; not if its host is to blame


def after_status(
    status: int, failures: int, ended_at: float, retry: RetryPolicy, trouble: int = 0, retry_after: float = NO_WORD
) -> Outcome:
    """The outcome of an answer; `failures` counts the failed visits before this one, `trouble` its host's incidents.

    >>> after_status(404, 0, 0.0, RetryPolicy(2, 60)).event.name
    'GIVE_UP'
    """
    if is_push_back(status, retry_after) or status in PASSING_STATUS:
        is_to_blame = is_pages_fault(trouble, status, Reason.HTTP_ERROR, retry_after)
        return _again(Reason.HTTP_ERROR, failures, ended_at, retry, is_to_blame)
    if status in MISSING_STATUS:
        return Outcome(Event.GIVE_UP, Reason.NOT_FOUND)
    if status >= 400:
        return Outcome(Event.GIVE_UP, Reason.HTTP_ERROR)
    return Outcome(Event.STORE, Reason.NONE)


def after_failure(reason: Reason, failures: int, ended_at: float, retry: RetryPolicy, trouble: int = 0) -> Outcome:
    """The outcome of a visit without an answer."""
    if reason in LASTING:
        return Outcome(Event.REFUSE, reason)
    return _again(reason, failures, ended_at, retry, is_pages_fault(trouble, 0, reason, NO_WORD))


def _again(reason: Reason, failures: int, ended_at: float, retry: RetryPolicy, is_to_blame: bool) -> Outcome:
    """Try again later, as often as a page may fail; while its host is in trouble, as long as the host is tried."""
    if not is_to_blame and retry.times:
        return Outcome(Event.FAIL, reason, retry.later(failures, ended_at), is_to_blame)
    due_at = retry.due_at(failures + 1, ended_at)
    return Outcome(Event.GIVE_UP, reason) if due_at is None else Outcome(Event.FAIL, reason, due_at)
