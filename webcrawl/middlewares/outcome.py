"""OutcomeMiddleware: notes how every visit ended, and puts pages to rest that should be tried again later.

It stands nearest to the engine, so it sees what all other downloader middlewares made of an answer or an error. A visit
that should be repeated is answered with the request itself: Scrapy hands it to the scheduler, which knows it, and
neither callback nor errback is called. They see the last outcome only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)

from webcrawl.core.backoff import retry_after_seconds
from webcrawl.core.frontier import ROBOTS_KIND, RobotsAnswer, Visit
from webcrawl.core.lifecycle import Event
from webcrawl.core.outcomes import after_failure, after_status
from webcrawl.core.politeness import RetryPolicy
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import resolve
from webcrawl.handlers.http import AddressRefused
from webcrawl.settlement import current

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from webcrawl.scheduler import FrontierScheduler

# The first that fits; what is not here is a broken answer.
REASONS: tuple[tuple[type[BaseException], Reason], ...] = (
    (AddressRefused, Reason.ADDRESS_REFUSED),
    (IgnoreRequest, Reason.IGNORED),
    (CannotResolveHostError, Reason.NO_SUCH_HOST),
    (DownloadTimeoutError, Reason.TIMEOUT),
    (DownloadCancelledError, Reason.TOO_LARGE),
    (ResponseDataLossError, Reason.BROKEN_ANSWER),
    (DownloadConnectionRefusedError, Reason.UNREACHABLE),
    (DownloadFailedError, Reason.UNREACHABLE),
    (OSError, Reason.UNREACHABLE),
)


class OutcomeMiddleware:
    """Downloader middleware; see the module."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The scheduler has what is needed, once it is open."""
        return cls(crawler)

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._known_scheduler: FrontierScheduler | None = None

    @property
    def _scheduler(self) -> FrontierScheduler:
        if self._known_scheduler is None:
            engine = self._crawler.engine
            assert engine is not None
            self._known_scheduler = engine.scheduler  # type: ignore[assignment]
            assert self._known_scheduler is not None
        return self._known_scheduler

    def process_request(self, request: Request) -> None:
        """Requests that never passed the scheduler (media, `engine.download_async`) keep to the allowed hosts too."""
        settlement = current()
        if settlement is None or settlement.request is not request:
            refusal = self._scheduler.crawl.peers.refuse_url(request.url)
            if refusal is not None:
                raise IgnoreRequest(f"{request.url} is not asked for: {refusal.sentence}")

    def process_response(self, request: Request, response: Response) -> Response | Request:
        """Note status and sizes; an answer that may be different later is not shown to the spider."""
        settlement = current()
        if settlement is None or settlement.request is not request:
            return response
        scheduler = self._scheduler
        visit = settlement.visit = visit_of(request, scheduler.clock.now(), response)
        scheduler.crawl.frontier.note_answer_ended(settlement.lease, visit.ended_at)
        visit.body_bytes = len(response.body)
        content_type = response.headers.get(b"Content-Type") or b""
        visit.mime = content_type.partition(b";")[0].strip().lower().decode("latin-1")
        lease = settlement.lease
        if lease.kind == ROBOTS_KIND:
            settlement.robots = robots_answer(response)
            return request
        retry, trouble = _retry_policy(request, scheduler.crawl.retry), scheduler.crawl.frontier.trouble_of(lease.host)
        settlement.outcome = after_status(
            response.status, lease.failures, visit.ended_at, retry, trouble, visit.retry_after
        )
        return request if settlement.outcome.event is Event.FAIL else response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Note why there is no answer; a failure that may pass is not shown to the spider."""
        settlement = current()
        if settlement is None or settlement.request is not request:
            return None
        scheduler = self._scheduler
        visit = settlement.visit = visit_of(request, scheduler.clock.now())
        reason = reason_of(exception)
        lease = settlement.lease
        retry, trouble = _retry_policy(request, scheduler.crawl.retry), scheduler.crawl.frontier.trouble_of(lease.host)
        outcome = after_failure(reason, lease.failures, visit.ended_at, retry, trouble)
        settlement.outcome = outcome
        scheduler.crawler.stats.inc_value(f"webcrawl/failures/{reason.key}")
        if lease.kind == ROBOTS_KIND:
            settlement.robots = RobotsAnswer()
            return request
        return request if outcome.event is Event.FAIL else None


def visit_of(request: Request, now: float, response: Response | None = None) -> Visit:
    """How long a request that has just ended took, and what the host said about coming back."""
    times = request.meta.get("webcrawl_times")
    if times is None:
        latency = request.meta.get("download_latency", 0.0)
        visit = Visit(now, latency_seconds=latency, total_seconds=latency)
    else:
        _, first_byte, total = times
        visit = Visit(now, latency_seconds=first_byte, total_seconds=total)
    if response is not None:
        visit.status = response.status
        if said := response.headers.get(b"Retry-After"):
            visit.retry_after = retry_after_seconds(said.decode("latin-1"), now)
    return visit


def reason_of(exception: Exception) -> Reason:
    """Why there is no answer."""
    return next((reason for kind, reason in REASONS if isinstance(exception, kind)), Reason.BROKEN_ANSWER)


def robots_answer(response: Response) -> RobotsAnswer:
    """What a robots.txt says to the frontier."""
    location = (response.headers.get(b"Location") or b"").decode("utf-8", "replace")
    said = b",".join(response.headers.getlist(b"Cache-Control"))
    target = resolve(response.url, [location])[0] if location else None
    return RobotsAnswer(response.status, response.body, said.decode("latin-1"), target or "")


def _retry_policy(request: Request, retry: RetryPolicy) -> RetryPolicy:
    """What the request itself says about retries, in the words of Scrapy's RetryMiddleware, goes first."""
    if request.meta.get("dont_retry"):
        return RetryPolicy(0, 0.0)
    times = request.meta.get("max_retry_times")
    return retry if times is None else RetryPolicy(times, retry.delay_seconds)
