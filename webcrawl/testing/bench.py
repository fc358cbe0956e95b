"""A frontier as five plain methods, for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from webcrawl.backends.embedded import EmbeddedRun, Plugs, Rules
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import Lease, Report, Visit
from webcrawl.core.lifecycle import STORE
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.strategies import strategy

CLAIMS_AT_ONCE = 16


class BenchFrontier:
    """The embedded frontier with no pause, one connection a host, and settlements in grouped commits."""

    def __init__(self, directory: str) -> None:
        self._run = EmbeddedRun(Path(directory))
        rules = Rules(urls_per_host=0)
        plugs = Plugs(
            rules, strategy("breadth_first"), Admission([]), HostPolicy(delay_seconds=0.0), is_own=lambda name: True
        )
        self._run.start(plugs, time.time())
        self._frontier = self._run.frontier
        self._claimed: list[Lease] = []
        self._root = Lease(0, 0, "", 0, 0, 0.0, 0, 0, 0.0, None)

    def add(self, urls: Sequence[str]) -> int:
        """Offer links of a page; how many were new."""
        before = self._frontier.table.pages.count
        now = time.time()
        self._frontier.take_links(self._root, urls, now)
        self._frontier.flush_if_full(now)
        while self._frontier.is_behind:
            time.sleep(0.001)
        return self._frontier.table.pages.count - before

    def claim(self) -> Lease | None:
        """The next page that may be fetched now, or None."""
        if not self._claimed:
            self._claimed = self._claim_some()
        return self._claimed.pop() if self._claimed else None

    def _claim_some(self) -> list[Lease]:
        while True:
            answer = self._frontier.next(time.time(), CLAIMS_AT_ONCE)
            if isinstance(answer, list):
                answer.reverse()
                return answer
            if not self._frontier.is_selecting:
                return []
            self._frontier.wait_for_selection()

    def done(self, lease: Lease) -> None:
        """That fetch is over."""
        now = time.time()
        self._frontier.report(Report(lease, Visit(now, 200, "text/html", 14_000, 9_000, lease.page), STORE), now)

    def table_bytes(self) -> int:
        """Memory of everything that is kept per page and per host."""
        return self._frontier.table.bytes_used()

    def close(self) -> None:
        """A clean end, everything kept."""
        self._run.close("finished", time.time())
