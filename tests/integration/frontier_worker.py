"""A crawl without Scrapy and network for `test_frontier_kill`: works through a web that is a function of the URL.

Time is virtual. Every visit is a line "START HOST URL" in visits.log, written before the page is fetched. After every
report a byte goes into a pipe, so that whoever reads it can kill this process at any point of its work; another pipe
says how far it may go, so that it is never at its end before the kill arrives. A settled page leaves one line in
pages.jsonl; a failure of the disk leaves its sentence in failure.txt and the exit status 3.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from webcrawl.backends.embedded import EmbeddedRun, Plugs, Rules
from webcrawl.backends.embedded.writer import FeedFile
from webcrawl.core.errors import StoreError
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import Empty, Lease, Offer, Report, Visit
from webcrawl.core.lifecycle import Event
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.strategies import strategy
from webcrawl.core.urls import host_of

HOSTS, PAGES = 12, 40
AT_ONCE = 4
SEED = "http://h0.test/"


def links_of(url: str) -> list[str]:
    """A chain on every host with short cuts, and a link to another host from each page."""
    number = int(url.rpartition("/")[2] or 0)
    host = int(host_of(url)[1:-5])
    here = [f"http://h{host}.test/{(number + step) % PAGES or ''}" for step in (1, 5, 13)[: 1 + number % 3]]
    return [*here, f"http://h{(host + number) % HOSTS}.test/{number % 3 or ''}"]


def reachable(depth: int = 0) -> set[str]:
    """What the seed leads to, by the rules of depth: a breadth-first search over minimal depths."""
    depths = {SEED: 0}
    waiting = [SEED]
    while waiting:
        url = waiting.pop()
        for link in links_of(url):
            found = 0 if link.count("/") == 3 and link.endswith("/") else 1
            if found and host_of(link) == host_of(url):
                found = depths[url] + 1
            if found < depths.get(link, 1 << 30) and (not depth or found <= depth):
                depths[link] = found
                waiting.append(link)
    return set(depths)


@dataclass(frozen=True)
class Options:
    """What a process is told."""

    order: str = "breadth_first"
    depth: int = 0
    delay_seconds: float = 2.0
    poison: str = ""  # this page kills the process
    disk_full_after: int = 0  # so many writes to the feed


class Worker:
    """The loop of a crawl: ask, fetch, report."""

    def __init__(
        self, directory: Path, now: float, options: Options, progress: Connection, permits: Connection | None
    ) -> None:
        self.now = now
        self.poison = options.poison
        self.progress = progress
        self.permits = permits
        self.failure: StoreError | None = None
        self.run = EmbeddedRun(directory / "run")
        rules = Rules(depth=options.depth, commit_pages=7, batch_pages=60, pages_per_host_in_batch=6)
        policy = HostPolicy(options.delay_seconds)
        plugs = Plugs(rules, strategy(options.order), Admission([]), policy, "normal", on_failure=self.fail)
        self.run.start(plugs, self.now)
        feed = directory / "pages.jsonl"
        self.feed = self.run.feed(feed.as_uri(), feed, "jsonlines", overwrite=False)
        self.visits = os.open(directory / "visits.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.frontier = self.run.frontier
        self.frontier.offer([Offer(SEED)], self.now)

    def fail(self, error: StoreError) -> None:
        self.failure = error

    def work(self) -> None:
        under_way: list[Lease] = []
        turns = 0
        while self.failure is None:
            turns += 1
            self.now += 0.01
            answer = self.frontier.next(self.now, AT_ONCE - len(under_way))
            if isinstance(answer, list):
                under_way += answer
                self.note(answer)
            elif isinstance(answer, Empty):
                break
            elif not under_way:
                self.frontier.flush(self.now)
                self.frontier.wait_for_selection()
                self.now = max(self.now, answer.until)
            if under_way:
                self.fetch(under_way.pop(turns % len(under_way)))
        self.run.close("finished", self.now)

    def note(self, leases: Sequence[Lease]) -> None:
        lines = "".join(f"{self.now!r} {host_of(lease.url)} {lease.url}\n" for lease in leases)
        os.write(self.visits, lines.encode())

    def fetch(self, lease: Lease) -> None:
        if lease.url == self.poison:
            os.kill(os.getpid(), signal.SIGKILL)
        self.now += 0.05
        line = json.dumps({"url": lease.url, "depth": lease.depth, "padding": "x" * (lease.page % 97)}) + "\n"
        report = Report(lease, Visit(self.now, 200, content_hash=(1 << 64) - lease.page), Event.STORE)
        report.links = links_of(lease.url)
        report.outputs = [(self.feed.number, line.encode())]
        self.frontier.report(report, self.now)
        os.write(self.progress.fileno(), b".")
        if self.permits is not None and not os.read(self.permits.fileno(), 1):
            sys.exit("nobody is there to kill this process")


def fill_disk_after(count: int) -> None:
    """From the `count`-th write to a feed on, half of it is written and then the disk is full."""
    writes = 0

    def append(feed: FeedFile, data: bytes) -> None:
        nonlocal writes
        writes += 1
        os.write(feed._file, data if writes < count else data[: len(data) // 2])
        if writes >= count:
            raise OSError(errno.ENOSPC, "No space left on device")

    FeedFile.append = append  # type: ignore[method-assign, assignment]


def main(
    directory: Path, now: float, options: Options, progress: Connection, permits: Connection | None = None
) -> None:
    """One life of the crawl."""
    if options.disk_full_after:
        fill_disk_after(options.disk_full_after)
    worker = Worker(directory, now, options, progress, permits)
    worker.work()
    if worker.failure is not None:
        (directory / "failure.txt").write_text(str(worker.failure))
        sys.exit(3)
