"""When a host may be asked again, and when a failed page.

Rules kept here:
1. The pause counts from the end of the last answer, not from its start: a slow server is asked less often. It is the
   longest of the base, the Crawl-delay of the host's robots.txt, and a multiple of the time the last fetch took.
2. The base is shorter for large hosts (Castillo 2004, §7.2.2): at 15 s a host of 100,000 pages takes seventeen days.
3. Jitter only makes a pause longer.
4. Hosts whose owner crawls them (politeness off) have no pause and may serve several connections at once.
5. In quiet hours nobody is asked.

Mercator waits ten times as long as the last download took (Najork and Heydon 2001; Castillo 2004, §2.4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """How one host is treated."""

    delay_seconds: float
    connections: int = 1
    large_delay_seconds: float | None = None  # None: as every other host
    large_pages: int = 100
    factor: float = 0.0
    factor_most_seconds: float = 120.0
    crawl_delay_most_seconds: float = 0.0  # 0: however long it is
    jitter: float = 0.0

    def base(self, stored: int) -> float:
        """The pause without a wish of the host; a large host never gets a longer one than a small host."""
        if self.large_delay_seconds is None or stored <= self.large_pages:
            return self.delay_seconds
        return min(self.delay_seconds, self.large_delay_seconds)

    def heeded(self, crawl_delay: float) -> float:
        """The part of a Crawl-delay that is kept.

        >>> HostPolicy(15.0, crawl_delay_most_seconds=60.0).heeded(3600.0)
        60.0
        """
        most = self.crawl_delay_most_seconds
        return min(crawl_delay, most) if most else crawl_delay

    def pause(self, stored: int, crawl_delay: float = 0.0, took: float = 0.0, chance: float = 0.0) -> float:
        """Seconds from the end of an answer to the next request; `chance` in [0, 1) draws the jitter.

        >>> HostPolicy(15.0, large_delay_seconds=5.0, factor=10.0).pause(stored=101, took=0.8)
        8.0
        """
        pause = self.delay_seconds if self.large_delay_seconds is None else self.base(stored)
        if crawl_delay:
            pause = max(pause, self.heeded(crawl_delay))
        if self.factor:
            pause = max(pause, min(self.factor * took, self.factor_most_seconds))
        return pause * (1.0 + self.jitter * chance) if chance else pause


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a failed page is tried again, and after what pause."""

    times: int
    delay_seconds: float

    def due_at(self, failures: int, ended_at: float) -> float | None:
        """When to try again after so many failures in a row, each pause twice the last; None: give up.

        >>> RetryPolicy(times=2, delay_seconds=60).due_at(failures=2, ended_at=1000.0)
        1120.0
        """
        if failures > self.times:
            return None
        return self.later(failures, ended_at)

    def later(self, failures: int, ended_at: float) -> float:
        """The same without an end: for a page that is not to blame."""
        return ended_at + self.delay_seconds * 2.0 ** min(max(failures - 1, 0), 20)


def pages_in_visit(text: str) -> tuple[str, int]:
    """A host and how many pages in a row it may be asked for; ValueError with the rule for what is none.

    >>> pages_in_visit("Example.org=10")
    ('example.org', 10)
    """
    host, _, count = text.partition("=")
    if not host or not count.isdecimal() or not 1 <= int(count) <= 100:
        raise ValueError("a host and a number from 1 to 100, as in example.org=10")
    return host.lower(), int(count)


class Hours(NamedTuple):
    """A part of every day, in seconds since midnight UTC; the end may lie on the next day."""

    begin: float
    end: float


def hours(text: str) -> Hours:
    """Quiet hours as people write them; ValueError with the rule for what is none.

    >>> hours("22:30-06:00")
    Hours(begin=81000.0, end=21600.0)
    """
    try:
        begin, end = (_seconds(part) for part in text.split("-"))
    except ValueError:
        begin = end = 0.0
    if begin == end:
        raise ValueError("hours as 22:00-06:00, in UTC")
    return Hours(begin, end)


def _seconds(text: str) -> float:
    hour, minute = (int(part) for part in text.strip().split(":"))
    if not (0 <= hour <= 24 and 0 <= minute < 60):
        raise ValueError(text)
    return (hour * 3600.0 + minute * 60.0) % DAY_SECONDS


def quiet_until(now: float, quiet: Sequence[Hours]) -> float:
    """When the quiet hours that `now` lies in are over; 0: it lies in none."""
    moment = now % DAY_SECONDS
    ends = [now + (part.end - moment) % DAY_SECONDS for part in quiet if _is_within(moment, part)]
    return max(ends, default=0.0)


def _is_within(moment: float, part: Hours) -> bool:
    if part.begin < part.end:
        return part.begin <= moment < part.end
    return moment >= part.begin or moment < part.end


def hosts_needed(pages_per_second: float, delay_seconds: float) -> int:
    """How many hosts a crawl must have in its queue to go this fast: more than the rate times the pause.

    >>> hosts_needed(100, 30)
    3001
    """
    return int(pages_per_second * delay_seconds) + 1
