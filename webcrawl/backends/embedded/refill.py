"""Refilling the working set: selects the next batch and reads its URLs in a thread.

The thread looks at the live columns. What it sees may be a moment old; whoever takes its result checks each page again.
Nothing it does holds the interpreter's lock for long: sorting and reading happen inside numpy and SQLite.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from webcrawl.backends.embedded.store import Store
from webcrawl.core.columns import Array
from webcrawl.core.lifecycle import State
from webcrawl.core.pagetable import PageTable
from webcrawl.core.selection import Plan

READ_AT_ONCE = 4_000
LARGE_PLAN = 100_000  # pages; drawing from a larger plan is better late than after sorting a new one
TAKE_AT_ONCE = 200  # in one turn of the event loop

Found = tuple[int, str, bytes | None]


class Refill:
    """One thread that draws batches; results wait in `ready`, in parts."""

    def __init__(
        self,
        table: PageTable,
        store: Store,
        per_host: int,
        on_ready: Callable[[], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._table = table
        self._store = store
        self._per_host = per_host
        self._on_ready = on_ready
        self._on_failure = on_failure
        self._pool = ThreadPoolExecutor(1, "webcrawl-refill")
        self._plan: Plan | None = None
        self._running: Future[None] | None = None
        self._called: Future[None] | None = None
        self.ready: deque[list[Found]] = deque()
        self.unread: deque[Array] = deque()
        self.left_over = 0
        self.drawn = 0

    @property
    def is_running(self) -> bool:
        """Whether a batch is being selected."""
        return self._running is not None and not self._running.done()

    def start(self, wanted: list[int], size: int = 0, replan: bool = False) -> None:
        """Deliver the `wanted` pages, whatever the plan says, and select up to `size` others, in the background.

        With `replan` the plan is made anew: before the selection if it is small, after it if it is large.
        """
        assert not self.is_running
        if self._running is not None:
            self._running.result()
        chosen = np.array(wanted, np.uint32)
        self._running = self._pool.submit(self._guarded, lambda: self._select(chosen, size, replan))

    def call(self, work: Callable[[], None]) -> None:
        """Run other reading in the same thread: the reader connection belongs to it."""
        self._called = self._pool.submit(self._guarded, work)

    def wait(self) -> None:
        """Block until everything that was started has ended (start-up, tests and benchmarks)."""
        for future in (self._running, self._called):
            if future is not None:
                future.result()

    def close(self) -> None:
        """Let the thread end."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _guarded(self, work: Callable[[], None]) -> None:
        """A store that cannot be read ends the crawl: waiting for it would never end."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody looks at this thread
            self._on_failure(error)
        self._on_ready()

    def _select(self, wanted: Array, size: int, replan: bool) -> None:
        self._deliver(wanted)
        if not size and not replan:
            return
        if self._plan is None or (replan and self._plan.left < LARGE_PLAN):
            self._plan, replan = self._make_plan(), False
        if size:
            self._draw(self._plan, size)
        if replan:  # the batch came from the plan there was; sorting millions of pages must not keep it waiting
            self._plan = self._make_plan()
        self.left_over = self._plan.left

    def _draw(self, plan: Plan, size: int) -> None:
        queued = self._table.hosts.queued[: self._table.hosts.count + 1].astype(np.int64)
        room = np.maximum(self._per_host - queued, 0)
        pages, _ = plan.draw(size, room)
        self.drawn = len(pages)
        self._deliver(pages)

    def _deliver(self, pages: Array) -> None:
        """Read the URLs of these pages, a part at a time."""
        for start in range(0, len(pages), READ_AT_ONCE):
            part = pages[start : start + READ_AT_ONCE]
            found = self._store.urls(part)
            if len(found) < len(part):  # not committed yet: whoever added them still has their URLs
                self.unread.append(np.setdiff1d(part, np.array([page for page, _, _ in found], part.dtype)))
            self.ready.extend(found[at : at + TAKE_AT_ONCE] for at in range(0, max(len(found), 1), TAKE_AT_ONCE))
            self._on_ready()

    def _make_plan(self) -> Plan:
        pages = self._table.pages
        count = pages.count + 1
        candidates = np.flatnonzero((pages.state[:count] == State.READY) & ~pages.working[:count]).astype(np.uint32)
        return Plan(candidates, pages.host[candidates], pages.score[candidates])
