"""The callback of the spider `web` on recorded answers, without a crawl; and its settings.

The answers are replayed by the pytest plugin scrapy-mock from tests/fixtures/cassettes. Run as a program this file
records them anew, from a server of its own: `python tests/unit/test_webspider.py`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import vcr  # type: ignore[import-untyped]
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # for the recording, which runs as a program

from webcrawl import __version__  # noqa: E402
from webcrawl.core.frontier import Lease, Visit  # noqa: E402
from webcrawl.core.lifecycle import Event  # noqa: E402
from webcrawl.core.outcomes import Outcome  # noqa: E402
from webcrawl.core.reasons import Reason  # noqa: E402
from webcrawl.items import Page  # noqa: E402
from webcrawl.settlement import CURRENT, Settlement  # noqa: E402
from webcrawl.speed import SPIDER_SETTINGS  # noqa: E402
from webcrawl.webspider import WebSpider  # noqa: E402

CASSETTES = ROOT / "tests" / "fixtures" / "cassettes"
PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"
RECORDING = "WEBCRAWL_RECORD_CASSETTES"
ANSWERS = {
    "/article": b"""<!doctype html><html lang="en"><head><title>On  crawling</title><base href="/library/">
<meta name="description" content="How to be polite."></head><body><h1>On crawling</h1>
<p>One <b>request</b> at a time.</p> <a href="next.html">Next</a> <a rel="nofollow" href="/login">Log in</a>
<a href="next.html#notes">Notes</a></body></html>""",
    "/soup": b"<p>unclosed <a href='/a'>first<a href=/b>second<table><a href=' /c '>third</table></html> after",
}


@pytest.fixture(scope="session")
def vcr_settings() -> vcr.VCR:
    """Of scrapy-mock: where its cassettes are, and never the network."""
    mode = "once" if os.environ.get(RECORDING) else "none"
    return vcr.VCR(serializer="yaml", cassette_library_dir=str(CASSETTES), record_mode=mode)


@pytest.fixture
def settlement(response: HtmlResponse) -> Iterator[Settlement]:
    """What the scheduler would have begun for this answer."""
    lease = Lease(1, 1, response.url, 2, 0, 0.5, 0, 0, 0.0, None)
    assert response.request is not None
    settlement = Settlement(lease, response.request)
    settlement.visit = Visit(1_000_000_000.0, 200, "text/html", len(response.body))
    token = CURRENT.set(settlement)
    yield settlement
    CURRENT.reset(token)


@pytest.fixture
def spider() -> WebSpider:
    return WebSpider(seeds=f"{ORIGIN}/")


@pytest.mark.parametrize("url", [f"{ORIGIN}/article"])
def test_a_page_is_described(spider: WebSpider, response: HtmlResponse, settlement: Settlement) -> None:
    (page,) = spider.parse(response)
    assert (page.title, page.language, page.description) == ("On crawling", "en", "How to be polite.")
    assert "One request at a time." in page.text
    assert (page.depth, page.score, page.visit, page.site) == (2, 0.5, 1, "127.0.0.1")
    assert page.fetched_at == "2001-09-09T01:46:40.000+00:00"


@pytest.mark.parametrize("url", [f"{ORIGIN}/article"])
def test_its_links_go_to_the_frontier_and_a_copy_to_the_feed(
    spider: WebSpider, response: HtmlResponse, settlement: Settlement
) -> None:
    (page,) = spider.parse(response)
    assert list(settlement.links) == [f"{ORIGIN}/library/next.html"]
    assert settlement.nofollow_links == 1
    assert [(link["anchor"], link["rel"]) for link in page.links] == [("Next", ""), ("Log in", "nofollow")]
    assert settlement.visit is not None and settlement.visit.content_hash > 0


@pytest.mark.parametrize("url", [f"{ORIGIN}/soup"])
def test_tag_soup_is_read_as_by_a_browser(spider: WebSpider, response: HtmlResponse, settlement: Settlement) -> None:
    (page,) = spider.parse(response)
    assert sorted(settlement.links) == [f"{ORIGIN}/{letter}" for letter in "abc"]
    assert "after" in page.text


@pytest.mark.parametrize("url", [f"{ORIGIN}/article"])
@pytest.mark.parametrize(
    ("location", "redirect", "outcome"),
    [
        (b"../x y?z#part", f"{ORIGIN}/x%20y?z", Outcome(Event.STORE, Reason.ALIAS)),
        (b"", "", Outcome(Event.GIVE_UP, Reason.REDIRECT_LOST)),
        (b"mailto:somebody@one.test", "", Outcome(Event.GIVE_UP, Reason.REDIRECT_LOST)),
        (b"http://[", "", Outcome(Event.GIVE_UP, Reason.REDIRECT_LOST)),
    ],
    ids=["relative", "none", "mail", "broken"],
)
def test_a_redirect_is_an_alias_or_lost(
    spider: WebSpider, location: bytes, redirect: str, outcome: Outcome, url: str
) -> None:
    moved = HtmlResponse(url, status=301, headers={"Location": location})
    settlement = Settlement(Lease(1, 1, url, 0, 0, 0.0, 0, 0, 0.0, None), Request(url))
    token = CURRENT.set(settlement)
    try:
        assert list(spider.parse(moved)) == []
    finally:
        CURRENT.reset(token)
    assert (settlement.redirect, settlement.outcome) == (redirect, outcome)


# ------------------------------------------------------------------------------------------------ what pages ask


class Answered(NamedTuple):
    """What became of an answer."""

    pages: list[Page]
    settlement: Settlement

    @property
    def record(self) -> list[str]:
        assert self.settlement.visit is not None
        return json.loads(self.settlement.visit.directives or "[]")  # type: ignore[no-any-return]

    @property
    def reason(self) -> Reason:
        assert self.settlement.outcome is not None
        return self.settlement.outcome.reason


HTML = '<title>T</title><meta name="{}" content="{}"><p>Text</p><a href="/a">A</a><a rel="UGC noopener" href="/b">B</a>'
PDF = {"Content-Type": "application/pdf"}


def answered(
    meta: str = "",
    headers: Mapping[str, str | list[str]] | None = None,
    signals: tuple[str, ...] = (),
    name: str = "robots",
    **settings: Any,
) -> Answered:
    """A page with a meta element, or a PDF if the headers say so."""
    spider = WebSpider.from_crawler(Crawler(WebSpider, Settings(settings)), seeds=f"{ORIGIN}/")
    url, body = f"{ORIGIN}/page", HTML.format(name, meta).encode()
    response = HtmlResponse(url, headers=headers, body=body, encoding="utf-8")
    settlement = Settlement(Lease(1, 1, url, 2, 0, 0.5, 0, 0, 0.0, None), Request(url))
    mime = str((headers or {}).get("Content-Type", "text/html"))
    settlement.visit = Visit(1_000_000_000.0, 200, mime, len(body))
    settlement.outcome = Outcome(Event.STORE, Reason.NONE)
    settlement.signals = signals
    token = CURRENT.set(settlement)
    try:
        return Answered(list(spider.parse(response)), settlement)
    finally:
        CURRENT.reset(token)


def test_a_page_that_asks_nothing() -> None:
    found = answered("index, follow")
    (page,) = found.pages
    assert (page.directives, page.text, found.record, found.reason) == ([], "Text\n\nAB", [], Reason.NONE)
    assert list(found.settlement.links) == [f"{ORIGIN}/a"]
    assert found.settlement.nofollow_links == 1


@pytest.mark.parametrize("meta", ["nofollow", "FOLLOW, NoFollow"])
def test_no_link_of_a_page_that_says_nofollow_is_offered(meta: str) -> None:
    found = answered(meta)
    (page,) = found.pages
    assert (list(found.settlement.links), found.settlement.nofollow_links) == ([], 2)
    assert [link["url"] for link in page.links] == [f"{ORIGIN}/a", f"{ORIGIN}/b"]
    assert page.directives == found.record == ["nofollow"]
    ignored = answered(meta, WEBCRAWL_DIRECTIVES_NOFOLLOW="ignore")
    assert (list(ignored.settlement.links), ignored.record) == ([f"{ORIGIN}/a"], ["nofollow"])


@pytest.mark.parametrize(
    ("rel", "taken"),
    [("nofollow", "ab"), ("UGC", "a"), ("sponsored, ugc", "a"), ("noopener", "a"), ("", "ab"), ([], "ab")],
)
def test_which_rel_is_heeded_can_be_chosen(rel: object, taken: str) -> None:
    found = answered(WEBCRAWL_DIRECTIVES_REL=rel)
    assert list(found.settlement.links) == [f"{ORIGIN}/{name}" for name in taken]
    assert found.settlement.nofollow_links == 2 - len(taken)


def test_a_page_that_says_noindex_is_recorded_and_gives_no_item() -> None:
    found = answered("noindex")
    assert (found.pages, found.record, found.reason) == ([], ["noindex"], Reason.NOINDEX)
    assert list(found.settlement.links) == [f"{ORIGIN}/a"]
    assert found.settlement.visit is not None
    assert found.settlement.visit.content_hash and found.settlement.visit.text_bytes
    (page,) = answered("noindex", WEBCRAWL_DIRECTIVES_NOINDEX="ignore").pages
    assert (page.directives, page.text) == (["noindex"], "Text\n\nAB")


def test_of_a_page_that_says_noarchive_no_text_is_kept() -> None:
    (page,) = answered("nocache").pages
    assert (page.text, page.title, page.directives) == ("", "T", ["noarchive"])
    assert [(link["url"], link["anchor"]) for link in page.links] == [(f"{ORIGIN}/a", ""), (f"{ORIGIN}/b", "")]
    (page,) = answered("noarchive", WEBCRAWL_DIRECTIVES_NOARCHIVE="ignore").pages
    assert (page.text, page.links[0]["anchor"], page.directives) == ("Text\n\nAB", "A", ["noarchive"])


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ({"X-Robots-Tag": "noarchive"}, ["noarchive"]),
        ({"x-robots-tag": ["noarchive", "webcrawl: nofollow"]}, ["nofollow", "noarchive"]),
        ({"X-Robots-Tag": ["googlebot: noindex, nofollow"]}, []),
        ({"TDM-Reservation": "1", "tdm-policy": "https://a/p"}, ["tdm-policy: https://a/p", "tdm-reservation: 1"]),
        (
            {"Content-Signal": "ai-train=no", "Content-Usage": "a=n"},
            ["content-signal: ai-train=no", "content-usage: a=n"],
        ),
        ({"X-Robots-Tag": b"no\xefndex"}, ["noïndex"]),
    ],
)
def test_headers_count_too(headers: dict[str, Any], asked: list[str]) -> None:
    found = answered(headers=headers)
    (page,) = found.pages
    assert page.directives == found.record == asked


def test_headers_and_meta_elements_add_up_and_what_forbids_wins() -> None:
    found = answered("index, nofollow", {"X-Robots-Tag": "noindex, follow"})
    assert (found.pages, found.record) == ([], ["noindex", "nofollow"])
    assert list(found.settlement.links) == []


def test_a_file_that_is_no_page_is_asked_for_its_headers() -> None:
    assert answered("noindex", PDF).pages, "what looks like a meta element there is none"
    found = answered("", {**PDF, "X-Robots-Tag": "noindex"})
    assert (found.pages, found.record, found.reason) == ([], ["noindex"], Reason.NOINDEX)


def test_we_are_addressed_by_our_own_name() -> None:
    assert answered("noindex", name="WebCrawl").pages == []
    assert answered("noindex", name="webcrawl", WEBCRAWL_AGENT="mybot").pages
    assert answered("noindex", name="mybot", WEBCRAWL_AGENT="mybot").pages == []
    assert answered(headers={"X-Robots-Tag": "MyBot: noindex"}, WEBCRAWL_AGENT="mybot").pages == []


def test_what_the_robots_txt_says_of_uses_is_kept_with_the_page() -> None:
    found = answered("noai", signals=("content-signal: search=yes, ai-train=no",))
    (page,) = found.pages
    assert page.directives == found.record == ["noai", "content-signal: search=yes, ai-train=no"]


# ------------------------------------------------------------------------------------------------ settings


class Mine(WebSpider):
    custom_settings = {  # noqa: RUF012
        "CONCURRENT_ITEMS": 7,
        "DOWNLOADER_MIDDLEWARES": {
            "mine.Middleware": 500,
            "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": 700,
        },
    }


def test_what_a_project_and_a_spider_chose_stays() -> None:
    settings = Settings({"SPIDER_MIDDLEWARES": {"project.Middleware": 100}})
    Mine.update_settings(settings)
    middlewares = settings.getdict("DOWNLOADER_MIDDLEWARES")
    assert middlewares["mine.Middleware"] == 500
    assert middlewares["scrapy.downloadermiddlewares.cookies.CookiesMiddleware"] == 700
    assert middlewares["scrapy.downloadermiddlewares.redirect.RedirectMiddleware"] is None
    assert settings.getdict("SPIDER_MIDDLEWARES")["project.Middleware"] == 100
    assert settings.getint("CONCURRENT_ITEMS") == 7
    assert settings["LOG_FORMATTER"] == SPIDER_SETTINGS["LOG_FORMATTER"]


def settings_of(**given: Any) -> Settings:
    """Of a crawl of `web` whose command line had these."""
    settings = Settings()
    settings.setmodule("webcrawl.settings", priority="project")
    settings.update(given, priority="cmdline")
    WebSpider.update_settings(settings)
    return settings


@pytest.mark.parametrize(
    ("given", "agent", "sender"),
    [
        ({}, f"webcrawl/{__version__}", None),
        ({"WEBCRAWL_CONTACT": "https://a.example/"}, f"webcrawl/{__version__} (+https://a.example/)", None),
        ({"WEBCRAWL_CONTACT": "me@a.example"}, f"webcrawl/{__version__} (+me@a.example)", "me@a.example"),
        ({"WEBCRAWL_AGENT": "mybot"}, f"mybot/{__version__}", None),
        ({"USER_AGENT": "webcrawl/9", "WEBCRAWL_CONTACT": "me@a.example"}, "webcrawl/9", "me@a.example"),
        ({"DEFAULT_REQUEST_HEADERS": {"from": "x@a.example"}, "WEBCRAWL_CONTACT": "me@a.example"}, None, None),
        ({"DEFAULT_REQUEST_HEADERS": {"Accept": "*/*"}, "WEBCRAWL_CONTACT": "me@a.example"}, None, "me@a.example"),
    ],
)
def test_every_request_says_who_we_are(
    given: dict[str, Any], agent: str | None, sender: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(**given)
    assert agent is None or settings["USER_AGENT"] == agent
    assert settings.getdict("DEFAULT_REQUEST_HEADERS").get("From") == sender
    assert "Accept" in settings.getdict("DEFAULT_REQUEST_HEADERS") or "from" in settings["DEFAULT_REQUEST_HEADERS"]
    assert caplog.messages == []


def test_a_user_agent_of_the_operator_stays_and_must_carry_the_token(caplog: pytest.LogCaptureFixture) -> None:
    given = {"USER_AGENT": "shop/2", "WEBCRAWL_CONTACT": "me@a.example"}
    assert settings_of(**given)["USER_AGENT"] == "shop/2"
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(
        "USER_AGENT=shop/2 does not begin with webcrawl, the name under which robots.txt"
    )
    caplog.clear()
    assert settings_of(**given, WEBCRAWL_AGENT="shop")["USER_AGENT"] == "shop/2"
    assert caplog.messages == []


def test_in_a_project_without_our_settings_scrapys_name_is_not_used() -> None:
    settings = Settings({"WEBCRAWL_CONTACT": "me@a.example"})
    WebSpider.update_settings(settings)
    assert settings["USER_AGENT"] == f"webcrawl/{__version__} (+me@a.example)"


def record() -> int:
    """Play the answers and let the tests record them."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(ANSWERS[self.path])

    server = HTTPServer(("127.0.0.1", PORT), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    for cassette in CASSETTES.glob("*.yaml"):
        cassette.unlink()
    os.environ[RECORDING] = "1"
    return pytest.main([__file__, "-q"])


if __name__ == "__main__":
    sys.exit(record())
