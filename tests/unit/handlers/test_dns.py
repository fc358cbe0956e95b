"""Which resolver the handler asks."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from webcrawl.core.errors import SettingError
from webcrawl.handlers.dns import close_resolver_of, resolver_of
from webcrawl.resolver import CachingResolver


def test_http_and_https_share_one_resolver():
    crawler = get_crawler(Spider)
    assert resolver_of(crawler) is resolver_of(crawler)
    assert resolver_of(crawler) is not resolver_of(get_crawler(Spider))


def test_the_crawls_own_goes_first_and_stays_open():
    class Own:
        async def addresses(self, host):
            return ["192.0.2.1"]

    crawler = get_crawler(Spider)
    own = Own()
    setattr(crawler, "webcrawl_resolver", own)  # noqa: B010  an attribute of ours
    assert resolver_of(crawler) is own
    close_resolver_of(crawler)


def test_what_was_built_is_closed():
    crawler = get_crawler(Spider)
    resolver = resolver_of(crawler)
    assert isinstance(resolver, CachingResolver)
    close_resolver_of(crawler)
    close_resolver_of(crawler)
    assert asyncio.run(resolver.resolve("site.test")).error == "timeout"
    assert resolver_of(crawler) is not resolver


def test_settings_are_checked():
    with pytest.raises(SettingError, match="WEBCRAWL_DNS_TRIES"):
        resolver_of(get_crawler(Spider, {"WEBCRAWL_DNS_TRIES": 0}))
