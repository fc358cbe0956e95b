"""The private names of Scrapy that we need, each in one function, known for one version.

Scrapy has no documented way to wake its engine, nor a signal that a request is wholly finished. Both are one private
attribute away; a new Scrapy release may move them, so an unknown version is refused with a clear error instead of a
crawl that hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import scrapy
from pydispatch import dispatcher

from webcrawl.core.errors import SettingError

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler

KNOWN_VERSION = (2, 19)
_ANY = id(dispatcher.Any)


def check_scrapy() -> None:
    """Refuse a Scrapy whose inside we do not know."""
    if scrapy.version_info[:2] != KNOWN_VERSION:
        wanted = ".".join(map(str, KNOWN_VERSION))
        raise SettingError(
            f"This is Scrapy {scrapy.__version__}, and webcrawl knows the engine of Scrapy {wanted} only.",
            "A wrong guess would lose pages.",
            f'Install it with: pip install "scrapy~={wanted}.0"',
        )


def wake(engine: ExecutionEngine) -> None:
    """Let the engine ask the scheduler again soon; asking twice is the same as once.

    `nextcall.schedule()` without a delay: with one, every other wake-up is ignored until then.
    """
    slot = engine._slot
    if slot is not None and slot.closing is None:
        slot.nextcall.schedule()


def on_finished(engine: ExecutionEngine, callback: Callable[[Request], None]) -> None:
    """Call back when a request is wholly done: answer handled, items through the pipelines, successors enqueued.

    The engine's slot forgets a request exactly once, last of all, in every case (response, exception, dropped,
    redirected, retried, spider error, shutdown).
    """
    slot = engine._slot
    assert slot is not None, "the engine opens its slot before the scheduler"
    forget = slot.remove_request

    def remove_request(request: Request) -> None:
        try:
            callback(request)
        finally:  # a request the engine never forgets keeps the crawl open for ever
            forget(request)

    slot.remove_request = remove_request  # type: ignore[method-assign]


def has_listeners(crawler: Crawler, signal: object) -> bool:
    """Whether anybody hears this signal of this crawler; two dictionary look-ups instead of a call of nobody."""
    for sender in (id(crawler.signals.sender), _ANY):
        heard = dispatcher.connections.get(sender)
        if heard and (signal in heard or dispatcher.Any in heard):
            return True
    return False


def wants_spider_argument(manager: DownloaderMiddlewareManager) -> bool:
    """Whether a middleware is written for Scrapy before 2.14 and wants the spider as an argument."""
    return bool(manager._mw_methods_requiring_spider)
