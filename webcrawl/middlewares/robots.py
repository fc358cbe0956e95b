"""RobotsMiddleware: robots.txt and pauses for requests that never pass the scheduler.

Pages come from the frontier, which has asked before it handed them out. Images of a media pipeline and what a spider
fetches with `engine.download_async` come from elsewhere: here they wait for a turn of their host, which may mean that
its robots.txt is fetched first. What robots.txt forbids is ignored as by Scrapy's own middleware (IgnoreRequest).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from webcrawl.core.frontier import ROBOTS_KIND, Lease, Report, RobotsAnswer, Visit, Wait
from webcrawl.core.lifecycle import Event
from webcrawl.core.reasons import Reason
from webcrawl.middlewares.outcome import reason_of, robots_answer, visit_of
from webcrawl.scheduler import ROBOTS_META, FrontierScheduler
from webcrawl.settlement import current

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

LONGEST_WAIT_SECONDS = 600.0  # who waits here keeps a page unsettled and a place in the downloader
LONGEST_NAP_SECONDS = 5.0  # a host may become free before it was thought to
TURN = "webcrawl_turn"
IS_ROBOTS = "webcrawl_robots"


class RobotsMiddleware:
    """Downloader middleware; see the module."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The scheduler has what is needed, once it is open."""
        return cls(crawler)

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @property
    def _scheduler(self) -> FrontierScheduler:
        engine = self._crawler.engine
        assert engine is not None
        scheduler = engine.scheduler
        assert isinstance(scheduler, FrontierScheduler)
        return scheduler

    async def process_request(self, request: Request) -> None:
        """Wait for a turn of the host, unless the request is a page of the frontier."""
        settlement = current()
        if settlement is not None and settlement.request is request:
            return
        if request.meta.get(IS_ROBOTS) or not request.url.startswith(("http:", "https:")):
            return
        while True:
            scheduler = self._scheduler
            now = scheduler.clock.now()
            answer = scheduler.crawl.frontier.ask_beside(request.url, now)
            if isinstance(answer, Reason):
                raise IgnoreRequest(f"{request.url} is not asked for: {answer.sentence}")
            if isinstance(answer, Wait):
                seconds = answer.until - now
                if seconds > LONGEST_WAIT_SECONDS:
                    raise IgnoreRequest(f"{request.url} is not asked for: its host rests for {seconds:.0f} s")
                await asyncio.sleep(min(max(seconds, 0.01), LONGEST_NAP_SECONDS))
            elif answer.kind == ROBOTS_KIND:
                await self._fetch_robots(answer)
            else:
                request.meta[TURN] = answer
                return

    def process_response(self, request: Request, response: Response) -> Response:
        """The turn is over. For a page, what the host said is kept: a middleware may hide it from the others."""
        settlement = current()
        if TURN in request.meta:
            self._end(request, visit_of(request, self._scheduler.clock.now(), response), Reason.NONE)
        elif settlement is not None and settlement.request is request:
            settlement.answered = visit_of(request, self._scheduler.clock.now(), response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """The turn is over, without an answer."""
        if TURN in request.meta:
            self._end(request, visit_of(request, self._scheduler.clock.now()), reason_of(exception))

    def _end(self, request: Request, visit: Visit, reason: Reason) -> None:
        lease: Lease = request.meta.pop(TURN)
        scheduler = self._scheduler
        scheduler.crawl.frontier.end_beside(lease, visit, reason, scheduler.clock.now())
        scheduler.wake()

    async def _fetch_robots(self, lease: Lease) -> None:
        """Fetch a robots.txt that stands before a request from elsewhere, and report it."""
        assert self._crawler.engine is not None
        request = Request(lease.url, meta={**ROBOTS_META, IS_ROBOTS: True}, dont_filter=True)
        reason, answer, response = Reason.NONE, RobotsAnswer(), None
        try:
            response = await self._crawler.engine.download_async(request)
            answer = robots_answer(response)
        except Exception as error:  # noqa: BLE001 - whatever it is, the file could not be had
            reason = reason_of(error)
        scheduler = self._scheduler
        now = scheduler.clock.now()
        visit = visit_of(request, now, response)
        scheduler.crawl.frontier.report(Report(lease, visit, Event.STORE, reason, robots=answer), now)
        scheduler.wake()
