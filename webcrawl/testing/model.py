"""ModelFrontier: what a frontier should do, in plain dictionaries; the oracle that others are compared with."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from webcrawl.core.frontier import Counts, Empty, Lease, Offer, Report, Visit, Wait
from webcrawl.core.lifecycle import Event, State, after
from webcrawl.core.pagetable import link_depth
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import NewPages, strategy
from webcrawl.core.urls import canonicals, host_of


@dataclass(frozen=True, slots=True)
class Manners:
    """What a frontier under test is told to do."""

    order: str = "breadth_first"
    delay_seconds: float = 10.0
    connections: int = 1
    depth: int = 0
    batch_pages: int = 100_000
    pages_per_host_in_batch: int = 500
    pages_per_host: int = 0

    def policy(self) -> HostPolicy:
        """How hosts are treated."""
        return HostPolicy(self.delay_seconds, self.connections)


@dataclass(slots=True)
class ModelPage:
    """All the model knows of a page."""

    url: str
    host: str
    depth: int
    score: float
    state: State = State.READY
    reason: Reason = Reason.NONE
    visits: int = 0
    stored: int = 0
    failures: int = 0
    due_at: float = 0.0
    targets: list[int] = field(default_factory=list)
    woken_from: tuple[State, Reason, float] | None = None  # falling due is not written down: it happens again


class ModelFrontier:
    """A frontier of plain dictionaries, slow and obviously right: the oracle for the others.

    What is acknowledged is a copy of everything; `reopened` goes on from that copy. It looks at all pages for every
    lease, keeps no batch, and knows no crash suspects.
    """

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.pages: dict[int, ModelPage] = {}
        self.ids: dict[str, int] = {}
        self.next_at: dict[str, float] = {}
        self.hosts: dict[str, int] = {}
        self.asked: set[str] = set()  # in this life
        self.new_hosts_at = 0.0  # a host that was asked and is forgotten may be any that is new
        self.leases: dict[int, Lease] = {}
        self.copy: bytes = pickle.dumps((self.pages, self.ids, self.next_at, self.hosts))
        self._scorer = strategy(manners.order)

    # --- in

    def offer(self, offers: Sequence[Offer], now: float) -> list[int]:
        """Take URLs in; 0 for those that are known."""
        return [self._take(offer.url, offer.depth, offer.priority) for offer in offers]

    def _take(self, url: str, depth: int, priority: float = 0.0) -> int:
        """The id of a new page; 0 and a smaller depth for a known one."""
        name = canonicals([url])[0]
        if name in self.ids:
            self._lower(self.ids[name], depth)
            return 0
        page = len(self.pages) + 1
        host = host_of(url)
        if host not in self.hosts:
            self.hosts[host] = len(self.hosts) + 1
            self.next_at[host] = self.new_hosts_at
        new = NewPages(np.array([page], np.uint32), np.array([depth], np.uint16), np.array([0], np.uint8), 1)
        score = float(self._scorer(new)[0] + np.float32(priority))
        self.ids[name] = page
        self.pages[page] = ModelPage(url, host, depth, score)
        if self.manners.depth and depth > self.manners.depth:
            self.pages[page].state, self.pages[page].reason = State.REFUSED, Reason.TOO_DEEP
        return page

    def _lower(self, number: int, depth: int) -> None:
        page = self.pages[number]
        if depth >= page.depth:
            return
        page.depth = depth
        page.woken_from = None
        if page.reason is Reason.TOO_DEEP and depth <= self.manners.depth:
            page.state, page.reason = State.READY, Reason.NONE
        for target in page.targets if self.manners.depth else ():
            self._lower(target, self._depth_of(page, self.pages[target].url))

    def _depth_of(self, page: ModelPage, url: str) -> int:
        return link_depth(page.depth, host_of(url) == page.host, url.count("/") == 3 and url.endswith("/"))

    # --- out

    def next(self, now: float, limit: int = 1) -> list[Lease] | Wait | Empty:
        """Up to `limit` leases, best first."""
        self._wake(now)
        leases: list[Lease] = []
        while len(leases) < limit and (best := self._best(now)) is not None:
            if self._host_is_done(self.pages[best].host):
                self.pages[best].state, self.pages[best].reason = State.REFUSED, Reason.HOST_LIMIT
            else:
                leases.append(self.lease(best, now))
        return leases or self._nothing()

    def _host_is_done(self, host: str) -> bool:
        of_host = [page for page in self.pages.values() if page.host == host]
        stored = sum(page.stored + (page.state is State.LEASED) for page in of_host)
        return 0 < self.manners.pages_per_host <= stored

    def _wake(self, now: float) -> None:
        for page in self.pages.values():
            if page.due_at and page.due_at <= now:
                page.woken_from = page.state, page.reason, page.due_at
                page.state, page.reason, page.due_at = State.READY, Reason.NONE, 0.0

    def may_be_asked(self, number: int, now: float) -> bool:
        """Whether this page may be leased now."""
        page = self.pages[number]
        under_way = sum(1 for other in self.leases if self.pages[other].host == page.host)
        is_due = self.next_at.get(page.host, 0.0) <= now
        return page.state is State.READY and is_due and under_way < self.manners.connections

    def _best(self, now: float) -> int | None:
        candidates = [number for number in self.pages if self.may_be_asked(number, now)]
        return min(candidates, key=lambda number: (-self.pages[number].score, number), default=None)

    def lease(self, number: int, now: float) -> Lease:
        """Hand this page out."""
        page = self.pages[number]
        page.state = State.LEASED
        self.asked.add(page.host)
        lease = Lease(
            number,
            self.hosts[page.host],
            page.url,
            page.depth,
            0,
            page.score,
            page.visits,
            page.failures,
            now,
            None,
        )
        self.leases[number] = lease
        return lease

    def _nothing(self) -> Wait | Empty:
        instants = [page.due_at for page in self.pages.values() if page.due_at]
        free = [page.host for page in self.pages.values() if page.state is State.READY]
        busy = {self.pages[number].host for number in self.leases}
        instants += [self.next_at.get(host, 0.0) for host in free if host not in busy]
        if not instants and not self.leases:
            return Empty()
        return Wait(min(instants, default=math.inf))

    # --- back

    def report(self, report: Report, now: float) -> None:
        """Settle a lease."""
        number = report.lease.page
        if self.leases.get(number) is not report.lease:
            raise LookupError(f"page {number} is not leased for visit {report.lease.visit}")
        del self.leases[number]
        page = self.pages[number]
        page.state, page.reason = after(page.state, report.event), report.reason
        if report.event is Event.RETURN:
            return
        end = report.visit.ended_at + self.manners.delay_seconds
        self.next_at[page.host] = max(end, self.next_at.get(page.host, 0.0))
        page.visits += 1
        page.stored += report.event is Event.STORE
        page.woken_from = None
        page.failures = 0 if report.event is Event.STORE else page.failures + 1
        page.due_at = float(math.ceil(report.due_at))
        for url in report.links:
            if self.manners.depth or canonicals([url])[0] not in self.ids:  # without a limit, links lower no depth
                self._take(url, self._depth_of(page, url))
        page.targets = [self.ids[name] for name in canonicals(report.links)]

    def flush(self, now: float, done: Callable[[], None] | None = None) -> None:
        """Everything reported so far is safe at once."""
        self.copy = pickle.dumps((self.pages, self.ids, self.next_at, self.hosts))
        if done is not None:
            done()

    def counts(self) -> Counts:
        """Where every known page is."""
        states = Counter(page.state for page in self.pages.values())
        reasons = Counter(page.reason for page in self.pages.values() if page.reason)
        parts: dict[str, Any] = {state.name.lower(): states[state] for state in State}
        return Counts(known=len(self.pages), hosts=len(self.hosts), reasons=dict(reasons), **parts)

    def stop(self, now: float) -> None:
        """A clean end: hosts that are being asked rest from now on."""
        for lease in list(self.leases.values()):
            host = self.pages[lease.page].host
            self.next_at[host] = max(self.next_at.get(host, 0.0), now + self.manners.delay_seconds)
            self.report(Report(lease, Visit(now), Event.RETURN), now)
        self.asked.clear()
        self.flush(now)

    def reopened(self, now: float, copy: bytes | None = None) -> ModelFrontier:
        """The model after the end of the process, from its last copy or an older one."""
        again = ModelFrontier(self.manners)
        again.pages, again.ids, again.next_at, again.hosts = pickle.loads(copy or self.copy)  # noqa: S301 - our own
        latest = now + self.manners.delay_seconds
        again.next_at = {host: min(at, latest) for host, at in again.next_at.items()}
        again.next_at.update({host: latest for host in self.asked if host in again.hosts})
        again.new_hosts_at = min(self.new_hosts_at, latest) if self.asked <= again.hosts.keys() else latest
        for page in again.pages.values():
            page.state = State.READY if page.state is State.LEASED else page.state
            if page.woken_from:
                page.state, page.reason, page.due_at = page.woken_from
        again.flush(now)
        return again
