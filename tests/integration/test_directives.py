"""What pages ask of robots beyond robots.txt, in crawls over real sockets: what is fetched, fed and recorded."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import lxml.html
import pytest

from tests.integration.crawling import Driver, Reply, crawl_command, finish, json_lines, page, pages_of, serving, start
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.serving import serve

WORDS = frozenset({"noindex", "nofollow", "noarchive"})


class Walk:
    """The same web, walked with lxml and urllib; what its pages ask is known from what was generated."""

    def __init__(self, web: GeneratedWeb, proxy: str, *, obeys: bool) -> None:
        self._web, self._obeys, self._pages = web, obeys, set(web.manifest())
        self._ask = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}), Stay).open
        self.fed: set[str] = set()  # in the feed
        self.asked: dict[str, frozenset[str]] = {}  # of every page that was fetched
        self.nofollow_links = 0
        ahead, known = list(web.seeds), set(web.seeds)
        while ahead:
            for link in self._visit(ahead.pop()):
                if link not in known:
                    known.add(link)
                    ahead.append(link)

    def _visit(self, url: str) -> list[str]:
        try:
            with self._ask(url) as answer:
                body, kind = answer.read(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            error.close()
            return [error.headers["Location"]] if error.code in (301, 302) else []
        words = self._web.directives_of(url).words("webcrawl") if url in self._pages else frozenset()
        self.asked[url] = words
        if "noindex" not in words or not self._obeys:
            self.fed.add(url)
        if "html" not in kind:
            return []
        hrefs = map(str, lxml.html.fromstring(body).xpath("//a/@href | //area/@href"))
        links = {urldefrag(urljoin(url, href.strip())).url for href in hrefs}
        links = {link for link in links if link.startswith("http:")}
        followed = [link for link in links if not self._obeys or self._is_followed(url, link, words)]
        self.nofollow_links += len(links) - len(followed)
        return followed

    def _is_followed(self, url: str, link: str, words: frozenset[str]) -> bool:
        return "nofollow" not in words and not (url in self._pages and self._web.rel_of(url, link))


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


def records(directory: Path) -> dict[str, list[str] | None]:
    """What every visited page of a run asked."""
    query = "SELECT p.url, r.directives FROM records r JOIN pages p ON p.id = r.page WHERE r.status = 200"
    with sqlite3.connect(directory / "frontier.sqlite") as store:
        return {url: None if words is None else json.loads(words) for url, words in store.execute(query)}


@pytest.mark.parametrize("obeys", [True, False], ids=["obey", "ignore"])
def test_exactly_the_pages_that_may_be_are_in_the_feed(tmp_path: Path, obeys: bool) -> None:
    web = GeneratedWeb(pages=220, hosts=6, seed=11, page_bytes=1200, links=12, directive_ratio=0.4, rel_ratio=0.3)
    names = [f"WEBCRAWL_DIRECTIVES_{name}" for name in ("NOFOLLOW", "NOINDEX", "NOARCHIVE")]
    settings = {} if obeys else {**dict.fromkeys(names, "ignore"), "WEBCRAWL_DIRECTIVES_REL": ""}
    feed = tmp_path / "feed.jsonl"
    with serve(web) as server:
        command = crawl_command(web.seeds[0], tmp_path / "run", "-O", str(feed), **settings)
        code, log = finish(start(command, server.proxy_environment))
        walk = Walk(web, server.proxy_url, obeys=obeys)
    assert code == 0, log
    pages, lines = set(web.manifest()), {line["url"]: line for line in json_lines(feed)}
    assert set(lines) == walk.fed
    for url, line in lines.items():
        assert frozenset(line["directives"]) & WORDS == walk.asked[url], url
        if url in pages:
            assert bool(line["text"]) is not (obeys and "noarchive" in walk.asked[url]), url
    recorded = records(tmp_path / "run")
    assert {url: frozenset(words or ()) & WORDS for url, words in recorded.items()} == walk.asked
    assert [] not in recorded.values(), "nothing asked is NULL"
    assert "tdm-reservation: 1" in {word for words in recorded.values() for word in words or ()}
    facts = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert facts["links_not_taken"] == ({"nofollow": walk.nofollow_links} if obeys else {})
    without_item = len(walk.asked) - len(walk.fed)
    assert facts["pages_by_reason"]["stored"].get("noindex", 0) == without_item
    if obeys:  # or nothing was tested
        assert without_item > 10
        assert pages - walk.asked.keys()


# ------------------------------------------------------------------------------------------------ one page, one word


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()


HOME = "http://one.test/"


def crawl(driver: Driver, directory: Path, pages: dict[str, Any], **settings: Any) -> list[dict[str, Any]]:
    settings = {"WEBCRAWL_DIR": directory / "run", **settings}
    feeds = {directory / "feed.jsonl": {"format": "jsonlines", "overwrite": True}}
    with serving(pages_of(pages)) as site:
        crawled = driver.crawl("web", site, settings, feeds, seeds=HOME, scope="all")
    assert (crawled.error, crawled.reason) == ("", "finished"), crawled.log
    return json_lines(directory / "feed.jsonl")


def test_what_robots_txt_says_of_uses_is_kept_with_each_page(driver: Driver, tmp_path: Path) -> None:
    file = b"User-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallow: /no\n"
    pages = {f"{HOME}robots.txt": Reply(file, kind="text/plain"), HOME: page("home", "/no")}
    polite = {"WEBCRAWL_POLITENESS": "on", "WEBCRAWL_POLITENESS_DELAY_SECONDS": 1, "WEBCRAWL_CONTACT": "a@b.example"}
    (line,) = crawl(driver, tmp_path, pages, **polite)
    assert line["directives"] == ["content-signal: search=yes, ai-train=no"]
    assert records(tmp_path / "run")[HOME] == line["directives"]


def test_a_large_page_may_be_without_an_item_too(driver: Driver, tmp_path: Path) -> None:
    large = b'<meta name="robots" content="noindex"><a href=/next>x</a>' + b"<p>word " * 60_000
    lines = crawl(driver, tmp_path, {HOME: Reply(large), f"{HOME}next": page("next")})
    assert [line["url"] for line in lines] == [f"{HOME}next"]
    assert records(tmp_path / "run") == {HOME: ["noindex"], f"{HOME}next": None}


def test_a_bad_value_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    command = crawl_command(HOME, tmp_path / "run", WEBCRAWL_DIRECTIVES_NOINDEX="maybe")
    code, log = finish(start(command, {}))
    assert code != 0
    assert "WEBCRAWL_DIRECTIVES_NOINDEX=maybe is not one of obey, ignore." in log
    assert "Traceback" not in log
