"""The pages that may be asked for: a working set in memory, and the rest outside it, on disk.

A ready page is in one of two places. In the working set it has its URL in memory and a place in its host's queue (see
`core.workingset`). Outside it costs its columns only; a thread draws it into the working set when that runs low (see
`refill`). A new page joins at once if there is room, or if it beats the worst of its host or of the batch: so small
crawls are ordered exactly.

A page whose row is not on disk yet cannot be read back by the thread, so its URL is remembered until it is.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from webcrawl.backends.embedded.refill import LARGE_PLAN, Refill
from webcrawl.backends.embedded.rules import Rules
from webcrawl.backends.embedded.store import Store
from webcrawl.backends.embedded.writer import Writer
from webcrawl.core.lifecycle import READY
from webcrawl.core.pagetable import PageTable
from webcrawl.core.workingset import WorkingSet

SOON_SECONDS = 0.05
MOST_WANTED = 1_000

Text = tuple[str, bytes | None]  # URL and, for requests of spiders, the rest of the request


class ReadyPages:
    """Where every ready page waits; `pop` gives the best one that may be asked for now."""

    def __init__(
        self,
        table: PageTable,
        store: Store,
        writer: Writer,
        rules: Rules,
        connections_of: Callable[[int], int],
        outside: int,
        on_ready: Callable[[], None],
    ) -> None:
        self.working = WorkingSet()
        self.refill = Refill(table, store, rules.pages_per_host_in_batch, on_ready, writer.fail)
        self.outside = outside
        self._table, self._writer, self._connections_of = table, writer, connections_of
        self._batch, self._per_host = rules.batch_pages, rules.pages_per_host_in_batch
        self._texts: dict[int, Text] = {}  # of every page in the working set
        self._recent: dict[int, Text] = {}  # of pages outside whose row is in the current group
        self._unwritten: deque[tuple[int, dict[int, Text]]] = deque()  # of groups handed over: (last page, ...)
        self._in_memory: dict[int, Text] = {}  # of pages that are never written
        self._unplanned = outside  # how many of them no plan knows
        self._wanted: list[int] = []  # pages outside that no plan may keep waiting: due again, or revived
        self._is_hungry = False  # a host has few pages left here and more outside
        self._is_short = outside > 0  # pages were left outside that could be here
        self._worst = math.inf
        self._refill_after = 0.0

    # ------------------------------------------------------------------------------------------------ in

    def put(self, page: int, host: int, score: float, text: Text, now: float) -> None:
        """A page has become ready."""
        if not self._join(page, host, score, text, now):
            self.put_outside(page, host)
            self.remember(page, text)

    def put_outside(self, page: int, host: int, is_wanted: bool = False) -> None:
        """A page has become ready whose URL is on disk or remembered; `is_wanted`: look for it soon."""
        self._table.hosts.at.outside[host] += 1
        self.outside += 1
        if is_wanted:
            self._wanted.append(page)
        else:
            self._unplanned += 1

    def put_first(self, page: int, text: Text, now: float) -> None:
        """Into the working set, whatever else is there."""
        self._enter(page, self._table.pages.at.host[page], self._table.pages.at.score[page], text, now)

    def put_back(self, page: int, host: int, text: Text, now: float) -> None:
        """A page that was popped or held stays in the working set."""
        self._enter(page, host, self._table.pages.at.score[page], text, now)

    def park(self, page: int, host: int, text: Text, until: float, now: float) -> None:
        """A page that was popped goes back, and its host is not tried before `until`; infinity: until it is woken."""
        self.put_back(page, host, text, now)
        self.working.release(host, max(until, self._table.hosts.at.next_at[host]), now)

    def wake(self, host: int, at: float, now: float) -> bool:
        """A host that was parked may try again; whether it has any pages."""
        return self.working.wake(host, max(at, self._table.hosts.at.next_at[host]), now)

    def hold(self, page: int) -> None:
        """A page that was popped waits for something; nobody else may take it in meanwhile."""
        self._table.pages.at.working[page] = True

    def fetch_in(self, page: int, text: Text, now: float) -> None:
        """A page that is ready outside is needed now."""
        host = self._table.pages.at.host[page]
        self._table.hosts.at.outside[host] -= 1
        self.outside -= 1
        self.put_back(page, host, text, now)

    def remember(self, page: int, text: Text) -> None:
        """Keep the URL of a page outside the working set until it is on disk."""
        if page > self._writer.settled_page:
            self._recent[page] = text

    def keep(self, page: int, text: Text) -> None:
        """Keep the URL of a page that is never written."""
        self._in_memory[page] = text

    def forget(self, page: int) -> None:
        """A page that was never written is done with."""
        del self._in_memory[page]

    def note_hand_over(self) -> None:
        """The rows of all pages so far are with the writer."""
        if self._recent:
            self._unwritten.append((self._table.pages.count, self._recent))
            self._recent = {}
        while self._unwritten and self._unwritten[0][0] <= self._writer.settled_page:
            self._unwritten.popleft()
        self._plan_ahead()

    def _join(self, page: int, host: int, score: float, text: Text, now: float) -> bool:
        queue = self.working.hosts.get(host)
        if queue is not None and len(queue.pages) >= self._per_host:
            if (score, -page) <= queue.pages[0]:
                return False
            self._evict(self.working.drop_worst(host), host)
        elif self.working.size >= self._batch and (score <= self._worst or self.working.size >= 2 * self._batch):
            self._is_short = True  # also if it is good: nothing leaves for it, and memory is for a batch or two
            return False
        self._enter(page, host, score, text, now)
        return True

    def _enter(self, page: int, host: int, score: float, text: Text, now: float) -> None:
        if score < self._worst:
            self._worst = score
        hosts = self._table.hosts.at
        self.working.add(page, host, score, hosts.next_at[host], self._connections_of(host), now)
        self._table.pages.at.working[page] = True
        hosts.queued[host] += 1
        self._texts[page] = text

    def _evict(self, page: int, host: int) -> None:
        self._table.pages.at.working[page] = False
        self._table.hosts.at.queued[host] -= 1
        self.put_outside(page, host)
        self.remember(page, self._texts.pop(page))

    # ------------------------------------------------------------------------------------------------ changed

    def take_out(self, pages: Iterable[int]) -> set[int]:
        """Ready pages are not to be asked for any more; answers those that are held elsewhere and come back."""
        at, by_host = self._table.pages.at, defaultdict[int, set[int]](set)
        for page in pages:
            if at.working[page]:
                by_host[at.host[page]].add(page)
            else:
                self._table.hosts.at.outside[at.host[page]] -= 1
                self.outside -= 1
        held: set[int] = set()
        for host, wanted in by_host.items():
            removed = self.working.remove(host, wanted)
            held |= wanted - removed
            self._table.hosts.at.queued[host] -= len(removed)
            self._is_hungry = self._is_hungry or bool(self._table.hosts.at.outside[host])
            for page in removed:
                at.working[page] = False
                self.remember(page, self._texts.pop(page))
        return held

    def reorder(self, pages: Iterable[int]) -> None:
        """The scores of these ready pages have changed; those outside are planned anew."""
        at = self._table.pages.at
        hosts = {at.host[page] for page in pages}
        self.working.reorder(hosts, at.score)
        self._worst = -math.inf  # not known any more: whoever comes next may join
        self.plan_anew()

    def plan_anew(self) -> None:
        """Pages outside are better than they were, or there are more of them."""
        if self.outside:
            self._unplanned = self.outside
            self._is_short = True

    def text_in_memory(self, page: int) -> Text | None:
        """The URL of a page that is never written, if it is kept; may be asked by a thread."""
        return self._in_memory.get(page)

    # ------------------------------------------------------------------------------------------------ out

    def pop(self, now: float) -> tuple[int, int, Text] | None:
        """The best (page, host, text) that may be asked for now; the host is busy until `release`."""
        found = self.working.pop(now)
        return None if found is None else self._leave(*found)

    def host_of(self, page: int) -> int:
        """The host of a page."""
        return int(self._table.pages.at.host[page])

    def take(self, page: int, host: int) -> tuple[int, int, Text] | None:
        """The same for this very page, if it is the best of its host and the host is free."""
        return self._leave(page, host) if self.working.take(host, page) else None

    def _leave(self, page: int, host: int) -> tuple[int, int, Text]:
        hosts = self._table.hosts.at
        queued = hosts.queued[host] = hosts.queued[host] - 1
        self._table.pages.at.working[page] = False
        if queued * 2 < self._per_host and hosts.outside[host]:
            self._is_hungry = True
        return page, host, self._texts.pop(page)

    def release(self, host: int, now: float) -> None:
        """A page of this host has come back."""
        self.working.release(host, self._table.hosts.at.next_at[host], now)

    @property
    def is_selecting(self) -> bool:
        """Whether pages are on their way into the working set."""
        return self.refill.is_running or bool(self.refill.ready)

    def refill_if_low(self, now: float) -> None:
        """Draw the next batch before the working set runs dry."""
        is_low = self._is_hungry or self._is_low()
        if not self.outside or not (is_low or self._wanted) or self.is_selecting:
            return
        if now < self._refill_after and self.working.size:
            return
        self._refill_after = now + SOON_SECONDS
        wanted, self._wanted = self._wanted[:MOST_WANTED], self._wanted[MOST_WANTED:]
        if is_low:
            self._is_hungry = self._is_short = False
            self._worst = math.inf  # what was worst has been asked for since
            replan = self._unplanned * 4 > self.refill.left_over
            if replan:
                self._unplanned = 0
            self.refill.start(wanted, max(1, self._batch - self.working.size), replan)
        else:
            self.refill.start(wanted)

    def _plan_ahead(self) -> None:
        """Many pages have come since the last plan: make one before it is needed (Castillo 2004, §4.4)."""
        if self._unplanned > LARGE_PLAN + self.refill.left_over and not self.is_selecting:
            self._unplanned = 0
            self.refill.start([], replan=True)

    def _is_low(self) -> bool:
        size = self.working.size
        return size * 2 < self._batch and (self._is_short or not size)

    def take_selected(self, now: float) -> None:
        """Take one part of a drawn batch in; each page is checked again."""
        found = self.refill.ready.popleft()
        pages = self._table.pages.at
        while self.refill.unread:
            for page in self.refill.unread.popleft().tolist():
                text = self._text_in_memory(page)
                if text is not None:
                    found.append((page, *text))
                elif pages.state[page] == READY and not pages.working[page]:
                    self._wanted.append(page)  # it is with the writer, or was written meanwhile
        for page, url, request in found:
            if pages.state[page] == READY and not pages.working[page]:
                self._table.hosts.at.outside[pages.host[page]] -= 1
                self.outside -= 1
                self._enter(page, pages.host[page], pages.score[page], (url, request), now)
        if not self.refill.ready and self.refill.left_over:
            self._is_short = True

    def _text_in_memory(self, page: int) -> Text | None:
        for texts in (self._recent, self._in_memory, *(texts for _, texts in self._unwritten)):
            if page in texts:
                return texts[page]
        return None
