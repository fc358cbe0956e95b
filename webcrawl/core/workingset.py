"""The short-term schedule: which page of the working set may be asked for next, by two heaps over hosts.

Rules kept here:
1. A host appears in `due` (it may be asked now; keyed by the score of its best page, ties by age) or in `waiting`
   (keyed by the instant from which it may be asked), never usefully in both. Entries are not moved when something
   changes: a newer entry is pushed and the old one is recognised as stale when it is popped.
2. `pop` moves what has fallen due from `waiting` to `due` and takes the best; it costs the logarithm of the number of
   hosts in the working set and never looks at a host that may not be asked.
3. At most `connections` pages of a host are under way at once, and after each the host rests.

This is Mercator's pair of queues (Najork and Heydon 2001, §3.3; Castillo 2004, §7.2.2): one queue per host, and a heap
of hosts by the time of the next allowed visit. Nothing here reads a clock: `now` arrives as an argument.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

Entry = tuple[float, int]  # (score, -page): the largest is asked for first, ties by age


class HostQueue:
    """The pages of one host in the working set, best last, and what the host is doing."""

    __slots__ = ("connections", "due_page", "pages", "under_way", "wakes_at")

    def __init__(self, connections: int) -> None:
        self.pages: list[Entry] = []
        self.connections = connections
        self.under_way = 0
        self.due_page = 0
        self.wakes_at = 0.0


class WorkingSet:
    """Queues of the hosts that have pages in the working set, under two heaps."""

    def __init__(self) -> None:
        self.hosts: dict[int, HostQueue] = {}
        self.size = 0
        self.under_way = 0
        self._due: list[tuple[float, int, int]] = []
        self._waiting: list[tuple[float, int]] = []

    def queued(self, host: int) -> int:
        """How many pages of this host wait here."""
        queue = self.hosts.get(host)
        return len(queue.pages) if queue else 0

    def drop_worst(self, host: int) -> int:
        """Take the worst page of a host out again; its id."""
        _, negative = self.hosts[host].pages.pop(0)
        self.size -= 1
        return -negative

    def add(self, page: int, host: int, score: float, host_next_at: float, connections: int, now: float) -> None:
        """One page joins its host's queue."""
        queue = self.hosts.get(host)
        if queue is None:
            queue = self.hosts[host] = HostQueue(connections)
        entry = (score, -page)
        if queue.pages and entry < queue.pages[-1]:
            insort(queue.pages, entry)
        else:
            queue.pages.append(entry)
        self.size += 1
        if queue.pages[-1] is entry:
            self._arrange(host, queue, host_next_at, now)

    def pop(self, now: float) -> tuple[int, int] | None:
        """The best (page, host) that may be asked for now, or None."""
        waiting, due, hosts = self._waiting, self._due, self.hosts
        while waiting and waiting[0][0] <= now:
            at, host = heappop(waiting)
            queue = hosts.get(host)
            if queue is not None and queue.wakes_at == at:
                queue.wakes_at = 0.0
                self._push_due(host, queue)
        while due:
            _, page, host = heappop(due)
            queue = hosts.get(host)
            if queue is None or queue.due_page != page:
                continue
            queue.due_page = 0
            queue.pages.pop()
            queue.under_way += 1
            self.size -= 1
            self.under_way += 1
            if queue.pages and queue.under_way < queue.connections:
                self._push_due(host, queue)
            return page, host
        return None

    def requests_of(self, host: int) -> int:
        """How many requests to this host are under way."""
        queue = self.hosts.get(host)
        return queue.under_way if queue is not None else 0

    def reserve(self, host: int, connections: int) -> None:
        """This host is asked for something that is no page of ours; ends with `release`."""
        queue = self.hosts.get(host)
        if queue is None:
            queue = self.hosts[host] = HostQueue(connections)
        queue.under_way += 1
        self.under_way += 1
        queue.due_page = 0

    def take(self, host: int, page: int) -> bool:
        """Take this page out to ask for it, if it is the best of its host."""
        queue = self.hosts.get(host)
        if queue is None or not queue.pages or -queue.pages[-1][1] != page:
            return False
        self.reserve(host, queue.connections)
        queue.pages.pop()
        self.size -= 1
        return True

    def release(self, host: int, next_at: float, now: float) -> None:
        """One page of this host is no longer under way; the host may be asked again at `next_at`."""
        queue = self.hosts[host]
        assert queue.under_way > 0, "a page was released twice"
        queue.under_way -= 1
        self.under_way -= 1
        if queue.pages:
            self._arrange(host, queue, next_at, now)
        elif not queue.under_way:
            del self.hosts[host]

    def wake(self, host: int, at: float, now: float) -> bool:
        """A host that was parked may be asked at this moment; whether it has any pages."""
        queue = self.hosts.get(host)
        if queue is None or not queue.pages:
            return False
        self._arrange(host, queue, at, now)
        return True

    def remove(self, host: int, pages: set[int]) -> set[int]:
        """Take pages of a host out again; those that were here."""
        queue = self.hosts.get(host)
        if queue is None:
            return set()
        removed = {-negative for _, negative in queue.pages} & pages
        queue.pages = [entry for entry in queue.pages if -entry[1] not in removed]
        self.size -= len(removed)
        if queue.due_page in removed:
            queue.due_page = 0
            self._push_due(host, queue)
        if not queue.pages and not queue.under_way:
            del self.hosts[host]
        return removed

    def reorder(self, hosts: set[int], scores: Sequence[float]) -> None:
        """Scores of pages of these hosts have changed: `scores` has them by page."""
        due = set()
        for host in hosts & self.hosts.keys():
            queue = self.hosts[host]
            queue.pages = sorted((scores[-negative], negative) for _, negative in queue.pages)
            if queue.due_page:
                queue.due_page = 0
                due.add(host)
        if due:  # an entry with an old score would not be recognised as stale if its page is still the best
            self._due = [entry for entry in self._due if entry[2] not in due]
            heapify(self._due)
            for host in due:
                self._push_due(host, self.hosts[host])

    def has_due(self) -> bool:
        """Whether a host may be asked now, as far as this schedule knows."""
        due = self._due
        while due:
            _, page, host = due[0]
            queue = self.hosts.get(host)
            if queue is not None and queue.due_page == page:
                return True
            heappop(due)
        return False

    def next_due_at(self) -> float | None:
        """The earliest instant at which a waiting host may be asked, or None if no host waits."""
        waiting = self._waiting
        while waiting:
            at, host = waiting[0]
            queue = self.hosts.get(host)
            if queue is not None and queue.wakes_at == at:
                return at
            heappop(waiting)
        return None

    def hosts_waiting(self) -> int:
        """How many hosts have pages here but must rest."""
        return sum(1 for queue in self.hosts.values() if queue.wakes_at)

    def _arrange(self, host: int, queue: HostQueue, next_at: float, now: float) -> None:
        if queue.under_way >= queue.connections:
            return
        if next_at <= now:
            queue.wakes_at = 0.0
            self._push_due(host, queue)
        elif queue.wakes_at != next_at:
            queue.wakes_at = next_at
            queue.due_page = 0
            heappush(self._waiting, (next_at, host))

    def _push_due(self, host: int, queue: HostQueue) -> None:
        if not queue.pages or queue.under_way >= queue.connections:
            return
        score, negative = queue.pages[-1]
        if queue.due_page != -negative:
            queue.due_page = -negative
            heappush(self._due, (-score, -negative, host))
