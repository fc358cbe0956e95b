"""The handler without a network: where requests go, and what it remembers about it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadFailedError, UnsupportedURLSchemeError
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes
from scrapy.utils.test import get_crawler

from webcrawl.handlers import http
from webcrawl.handlers.http import LeanHttpHandler


@pytest.fixture
def handler():
    return LeanHttpHandler(get_crawler(Spider))


def locate(handler, url, **meta):
    request = Request(url, meta={"verbatim_url": True, **meta})
    return handler._locate(request, request.meta)


@pytest.mark.parametrize(
    ("url", "place", "target"),
    [
        ("http://site.test", ("http", "site.test", 80, "site.test"), "/"),
        ("http://site.test?a=/b#c", ("http", "site.test", 80, "site.test"), "/?a=/b"),
        ("http://site.test#/c", ("http", "site.test", 80, "site.test"), "/"),
        ("HTTP://Site.Test:80/x", ("http", "site.test", 80, "site.test"), "/x"),
        ("https://site.test:8443/a//b?c#d", ("https", "site.test", 8443, "site.test:8443"), "/a//b?c"),
        ("https://[2001:db8::1]/", ("https", "2001:db8::1", 443, "[2001:db8::1]"), "/"),
        ("http://user:word@site.test/x", ("http", "site.test", 80, "site.test"), "/x"),
        ("http://bücher.test/ä", ("http", "xn--bcher-kva.test", 80, "xn--bcher-kva.test"), "/%C3%A4"),
    ],
)
def test_routes_and_targets(handler, url, place, target):
    for _ in range(2):  # from memory, too
        route, found = locate(handler, url)
        assert ((route.scheme, route.host, route.port, route.authority), found) == (place, target)


def test_a_url_without_a_path_teaches_nothing_about_other_hosts(handler):
    for url in ("http://site.test", "http://site.test?/", "http://site.test#/", "http://a:b@site.test/"):
        locate(handler, url)
    assert locate(handler, "http://site.tes/x")[0].host == "site.tes"
    assert {key for key in handler._routes if isinstance(key, str)} <= {"http://site.test", "http://site.tes"}


def test_one_route_per_place_however_it_is_written(handler):
    assert locate(handler, "http://site.test/a")[0] is locate(handler, "HTTP://SITE.TEST:80/b")[0]


def test_proxies_and_their_credentials_are_part_of_the_route(handler):
    direct, _ = locate(handler, "http://site.test/a")
    proxied, target = locate(handler, "http://site.test/a?b", proxy="http://proxy.test:3128")
    assert (proxied.proxy, target) == (("proxy.test", 3128), "http://site.test/a?b")
    assert proxied is not direct
    request = Request("https://site.test/", headers={"Proxy-Authorization": "Basic x"}, meta={"proxy": "proxy.test"})
    tunnel, target = handler._locate(request, request.meta)
    assert (tunnel.proxy, tunnel.proxy_auth, tunnel.is_tunnel, target) == (("proxy.test", 80), b"Basic x", True, "/")


def test_routes_remembered_are_bounded(handler, monkeypatch):
    monkeypatch.setattr(http, "ROUTES_REMEMBERED", 10)
    for n in range(100):
        locate(handler, f"http://site{n}.test/")
    assert len(handler._routes) <= 12


@pytest.mark.parametrize("url", ["http:///x", "http://site.test:99999/"])
def test_urls_that_lead_nowhere(handler, url):
    with pytest.raises(UnsupportedURLSchemeError):
        locate(handler, url)


def test_names_that_are_none(handler):
    with pytest.raises(DownloadFailedError, match="not a valid host name"):
        locate(handler, f"http://{'ä' * 70}.test/")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"Content-Type": "text/html; charset=utf-8"},
        {"Content-Type": ["application/json", "TEXT/HTML"]},
        {"Content-Type": "text/html", "Content-Encoding": "gzip"},
        {"Content-Type": "application/octet-stream"},
        {"Content-Type": "application/pdf", "Content-Disposition": "attachment; filename=a.xml"},
        {"Content-Type": "application/rss+xml"},
        {"Content-Type": ""},
    ],
)
@pytest.mark.parametrize("url", ["http://site.test/", "http://site.test/a.json"])
def test_response_classes_are_scrapys(handler, fields, url):
    headers = Headers(fields)
    received = SimpleNamespace(headers=dict(headers))
    for _ in range(2):
        found = handler._class(received, headers, url, b"<html>")
        assert found is responsetypes.from_args(headers=headers, url=url, body=b"<html>")
