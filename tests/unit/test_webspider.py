"""The callback of the spider `web` on recorded answers, without a crawl; and its settings.

The answers are replayed by the pytest plugin scrapy-mock from tests/fixtures/cassettes. Run as a program this file
records them anew, from a server of its own: `python tests/unit/test_webspider.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vcr  # type: ignore[import-untyped]
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # for the recording, which runs as a program

from webcrawl import __version__  # noqa: E402
from webcrawl.core.frontier import Lease, Visit  # noqa: E402
from webcrawl.core.lifecycle import Event  # noqa: E402
from webcrawl.core.outcomes import Outcome  # noqa: E402
from webcrawl.core.reasons import Reason  # noqa: E402
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
    assert list(settlement.links) == [f"{ORIGIN}/library/next.html", f"{ORIGIN}/login"]
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
