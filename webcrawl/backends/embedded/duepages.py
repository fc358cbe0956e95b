"""Pages that rest or will be re-visited: who is due, without looking at every page on the event loop.

The due time of a page is a column; which ones have come is found by a scan of it. A scan of ten million pages takes
47 ms, so that of a large table happens in the refill's thread; what it finds is checked again, page by page.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from webcrawl.backends.embedded.ready import SOON_SECONDS, ReadyPages
from webcrawl.core.columns import Array
from webcrawl.core.lifecycle import LEASED, READY, Event
from webcrawl.core.pagetable import PageTable

SCANNED_AT_ONCE = 200_000  # pages; about a millisecond
WAKE_AT_ONCE = 1_000  # in one turn of the event loop

Call = Callable[[Callable[[], None]], None]


class DuePages:
    """Wakes pages at their due times; `next_at` is the earliest of them."""

    def __init__(self, table: PageTable, ready: ReadyPages, call_in_thread: Call, next_at: float) -> None:
        self._table, self._ready, self._call_in_thread = table, ready, call_in_thread
        self.next_at = next_at
        self._scanned: deque[tuple[Array, float]] = deque()
        self.is_scanning = False

    def note(self, page: int, due_at: float) -> None:
        """This page is due then; whole seconds, never too early."""
        due = math.ceil(due_at)
        self._table.pages.at.due[page] = due
        self.next_at = min(self.next_at, float(due))

    def wake(self, now: float) -> None:
        """Pages whose due time has come are ready again, outside the working set."""
        while self._scanned:
            self._take(*self._scanned.popleft(), now)
            self.is_scanning = False
        if now < self.next_at or self.is_scanning:
            return
        self.next_at = math.inf
        if self._table.pages.count <= SCANNED_AT_ONCE:
            self._take(*self._scan(now), now)
        else:
            self.is_scanning = True
            self._call_in_thread(lambda: self._scanned.append(self._scan(now)))

    def _scan(self, now: float) -> tuple[Array, float]:
        """(pages that are due, when the next one is)."""
        pages = self._table.pages
        due = pages.due[: pages.count + 1]
        waiting = np.flatnonzero(due)
        instants = due[waiting]
        later = instants[instants > now]
        return waiting[instants <= now], float(later.min()) if later.size else math.inf

    def _take(self, ripe: Array, next_at: float, now: float) -> None:
        at = self._table.pages.at
        for page in ripe[:WAKE_AT_ONCE].tolist():
            if 0 < at.due[page] <= now and at.state[page] not in (READY, LEASED):
                at.due[page] = 0
                self._table.move(page, Event.FALL_DUE)
                self._ready.put_outside(page, at.host[page], is_wanted=True)
        self.next_at = min(self.next_at, next_at, now + SOON_SECONDS if ripe.size > WAKE_AT_ONCE else math.inf)
