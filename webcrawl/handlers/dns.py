"""Which resolver the handler asks.

Rules kept: the crawl's own (`crawler.webcrawl_resolver`) where there is one, so that pages are fetched from the
addresses the frontier was polite to; otherwise one for each crawler, built when first needed, shared by http and https
and closed with the first of them. The crawl's own is closed by whoever set it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from webcrawl.core.config import load
from webcrawl.core.names import Dns
from webcrawl.resolver import CachingResolver

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Resolver(Protocol):
    """What a connector needs of a resolver."""

    async def addresses(self, host: str) -> list[str]:
        """IP addresses of a host, best first; CannotResolveHostError if there are none."""


_built: WeakKeyDictionary[Crawler, CachingResolver] = WeakKeyDictionary()


def resolver_of(crawler: Crawler) -> Resolver:
    """The resolver of a crawler."""
    shared: Resolver | None = getattr(crawler, "webcrawl_resolver", None)
    if shared is not None:
        return shared
    if crawler not in _built:
        _built[crawler] = CachingResolver(load(Dns, crawler.settings))
    return _built[crawler]


def close_resolver_of(crawler: Crawler) -> None:
    """Close what `resolver_of` has built, if it has."""
    built = _built.pop(crawler, None)
    if built is not None:
        built.close()
