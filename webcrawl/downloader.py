"""LeanDownloader: Scrapy's downloader without its queue per host, because the frontier keeps the pauses.

Same middlewares in the same order, same signals, same results. What is left out: the slot of every host with its queue,
its delay and a second task per request; and the wrapping of every middleware result in an awaitable, asynchronous or
not. Together 14 % of the CPU of a crawl (docs/benchmarks.md).

Set by the `DOWNLOADER` setting, for spiders whose requests all come from the frontier. Middlewares written for Scrapy
before 2.14, which want a `spider` argument, are served by Scrapy's own way instead.
"""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.exceptions import _InvalidOutput
from scrapy.http import Response
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from webcrawl.engine import has_listeners, wants_spider_argument

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class LeanDownloader(Downloader):
    """Scrapy's DOWNLOADER for a crawl that a frontier paces."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        methods = self.middleware.methods
        self._before: list[Any] = list(methods["process_request"])
        self._after: list[Any] = list(methods["process_response"])
        self._on_error: list[Any] = list(methods["process_exception"])
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references
        self._is_old_style = wants_spider_argument(self.middleware)

    def fetch(self, request: Request, spider: Any = None) -> Deferred[Response | Request]:
        """What the engine calls: the answer, or the request a middleware put in its place."""
        if self._is_old_style:
            return super().fetch(request)
        self.active.add(request)
        result: Deferred[Response | Request] = Deferred()
        task = asyncio.get_running_loop().create_task(self._fetch(request, result))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return result

    async def _fetch(self, request: Request, result: Deferred[Response | Request]) -> None:
        try:
            outcome: Any = await self._through_middlewares(request)
        except Exception:  # noqa: BLE001 - handed on as a Failure, as Scrapy does
            outcome = Failure()  # type: ignore[no-untyped-call]
        self.active.remove(request)
        result.callback(outcome)

    async def _through_middlewares(self, request: Request) -> Response | Request:
        try:
            result = await self._requested(request)
        except Exception as error:  # noqa: BLE001 - any error may be handled by a middleware
            await asyncio.sleep(0)
            result = await self._recovered(error, request)
        if isinstance(result, Request):
            return result
        for method in self._after:
            result = method(request=request, response=result)
            if not isinstance(result, Response):
                result = await _checked(method, result, Response, Request)
                if isinstance(result, Request):
                    return result
        return result

    async def _requested(self, request: Request) -> Response | Request:
        for method in self._before:
            result = method(request=request)
            if result is not None:
                result = await _checked(method, result, Response, Request, type(None))
                if result is not None:
                    return result  # type: ignore[no-any-return]
        return await self._downloaded(request)

    async def _recovered(self, error: Exception, request: Request) -> Response | Request:
        for method in self._on_error:
            result = method(request=request, exception=error)
            if result is not None:
                result = await _checked(method, result, Response, Request, type(None))
                if result is not None:
                    return result  # type: ignore[no-any-return]
        raise error

    async def _downloaded(self, request: Request) -> Response:
        self._tell(signals.request_reached_downloader, request=request)
        try:
            response = await self.handlers.download_request_async(request)
            self._tell(signals.response_downloaded, response=response, request=request)
            return response
        finally:
            self._tell(signals.request_left_downloader, request=request)

    def _tell(self, signal: object, **facts: Any) -> None:
        if has_listeners(self.crawler, signal):
            self.signals.send_catch_log(signal=signal, spider=self.crawler.spider, **facts)


async def _checked(method: Any, result: Any, *allowed: type) -> Any:
    if isawaitable(result):
        result = await result
    if not isinstance(result, allowed):
        names = ", ".join(kind.__name__ for kind in allowed)
        raise _InvalidOutput(f"Middleware {method.__qualname__} must return one of {names}, got {type(result)}")
    return result
