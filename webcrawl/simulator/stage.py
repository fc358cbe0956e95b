"""A web in time: counts the requests of each host and plays the faults and the robots.txt that are due.

This is the only part of the simulated web with a memory, three numbers for each host that was asked.  The clocks are
arguments, so tests need not wait.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from webcrawl.simulator.answers import BAD_TLS, FAILURES, Answer
from webcrawl.simulator.robotsfiles import PATH

if TYPE_CHECKING:
    from collections.abc import Callable

    from webcrawl.simulator.answers import Answering, Web
    from webcrawl.simulator.faults import Fault


@dataclass(slots=True)
class Seen:
    """How often a host was asked, and when first for its robots.txt."""

    pages: int = 0
    robots: int = 0
    robots_since: float = 0.0

    def number_for(self, fault: Fault) -> int:
        """The number of the request under way among those that a fault is about."""
        return self.pages * fault.on_pages + self.robots * fault.on_robots


class Stage:
    """Another web's answers, as its rules change them."""

    def __init__(
        self,
        web: Web,
        answers: Answering,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._web = web
        self._answers = answers
        self._clock, self._wall_clock = clock, wall_clock
        self._seen: dict[int, Seen] = {}
        self._faults: dict[int, tuple[Fault, ...]] = {}

    def answer(self, host: str, target: str) -> Answer | None:
        """What a host answers now."""
        number = self._web.host_number(host)
        if number is None:
            return self._answers.answer(host, target)
        is_robots = target == PATH
        seen = self._count(number, is_robots)
        delay_seconds = 0.0
        for fault in self._faults[number]:
            if not (fault.on_robots if is_robots else fault.on_pages) or fault.name == BAD_TLS:
                continue
            nth = seen.number_for(fault)
            if not fault.hits(number, nth):
                continue
            if fault.name != "latency":
                return _later(fault.answer(nth, self._wall_clock()), delay_seconds)
            delay_seconds += fault.latency_seconds(number, nth)
        answer = self._robots_answer(number, seen) if is_robots else None
        answer = answer or self._answers.answer(host, target)
        return _later(answer, delay_seconds) if answer is not None else None

    def tunnel_answer(self, host: str) -> Answer | None:
        """How a connection to the https port of a host fails; None: it does not."""
        number = self._web.host_number(host)
        if number is None:
            return None
        seen = self._count(number, is_robots=False)
        for fault in self._faults[number]:
            nth = seen.number_for(fault)
            if fault.name in FAILURES and fault.on_pages and fault.hits(number, nth):
                return fault.answer(nth, self._wall_clock())
        return None

    def _count(self, host: int, is_robots: bool) -> Seen:
        seen = self._seen.get(host)
        if seen is None:
            seen = self._seen[host] = Seen()
            self._faults[host] = self._web.fault_rules.of(host) if self._web.fault_rules else ()
        if not is_robots:
            seen.pages += 1
            return seen
        seen.robots += 1
        if seen.robots == 1:
            seen.robots_since = self._clock()
        return seen

    def _robots_answer(self, host: int, seen: Seen) -> Answer | None:
        files = self._web.robots_files
        if files is None:
            return None
        return files.answer(host, seen.robots, self._clock() - seen.robots_since, self._wall_clock())


def _later(answer: Answer, delay_seconds: float) -> Answer:
    return replace(answer, delay_seconds=answer.delay_seconds + delay_seconds) if delay_seconds else answer
