"""Tools for testing what plugs into the crawler; no pytest needed.

`BenchFrontier` shows a frontier to a benchmark as five plain methods. `check_frontier` checks the promises of a
frontier in virtual time; `ModelFrontier` is the oracle it is compared with.
"""

from __future__ import annotations

import math
import pickle
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from webcrawl.backends.embedded import EmbeddedRun, Plugs, Rules
from webcrawl.core.errors import StoreError
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import Counts, Empty, Frontier, Lease, Offer, Report, Visit, Wait
from webcrawl.core.lifecycle import STORE, Event, State, after
from webcrawl.core.pagetable import link_depth
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import NewPages, strategy
from webcrawl.core.urls import canonicals, host_of

CLAIMS_AT_ONCE = 16


class BenchFrontier:
    """The embedded frontier with no pause, one connection a host, and settlements in grouped commits."""

    def __init__(self, directory: str) -> None:
        self._run = EmbeddedRun(Path(directory))
        rules = Rules(urls_per_host=0)
        plugs = Plugs(rules, strategy("breadth_first"), Admission([]), HostPolicy(delay_seconds=0.0))
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


# ------------------------------------------------------------------------------------------------ the model


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
        end = self.manners.policy().next_at(report.visit.ended_at)
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
        parts = {state.name.lower(): states[state] for state in State}
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


# ------------------------------------------------------------------------------------------------ crawls for tests


class TestedCrawl(Protocol):
    """A frontier and the ends that a crawl can have. Made by a `Make`; a second one for a directory resumes it."""

    @property
    def frontier(self) -> Frontier:
        """What is tested."""

    def next(self, now: float, limit: int = 1) -> list[Lease] | Wait | Empty:
        """`frontier.next`, after all work in the background has been waited for."""

    def commit(self, now: float) -> None:
        """Flush, and wait for the acknowledgement."""

    def kill(self) -> None:
        """The process is gone; what was not acknowledged may be lost."""

    def close(self, now: float) -> None:
        """A clean end."""


Make = Callable[[Path, Manners, float], TestedCrawl]
Check = Callable[[Make, Path], None]


class EmbeddedCrawl:
    """The embedded frontier as a `TestedCrawl`."""

    ROUNDS = 100  # what is still on its way then waits for the disk

    def __init__(self, directory: Path, manners: Manners, now: float) -> None:
        self.run = EmbeddedRun(directory)
        rules = Rules(
            batch_pages=manners.batch_pages,
            pages_per_host_in_batch=manners.pages_per_host_in_batch,
            pages_per_host=manners.pages_per_host,
            depth=manners.depth,
            commit_pages=1_000_000,
        )
        plugs = Plugs(rules, strategy(manners.order), Admission([]), manners.policy(), sync="normal")
        try:
            self.run.start(plugs, now)
        except BaseException:
            self.run.abandon()
            raise
        self.frontier = self.run.frontier

    def next(self, now: float, limit: int = 1) -> list[Lease] | Wait | Empty:
        """First let all that is on its way arrive: what comes out then does not depend on threads."""
        self.frontier.next(now, 0)
        rounds = 0
        while self.frontier.is_selecting and rounds < self.ROUNDS:
            self.frontier.wait_for_selection()
            self.frontier.next(now, 0)
            rounds += 1
        return self.frontier.next(now, limit)

    def commit(self, now: float) -> None:
        """Flush, and wait for the writer."""
        is_safe = threading.Event()
        self.frontier.flush(now, is_safe.set)
        if not is_safe.wait(60):
            raise AssertionError(f"No acknowledgement: {self.run.writer.failure or 'the writer is stuck'}")

    def kill(self) -> None:
        """Drop what the writer has not begun, and let go of the files as the end of a process does."""
        self.run.writer.failure = StoreError("killed")
        self.run.writer.close()
        self.frontier.wait_for_selection()
        self.run.store.reader.close()
        self.run.store.writer.close()
        self.run.abandon()

    def close(self, now: float) -> None:
        """A clean end."""
        self.run.close("finished", now)


class ModelCrawl:
    """The model as a `TestedCrawl`; its copies live in a dictionary instead of directories."""

    _lives: ClassVar[dict[Path, ModelFrontier]] = {}

    def __init__(self, directory: Path, manners: Manners, now: float) -> None:
        last = self._lives.get(directory)
        self.frontier = ModelFrontier(manners) if last is None else last.reopened(now)
        self._lives[directory] = self.frontier

    def next(self, now: float, limit: int = 1) -> list[Lease] | Wait | Empty:
        """There is no background."""
        return self.frontier.next(now, limit)

    def commit(self, now: float) -> None:
        """There is no disk to wait for."""
        self.frontier.flush(now)

    def kill(self) -> None:
        """Nothing to let go of."""

    def close(self, now: float) -> None:
        """A clean end."""
        self.frontier.stop(now)


# ------------------------------------------------------------------------------------------------ the driver


class Answer(NamedTuple):
    """What a made-up web says to a visit."""

    links: Sequence[str] = ()
    seconds: float = 1.0
    event: Event = Event.STORE
    due_in_seconds: float = 0.0


class Fetch(NamedTuple):
    """One visit in a trace."""

    start: float
    end: float
    url: str
    host: int
    page: int


Web = Callable[[Lease], Answer]


def work(
    crawl: TestedCrawl, web: Web, now: float, at_once: int = 4, visits: int = 100_000, commit_seconds: float = math.inf
) -> tuple[list[Fetch], float]:
    """Crawl in virtual time until nothing is left or so many visits are over; the trace and the time of its end.

    Up to `at_once` visits are under way; a visit takes as long as its answer says.
    """
    trace: list[Fetch] = []
    under_way: list[tuple[float, int, Lease, Answer]] = []
    commit_at = now + commit_seconds
    while len(trace) < visits:
        if now >= commit_at:
            crawl.commit(now)
            commit_at = now + commit_seconds
        answer = crawl.next(now, at_once - len(under_way)) if len(under_way) < at_once else Wait(math.inf)
        if isinstance(answer, list):
            for lease in answer:
                said = web(lease)
                heappush(under_way, (now + said.seconds, lease.page, lease, said))
            continue
        if isinstance(answer, Empty):
            assert not under_way, "Empty although a page is under way"
            break
        assert answer.until > now, "Wait until the past"
        now = min(answer.until, under_way[0][0] if under_way else math.inf)
        assert now < math.inf, "Wait for a report although nothing is under way"
        while under_way and under_way[0][0] <= now:
            _, _, lease, said = heappop(under_way)
            trace.append(Fetch(lease.claimed_at, now, lease.url, lease.host, lease.page))
            _report(crawl.frontier, lease, said, now)
    return trace, now


def _report(frontier: Frontier, lease: Lease, said: Answer, now: float) -> None:
    due_at = now + said.due_in_seconds if said.due_in_seconds else 0.0
    reason = Reason.NONE if said.event in (Event.STORE, Event.RETURN) else Reason.HTTP_ERROR
    frontier.report(Report(lease, Visit(now, 200), said.event, reason, due_at, said.links), now)
    counts = frontier.counts()
    assert counts.adds_up(), f"The ledger does not add up: {counts.sentence()}"


def made_up_web(hosts: int, pages: int, out_links: int = 4, seed: int = 1) -> Web:
    """A web in which every link is a function of the URL it is on; half of a page's links stay on its host."""

    def web(lease: Lease) -> Answer:
        chance = random.Random(f"{seed} {lease.url}")
        home = host_of(lease.url)
        names = [home if chance.random() < 0.5 else f"h{chance.randrange(hosts)}.test" for _ in range(out_links)]
        links = [f"http://{name}/{chance.randrange(pages) or ''}" for name in names]
        return Answer(links, seconds=chance.choice((0.2, 1.0, 3.0)))

    return web


# ------------------------------------------------------------------------------------------------ the promises

START = 1_000_000.0
SEEDS = [Offer(f"http://h{number}.test/") for number in range(3)]


def check_frontier(make: Make, directory: Path) -> None:
    """Check every promise of `webcrawl.core.frontier` for the frontiers that `make` makes below `directory`.

    Raises AssertionError with the promise that was broken. Time is virtual; nothing sleeps.
    """
    for check in CHECKS:
        check(make, directory / check.__name__)


def check_politeness(make: Make, directory: Path) -> None:
    """Never two leases of a page, never more than `connections` of a host, never before its pause is over."""
    for connections, order in ((1, "breadth_first"), (1, "depth_first"), (3, "random")):
        manners = Manners(order, delay_seconds=10.0, connections=connections)
        crawl = make(directory / f"{order}-{connections}", manners, START)
        crawl.frontier.offer(SEEDS, START)
        trace, now = work(crawl, made_up_web(5, 12), START, at_once=6)
        check_trace(trace, manners)
        assert crawl.frontier.counts().stored == len(trace), "Every page is stored once, nothing else"
        crawl.close(now)


def check_trace(trace: Sequence[Fetch], manners: Manners) -> None:
    """The safety of a finished trace without re-visits."""
    assert len({fetch.page for fetch in trace}) == len(trace), "A page was leased twice"
    by_host: dict[int, list[Fetch]] = defaultdict(list)
    for fetch in sorted(trace):
        others = by_host[fetch.host]
        under_way = sum(1 for other in others if other.end > fetch.start)
        assert under_way < manners.connections, f"{fetch.url}: more than {manners.connections} connections"
        ends = [other.end for other in others if other.end <= fetch.start]
        if ends and not under_way:
            assert fetch.start >= max(ends) + manners.delay_seconds, f"{fetch.url}: asked too early"
        others.append(fetch)


def check_order(make: Make, directory: Path) -> None:
    """Highest score first within what politeness allows, ties by age; the model's order is the right one."""
    for order in ("breadth_first", "depth_first", "random"):
        manners = Manners(order, delay_seconds=2.0)
        traces = []
        makers: tuple[Make, ...] = (make, make, ModelCrawl)
        for number, maker in enumerate(makers):
            crawl = maker(directory / f"{order}-{number}", manners, START)
            crawl.frontier.offer(SEEDS, START)
            traces.append(work(crawl, made_up_web(6, 15, seed=3), START, at_once=3)[0])
            crawl.close(START + 10_000)
        assert traces[0] == traces[1], f"{order}: same offers, another order"
        assert traces[0] == traces[2], f"{order}: not the best first"


def check_known_once(make: Make, directory: Path) -> None:
    """A page is known once, however it is written."""
    crawl = make(directory, Manners(), START)
    offers = [Offer("http://h.test/?b=1&a=2"), Offer("http://h.test/?a=2&b=1"), Offer("http://h.test/?b=1&a=2")]
    assert crawl.frontier.offer(offers, START) == [1, 0, 0]
    assert crawl.frontier.counts().known == 1
    crawl.close(START)


def check_fencing(make: Make, directory: Path) -> None:
    """A second report of a lease is refused, and so is one of an earlier visit."""
    crawl = make(directory, Manners(delay_seconds=1.0), START)
    crawl.frontier.offer(SEEDS[:1], START)
    first = _leases(crawl.next(START))[0]
    _report(crawl.frontier, first, Answer(event=Event.RETURN), START)
    second = _leases(crawl.next(START + 1))[0]
    for stale in (first, second._replace(visit=9)):
        try:
            _report(crawl.frontier, stale, Answer(), START + 1)
        except Exception:  # noqa: BLE001, S110 - any error is a refusal
            pass
        else:
            raise AssertionError("A report of a lost lease was accepted")
    _report(crawl.frontier, second, Answer(), START + 1)
    assert crawl.frontier.counts().stored == 1
    crawl.close(START + 2)


def check_retries(make: Make, directory: Path) -> None:
    """A failed page rests until it is due, then comes back and counts its failures."""
    crawl = make(directory, Manners(delay_seconds=1.0), START)
    crawl.frontier.offer(SEEDS[:1], START)
    seen = []

    def web(lease: Lease) -> Answer:
        seen.append((lease.visit, lease.failures, lease.claimed_at))
        return Answer(event=Event.FAIL, due_in_seconds=60.0) if lease.visit < 2 else Answer()

    _, now = work(crawl, web, START)
    assert [entry[:2] for entry in seen] == [(0, 0), (1, 1), (2, 2)], seen
    gaps = [late[2] - early[2] for early, late in pairwise(seen)]
    assert all(gap >= 61.0 for gap in gaps), f"Asked before it was due: {gaps}"
    assert crawl.frontier.counts().stored == 1
    crawl.close(now)


def check_waiting(make: Make, directory: Path) -> None:
    """`Empty` only when nothing is left and nothing is under way."""
    crawl = make(directory, Manners(), START)
    assert isinstance(crawl.next(START), Empty)
    crawl.frontier.offer(SEEDS[:1], START)
    lease = _leases(crawl.next(START))[0]
    assert isinstance(crawl.next(START), Wait), "A page is under way"
    _report(crawl.frontier, lease, Answer([lease.url + "a"]), START + 1)
    answer = crawl.next(START + 1)
    assert isinstance(answer, Wait) and answer.until == START + 11, f"{answer} is not the end of the pause"
    lease = _leases(crawl.next(START + 11))[0]
    _report(crawl.frontier, lease, Answer(event=Event.GIVE_UP), START + 12)
    assert isinstance(crawl.next(START + 12), Empty)
    crawl.close(START + 12)


def check_kill(make: Make, directory: Path) -> None:
    """What was acknowledged survives, what was not is owed, hosts that were asked rest, nothing is lost."""
    manners, web = Manners(delay_seconds=10.0), made_up_web(4, 10, seed=5)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS, START)
    crawl.commit(START)
    settled, now = work(crawl, web, START, visits=5)
    crawl.commit(now)
    lost, now = work(crawl, web, now, visits=4)
    crawl.next(now + 10, 2)
    crawl.kill()
    now += 10.5
    crawl = make(directory, manners, now)
    counts = crawl.frontier.counts()
    assert counts.stored == 5 and counts.leased == 0 and counts.adds_up(), counts.sentence()
    rest, now = work(crawl, web, now)
    assert not {fetch.url for fetch in settled} & {fetch.url for fetch in rest}, "An acknowledged page was asked again"
    assert {fetch.url for fetch in lost} <= {fetch.url for fetch in rest}, "A page that was not acknowledged is lost"
    check_trace([*settled, *rest], manners)
    asked_last = {host_of(fetch.url): fetch.end for fetch in lost}
    for fetch in rest:
        gap = fetch.start - asked_last.pop(host_of(fetch.url), -math.inf)
        assert gap >= manners.delay_seconds, f"{fetch.url}: asked {gap} s after the last process did"
    assert crawl.frontier.counts().stored == crawl.frontier.counts().known
    crawl.close(now)


def check_crash_loop(make: Make, directory: Path) -> None:
    """A host that was asked keeps its pause through any number of kills, also one that is not on disk yet."""
    manners = Manners(delay_seconds=10.0)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS[:1], START)
    crawl.commit(START)
    for lease in _leases(crawl.next(START)):
        _report(crawl.frontier, lease, Answer(["http://new.test/"]), START + 1)
    assert [lease.url for lease in _leases(crawl.next(START + 1))] == ["http://new.test/"]
    for second in (2, 3, 4):
        crawl.kill()
        crawl = make(directory, manners, START + second)
    trace, now = work(crawl, lambda lease: Answer(["http://new.test/"]), START + 4)
    starts = {fetch.url: fetch.start for fetch in trace}
    assert starts["http://h0.test/"] >= START + 11, (
        f"The first host was asked again after {starts['http://h0.test/'] - START} s"
    )
    assert starts["http://new.test/"] >= START + 11, "A host that was new when the process died was asked too early"
    crawl.close(now)


def check_clean_end(make: Make, directory: Path) -> None:
    """After a clean end everything goes on where it was, also the pauses of hosts that were being asked."""
    manners, web = Manners("depth_first", delay_seconds=10.0), made_up_web(4, 10, seed=7)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS, START)
    trace, now = work(crawl, web, START, visits=6)
    before = crawl.frontier.counts()
    crawl.close(now)
    crawl = make(directory, manners, now)
    counts = crawl.frontier.counts()
    assert (counts.known, counts.stored, counts.leased) == (before.known, before.stored, 0)
    assert counts.ready == before.ready + before.leased
    rest, now = work(crawl, web, now)
    check_trace([*trace, *rest], manners)
    assert crawl.frontier.counts().stored == crawl.frontier.counts().known == len(trace) + len(rest)
    crawl.close(now)


def check_clock_set_back(make: Make, directory: Path) -> None:
    """If the clock is set back between two runs, a host waits at most its own pause."""
    manners = Manners(delay_seconds=10.0)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS[:1], START)
    _, now = work(crawl, lambda lease: Answer(["http://h0.test/a"]), START, visits=1)
    crawl.close(now)
    crawl = make(directory, manners, START - 100_000)
    trace, now = work(crawl, lambda lease: Answer(), START - 100_000)
    assert [fetch.start for fetch in trace] == [START - 99_990], f"{trace}"
    crawl.close(now)


def check_depth(make: Make, directory: Path) -> None:
    """With a depth limit the set of stored pages does not depend on the order; shorter ways count."""

    def web(lease: Lease) -> Answer:
        number = int(lease.url.rpartition("/")[2] or 0)
        links = [f"http://{host_of(lease.url)}/{number + step}" for step in ((1, 3, 9)[: 1 + number % 3])]
        return Answer([*links, f"http://h{number % 3}.test/{number * 7 % 60 or ''}"], seconds=1.0 + number % 5)

    stored = {}
    for order in ("breadth_first", "depth_first", "random"):
        crawl = make(directory / order, Manners(order, delay_seconds=0.0, depth=6), START)
        crawl.frontier.offer(SEEDS, START)
        trace, now = work(crawl, web, START, at_once=3, commit_seconds=10.0)
        check_trace(trace, Manners(delay_seconds=0.0))
        counts = crawl.frontier.counts()
        assert counts.reasons.get(Reason.TOO_DEEP, 0) == counts.refused > 0, f"Nothing was too deep: {counts.reasons}"
        assert counts.known == counts.stored + counts.refused, counts.sentence()
        stored[order] = {fetch.url for fetch in trace}
        crawl.close(now)
    sizes = {order: len(pages) for order, pages in stored.items()}
    assert all(pages == stored["breadth_first"] for pages in stored.values()), f"Another order, another set: {sizes}"


def check_shorter_way(make: Make, directory: Path) -> None:
    """A shorter way to a page that is under way or settled changes its depth, and nothing else about it."""
    manners = Manners(delay_seconds=0.0, depth=5)
    crawl = make(directory, manners, START)
    under_way, settled = Offer("http://h.test/u", depth=3), Offer("http://h.test/s", depth=2)
    crawl.frontier.offer([settled, under_way], START)
    lease = _leases(crawl.next(START))[0]
    crawl.frontier.offer([settled._replace(depth=1)], START)
    _report(crawl.frontier, lease, Answer(), START)
    assert _leases(crawl.next(START))[0].url == under_way.url
    crawl.frontier.offer([under_way._replace(depth=1)], START)
    crawl.commit(START)
    crawl.kill()
    crawl = make(directory, manners, START)
    counts = crawl.frontier.counts()
    assert (counts.stored, counts.ready) == (1, 1), f"A page is lost or owed twice: {counts.sentence()}"
    crawl.frontier.offer([settled._replace(depth=0)], START)  # it has no links to be looked at again
    trace, now = work(crawl, lambda lease: Answer(), START, commit_seconds=1.0)
    assert [fetch.url for fetch in trace] == [under_way.url]
    crawl.frontier.offer([under_way._replace(depth=0)], now)
    crawl.close(now)


def check_host_limit(make: Make, directory: Path) -> None:
    """So many pages of a host are stored, the others are refused with that reason; kills in between change nothing."""
    manners = Manners(delay_seconds=0.0, pages_per_host=3)
    crawl = make(directory, manners, START)
    crawl.frontier.offer([Offer(f"http://h{number % 2}.test/{number}") for number in range(20)], START)
    crawl.commit(START)
    _leases(crawl.next(START, 2))
    crawl.kill()
    crawl = make(directory, manners, START)
    trace, now = work(crawl, lambda lease: Answer(), START, at_once=2, commit_seconds=1.0)
    counts = crawl.frontier.counts()
    assert len(trace) == counts.stored == 6, counts.sentence()
    assert counts.refused == counts.reasons[Reason.HOST_LIMIT] == 14, counts.reasons
    crawl.close(now)


def check_fairness(make: Make, directory: Path) -> None:
    """A page that falls due is asked for at once, however many pages of other hosts wait."""
    crawl = make(directory, Manners(delay_seconds=10.0, pages_per_host_in_batch=20), START)
    crawl.frontier.offer([Offer(f"http://large.test/{number}") for number in range(60)], START)
    crawl.frontier.offer([Offer("http://small.test/")], START)
    crawl.commit(START)
    asked = []

    def web(lease: Lease) -> Answer:
        if "small" in lease.url:
            asked.append(lease.claimed_at - START)
        return Answer(event=Event.FAIL, due_in_seconds=15.0) if "small" in lease.url and lease.visit < 4 else Answer()

    _, now = work(crawl, web, START, commit_seconds=1.0)
    assert asked == [0.0, 16.0, 32.0, 48.0, 64.0], f"A page that was due had to wait: {asked}"
    crawl.close(now)


def check_small_batches(make: Make, directory: Path) -> None:
    """However small the batch, everything is fetched, once, and politely."""
    for order in ("breadth_first", "depth_first", "random"):
        manners = Manners(order, delay_seconds=1.0, batch_pages=12, pages_per_host_in_batch=3)
        crawl = make(directory / order, manners, START)
        crawl.frontier.offer(SEEDS, START)
        trace, now = work(crawl, made_up_web(6, 30, seed=2), START, commit_seconds=5.0)
        check_trace(trace, manners)
        counts = crawl.frontier.counts()
        assert counts.stored == counts.known == len(trace) > 100, counts.sentence()
        crawl.close(now)


def _leases(answer: list[Lease] | Wait | Empty) -> list[Lease]:
    assert isinstance(answer, list), f"A lease was expected, not {answer}"
    return answer


CHECKS: tuple[Check, ...] = (
    check_politeness,
    check_order,
    check_known_once,
    check_fencing,
    check_retries,
    check_waiting,
    check_kill,
    check_crash_loop,
    check_clean_end,
    check_clock_set_back,
    check_depth,
    check_shorter_way,
    check_host_limit,
    check_fairness,
    check_small_batches,
)
