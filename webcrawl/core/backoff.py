"""What a host that does not want us, or does not answer, is given: time.

Rules kept here:
1. Three kinds of ends of a visit count for the host: a normal answer; a push back (429, 503, or any server error that
   says Retry-After); silence (no connection, no answer in time, no address). A redirect is a normal answer; if it says
   Retry-After, the host rests that long before it is followed.
2. A push back that says when to come back is taken at its word. Without a word, and after silence, the pause doubles
   from incident to incident, with jitter; one step per incident, not per answer: an answer to a request that was made
   before the last incident is part of that incident.
3. Steps are forgiven when a host has answered normally and the last incident is long past.
4. A host that is silent for several incidents without one normal answer sleeps for half a day (Castillo 2004, §A.1.1:
   servers are "comatose", not dead), a name without an address for a week (§A.2.2); after some sleeps it is given up.
   A host that pushes back is there: it is never given up.
5. A page is not to blame for what its host does: whether a failure counts for the page, `is_pages_fault` says.

Nothing here keeps state: `Health` goes in and comes out. Defaults as in StormCrawler: a minute, doubled up to a day,
forgiven after half an hour, a tenth of jitter.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from typing import NamedTuple

from webcrawl.core.reasons import Reason

PUSH_BACK_STATUS = frozenset({429, 503})
SILENCE = frozenset({Reason.TIMEOUT, Reason.UNREACHABLE, Reason.NO_SUCH_HOST})
LONGEST_REST_SECONDS = 30 * 86_400.0  # a host that asks for more is looked at once a month
NO_WORD = -1.0


class Health(NamedTuple):
    """What is remembered of a host's troubles."""

    steps: int = 0  # doublings of the pause, forgiven after a quiet time
    trouble: int = 0  # incidents since the last normal answer
    incident_at: float = 0.0


class Rest(NamedTuple):
    """The host's health after an incident, and how long it is left alone; `gives_up`: for good."""

    health: Health
    seconds: float
    gives_up: bool = False


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """How long a host in trouble is left alone."""

    first_seconds: float = 60.0
    most_seconds: float = 86_400.0
    forgive_seconds: float = 1_800.0
    jitter: float = 0.1
    tries: int = 5
    sleep_seconds: float = 43_200.0
    sleeps: int = 3
    no_name_sleep_seconds: float = 604_800.0

    def after_answer(self, health: Health, ended_at: float) -> Health:
        """A normal answer."""
        if not health.steps and not health.trouble:
            return health
        is_forgiven = ended_at - health.incident_at >= self.forgive_seconds
        return Health(0 if is_forgiven else health.steps, 0, health.incident_at)

    def after_push_back(
        self, health: Health, claimed_at: float, ended_at: float, retry_after: float, chance: float
    ) -> Rest:
        """The host asks for time; `retry_after` in seconds, or NO_WORD."""
        worsened = self._worsened(health, claimed_at, ended_at)
        if retry_after >= 0:  # at its word, though "0" is no reason to hurry
            return Rest(worsened, min(retry_after, LONGEST_REST_SECONDS))
        return Rest(worsened, self._pause(worsened, chance))

    def after_silence(
        self, health: Health, claimed_at: float, ended_at: float, is_nameless: bool, chance: float
    ) -> Rest:
        """The host does not answer; `is_nameless`: its name has no address."""
        worsened = self._worsened(health, claimed_at, ended_at)
        if is_nameless:
            is_second = bool(health.trouble) and ended_at - health.incident_at >= self.no_name_sleep_seconds
            return Rest(worsened, self.no_name_sleep_seconds, is_second)
        return Rest(worsened, self._pause(worsened, chance), worsened.trouble > self.tries + self.sleeps)

    def _worsened(self, health: Health, claimed_at: float, ended_at: float) -> Health:
        if health.trouble and claimed_at < health.incident_at:
            return health
        return Health(min(health.steps + 1, 60), min(health.trouble + 1, 250), ended_at)

    def _pause(self, health: Health, chance: float) -> float:
        if health.trouble > self.tries:
            return self.sleep_seconds * (1.0 + self.jitter * chance)
        doubled = self.first_seconds * 2.0 ** (health.steps - 1)
        return min(doubled, self.most_seconds) * (1.0 + self.jitter * chance)


def is_push_back(status: int, retry_after: float) -> bool:
    """Whether an answer asks for time.

    >>> is_push_back(503, NO_WORD), is_push_back(500, NO_WORD), is_push_back(500, 30.0)
    (True, False, True)
    """
    return status in PUSH_BACK_STATUS or (retry_after >= 0 and status >= 500)


def is_pages_fault(trouble: int, status: int, reason: Reason, retry_after: float) -> bool:
    """Whether a failed visit counts for the page: not while its host is in trouble anyway."""
    return trouble == 0 or not (is_push_back(status, retry_after) or (status == 0 and reason in SILENCE))


def retry_after_seconds(value: str, now: float) -> float:
    """The header Retry-After (RFC 9110 §10.2.3), seconds or a date, as seconds from now; NO_WORD for what is neither.

    >>> retry_after_seconds("120", now=0.0), retry_after_seconds("Thu, 01 Jan 1970 00:01:00 GMT", now=10.0)
    (120.0, 50.0)
    """
    text = value.strip()[:64]
    if text.isascii() and text.isdigit():
        return float(text)
    parsed = parsedate_tz(text) if text else None
    if parsed is None:
        return NO_WORD
    try:
        return max(float(mktime_tz(parsed)) - now, 0.0)
    except (OverflowError, ValueError):
        return NO_WORD
