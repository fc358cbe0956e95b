"""A frontier with all its manners on, worked in virtual time against a scripted web."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

from webcrawl.backends.embedded import EmbeddedRun, Plugs, RobotsPolicy, Rules, Wishes
from webcrawl.core.backoff import NO_WORD, BackoffPolicy
from webcrawl.core.errors import StoreError
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import ROBOTS_KIND, Empty, Lease, Offer, Report, RobotsAnswer, Visit, Wait
from webcrawl.core.lifecycle import Event
from webcrawl.core.names import Addresses, NoAddresses
from webcrawl.core.outcomes import after_failure, after_status
from webcrawl.core.politeness import HostPolicy, Hours, RetryPolicy
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import strategy
from webcrawl.core.turns import Sharing

START = 1_700_000_000.0
DAY = 86_400.0


class Said(NamedTuple):
    """What the web says to a request; status 0: nothing at all."""

    status: int = 200
    body: bytes = b""
    links: Sequence[str] = ()
    location: str = ""
    retry_after: float = NO_WORD
    cache_control: str = ""
    seconds: float = 1.0
    reason: Reason = Reason.UNREACHABLE


class Asked(NamedTuple):
    """One request."""

    url: str
    start: float
    end: float
    status: int


Web = Callable[[str, float], Said]


class PoliteCrawl:
    """One process that works on a run; make another one to go on after `kill` or `close`."""

    def __init__(
        self,
        directory: Path,
        now: float = START,
        *,
        policy: HostPolicy | None = None,
        backoff: BackoffPolicy | None = None,
        quiet: tuple[Hours, ...] = (),
        own: Sequence[str] = (),
        may_go: Callable[[str], bool] = lambda url: True,
        pages_per_visit: dict[str, int] | None = None,
        sharing: Sharing | None = None,
        addresses: Addresses | None = None,
        wishes: Wishes | None = None,
    ) -> None:
        self.run = EmbeddedRun(directory)
        self.now = now
        self.asked: list[Asked] = []
        self.retry = RetryPolicy(2, 60.0)
        self.run.start(
            Plugs(
                Rules(commit_pages=1_000_000),
                strategy("breadth_first"),
                Admission([]),
                policy or HostPolicy(10.0),
                sync="normal",
                own=HostPolicy(0.0, 4),
                is_own=lambda name: name in own,
                backoff=backoff or BackoffPolicy(jitter=0.0),
                robots=RobotsPolicy("webcrawl", may_go=may_go),
                pages_per_visit=pages_per_visit or {},
                quiet=quiet,
                sharing=sharing or Sharing(),
                addresses=addresses or NoAddresses(),
                wishes=wishes or Wishes(),
            ),
            now,
        )
        self.frontier = self.run.frontier

    def offer(self, *urls: str) -> None:
        """Seeds."""
        self.frontier.offer([Offer(url) for url in urls], self.now)

    def work(self, web: Web, until: float = math.inf, visits: int = 100_000, at_once: int = 100) -> list[Asked]:
        """Crawl until nothing is left, so many visits are over, or it would be later than `until`."""
        begun = len(self.asked)
        under_way: list[tuple[float, int, Lease, Said]] = []
        while len(self.asked) - begun < visits:
            answer = self._next(at_once - len(under_way)) if len(under_way) < at_once else Wait(math.inf)
            if isinstance(answer, list):
                for lease in answer:
                    said = web(lease.url, self.now)
                    heappush(under_way, (self.now + said.seconds, lease.page, lease, said))
                continue
            if isinstance(answer, Empty):
                break
            later = min(answer.until, under_way[0][0] if under_way else math.inf)
            assert later < math.inf, "waits for a report although nothing is under way"
            if later > until:
                self.now = until
                break
            self.now = max(later, self.now)
            while under_way and under_way[0][0] <= self.now:
                _, _, lease, said = heappop(under_way)
                self._report(lease, said)
        return self.asked[begun:]

    def _next(self, limit: int) -> list[Lease] | Wait | Empty:
        for _ in range(100):
            answer = self.frontier.next(self.now, limit)
            if isinstance(answer, list | Empty) or (answer.until > self.now + 0.06 and not self.frontier.is_selecting):
                return answer
            self.commit()
            self.frontier.wait_for_selection()
        return answer

    def _report(self, lease: Lease, said: Said) -> None:
        self.asked.append(Asked(lease.url, lease.claimed_at, self.now, said.status))
        visit = Visit(self.now, said.status, total_seconds=said.seconds, retry_after=said.retry_after)
        robots = None
        if lease.kind == ROBOTS_KIND:
            robots = RobotsAnswer(said.status, said.body, said.cache_control, said.location)
            report = Report(lease, visit, Event.STORE, Reason.NONE if said.status else said.reason, robots=robots)
        else:
            trouble = self.frontier.trouble_of(lease.host)
            outcome = (
                after_status(said.status, lease.failures, self.now, self.retry, trouble, said.retry_after)
                if said.status
                else after_failure(said.reason, lease.failures, self.now, self.retry, trouble)
            )
            report = Report(
                lease, visit, outcome.event, outcome.reason, outcome.due_at, said.links, counts=outcome.counts
            )
        self.frontier.report(report, self.now)
        counts = self.frontier.counts()
        assert counts.adds_up(), counts.sentence()

    def commit(self) -> None:
        """Everything so far is on disk."""
        safe = threading.Event()
        self.frontier.flush(self.now, safe.set)
        assert safe.wait(60), self.run.writer.failure

    def kill(self) -> None:
        """The process is gone; what was not committed is lost."""
        self.run.writer.failure = StoreError("killed")
        self.run.writer.close()
        self.frontier.wait_for_selection()
        self.run.store.reader.close()
        self.run.store.writer.close()
        self.run.abandon()

    def close(self) -> None:
        """A clean end."""
        self.run.close("finished", self.now)


def urls(asked: Sequence[Asked]) -> list[str]:
    """What was asked for, in order."""
    return [one.url for one in asked]


def site(files: dict[str, Said]) -> Web:
    """A web that says what is listed, and 404 to everything else."""
    return lambda url, now: files.get(url, Said(404))
