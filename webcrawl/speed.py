"""The settings that make a crawl fast, each with its reason, and the small parts they name.

Figures in microseconds are CPU per page from a ladder over bare Scrapy 2.19 (15 KB pages, requests made beforehand, on
a machine about four times faster than that of `docs/benchmarks.md`); they were not repeated here one by one. Figures
in percent were measured on this crawler: 6,000 pages, the variants in turn.

They are right for the spider `web`. A spider that yields many requests per page wants its middlewares, and more than
one item worker: these settings are not forced on anybody else's spider.
"""

from __future__ import annotations

import gc
import importlib.util
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter
from scrapy.statscollectors import MemoryStatsCollector

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response

_OFF_FOR_PAGES = (
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware",  # every answer is settled, errors too
    "scrapy.spidermiddlewares.referer.RefererMiddleware",  # links are not Requests
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware",  # WEBCRAWL_LIMIT_URL_LENGTH
    "scrapy.spidermiddlewares.depth.DepthMiddleware",  # the frontier knows the depth
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware",
    "scrapy.spidermiddlewares.start.StartSpiderMiddleware",  # the scheduler offers the seeds
)

# Two async-generator layers a middleware and object: 11 µs a page for all of them.
_DOWNLOADER_OFF_FOR_PAGES = (
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware",  # the scope is the frontier's
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
    "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware",  # our handler knows DOWNLOAD_TIMEOUT
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware",  # decodes every body; the parser reads meta refresh
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",  # a redirect is a link: see WebSpider
    "scrapy.downloadermiddlewares.cookies.CookiesMiddleware",
    "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware",
)

SPIDER_SETTINGS: dict[str, Any] = {
    # One item a page needs no hundred worker tasks a response: 1,265 -> 568 µs.
    "CONCURRENT_ITEMS": 1,
    "SPIDER_MIDDLEWARES": dict.fromkeys(_OFF_FOR_PAGES),
    # About 80 µs a page for all of Scrapy's; what is left does something for every page.
    "DOWNLOADER_MIDDLEWARES": dict.fromkeys(_DOWNLOADER_OFF_FOR_PAGES),
    "COOKIES_ENABLED": False,
    # No queue per host and no second task per request: 14 % less.
    "DOWNLOADER": "webcrawl.downloader.LeanDownloader",
    # Records of "Crawled" and "Scraped" are built even when nobody reads them: 10 µs.
    "LOG_FORMATTER": "webcrawl.speed.QuietLogFormatter",
    # Scrapy's collector builds a string at every attribute access: 19 µs.
    "STATS_CLASS": "webcrawl.speed.PlainStats",
}


def event_loop() -> str | None:
    """uvloop where it is installed (5 to 12 % less CPU), else asyncio's own."""
    return "uvloop.Loop" if importlib.util.find_spec("uvloop") else None


class QuietLogFormatter(LogFormatter):
    """No line per page and item; the summary counts them."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> None:  # type: ignore[override]
        """Nothing."""

    def scraped(self, item: Any, response: Any, spider: Spider) -> None:  # type: ignore[override]
        """Nothing."""


class PlainStats(MemoryStatsCollector):
    """Scrapy's own collector without its shim for deprecated arguments."""

    def __getattribute__(self, name: str) -> Any:
        """Plain attribute access."""
        return object.__getattribute__(self, name)


class GarbageTuning:
    """Extension: makes the garbage collector fit an event loop that must not stall.

    Objects made at start-up are never garbage, so the collector need not walk them, and it need not look as often:
    8 to 14 % less CPU than with Python's own thresholds, at 13 % more memory.
    """

    @classmethod
    def from_crawler(cls, crawler: Any) -> GarbageTuning:
        """Tune when the spider opens: by then everything long-lived exists."""
        from scrapy import signals

        tuning = cls()
        crawler.signals.connect(tuning.spider_opened, signals.spider_opened)
        return tuning

    def spider_opened(self) -> None:
        """Once per process is enough, twice does no harm."""
        tune()


def tune() -> None:
    """See `GarbageTuning`."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
