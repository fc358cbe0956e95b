"""Crawls for tests: a frontier, the ends that it can meet, and a driver that works it in virtual time."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from webcrawl.backends.embedded import EmbeddedRun, Plugs, Rules
from webcrawl.core.errors import StoreError
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import Empty, Frontier, Lease, Report, Visit, Wait
from webcrawl.core.lifecycle import Event
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import strategy
from webcrawl.core.urls import host_of
from webcrawl.testing.model import Manners, ModelFrontier


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
            report(crawl.frontier, lease, said, now)
    return trace, now


def report(frontier: Frontier, lease: Lease, said: Answer, now: float) -> None:
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
