"""FrontierScheduler's decisions that no crawl on a healthy machine shows."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.exceptions import CloseSpider

from webcrawl.core.config import Limits, Run
from webcrawl.core.frontier import Empty, Lease, Wait
from webcrawl.scheduler import FrontierScheduler


class Frontier:
    """Answers as told."""

    def __init__(self, answer: list[Lease] | Wait | Empty) -> None:
        self.answer = answer
        self.asked = 0
        self.is_behind = False
        self.under_way = 0
        self.stored = 0
        self.body_bytes = 0
        self.is_busy = False
        self.has_unwritten_rows = False
        self.instant = math.inf
        self.reports: list[Any] = []

    def next(self, now: float) -> list[Lease] | Wait | Empty:
        self.asked += 1
        return self.answer

    def next_instant(self, now: float) -> float:
        return self.instant

    def report(self, report: Any, now: float) -> None:
        self.reports.append(report)
        self.answer = Empty()


def scheduler(frontier: Frontier, loop: asyncio.AbstractEventLoop) -> FrontierScheduler:
    choices: Any = SimpleNamespace(run=Run(), limits=Limits(min_free_disk_bytes=0))
    crawler: Any = SimpleNamespace(stats=None, signals=None)
    made = FrontierScheduler(crawler, choices)
    made._frontier = frontier  # type: ignore[assignment]
    made._loop = loop
    made._disk_checked_at = math.inf
    made._spider = SimpleNamespace()  # type: ignore[assignment]
    return made


def test_a_disk_that_is_behind_holds_requests_back_but_not_the_end_up() -> None:
    async def crawl() -> None:
        frontier = Frontier(Empty())
        made = scheduler(frontier, asyncio.get_running_loop())
        frontier.is_behind = True
        assert made.next_request() is None
        assert frontier.asked == 0
        assert made._timer is not None, "nobody else would ask again before the heartbeat"
        assert made.has_pending_requests()
        frontier.is_behind = False
        assert not made.has_pending_requests()
        made._timer.cancel()

    asyncio.run(crawl())


def test_there_is_one_timer_for_the_earliest_moment() -> None:
    async def crawl() -> None:
        frontier = Frontier(Wait(0.0))
        made = scheduler(frontier, asyncio.get_running_loop())
        now = made.clock.now()
        for until, expected in ((now + 60, now + 60), (now + 90, now + 60), (now + 30, now + 30), (math.inf, now + 30)):
            frontier.answer = Wait(until)
            assert made.next_request() is None
            assert made._timer_at == expected
        assert made._timer is not None
        made._timer.cancel()

    asyncio.run(crawl())


def test_the_end_says_why() -> None:
    async def crawl() -> None:
        frontier = Frontier(Empty())
        made = scheduler(frontier, asyncio.get_running_loop())
        made._spider_idle()
        frontier.instant = made.clock.now() + 10_000
        with pytest.raises(CloseSpider) as waiting:
            made._spider_idle()
        assert waiting.value.reason == "waiting"
        made._stop_reason = "page_limit"
        with pytest.raises(CloseSpider) as limit:
            made._spider_idle()
        assert limit.value.reason == "page_limit"

    asyncio.run(crawl())


def test_a_stored_request_that_cannot_be_read_is_reported_and_the_next_one_is_asked_for() -> None:
    async def crawl() -> None:
        lease = Lease(1, 1, "http://one.test/", 0, 0, 0.0, 0, 0, 0.0, b"{broken")
        frontier = Frontier([lease])
        made = scheduler(frontier, asyncio.get_running_loop())
        assert made.next_request() is None
        assert [report.reason.name for report in frontier.reports] == ["SPIDER_ERROR"]
        assert made._commit_timer is not None
        made._commit_timer.cancel()

    asyncio.run(crawl())
