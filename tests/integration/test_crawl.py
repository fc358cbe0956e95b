"""The spider `web` in real crawls over real sockets: what is fetched, what is not and why, the order, the pace."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import lxml.html
import pytest
from xxhash import xxh3_128_hexdigest

from tests.integration.crawling import (
    LATE_NOTE_SECONDS,
    Asked,
    Crawled,
    Driver,
    Reply,
    Site,
    answers_of,
    crawl_command,
    finish,
    json_lines,
    moved,
    page,
    pages_of,
    serving,
    shortest_pauses,
    start,
)
from webcrawl import __version__
from webcrawl.core.lifecycle import State
from webcrawl.core.reasons import Reason
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.serving import serve


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()


def ends(directory: Path) -> dict[str, tuple[str, str]]:
    """Every page of a run with its state and reason."""
    with sqlite3.connect(directory / "frontier.sqlite") as store:
        query = "SELECT p.url, r.state, r.reason FROM pages p LEFT JOIN records r ON r.page = p.id"
        rows = store.execute(query).fetchall()
    return {url: (State(state or 1).name, Reason(reason or 0).name) for url, state, reason in rows}


def crawl(driver: Driver, site: Site, directory: Path, seeds: str, scope: str = "all", **settings: Any) -> Crawled:
    """A crawl of `web` into `directory`/run and `directory`/feed.jsonl."""
    settings = {"WEBCRAWL_DIR": directory / "run", **settings}
    feeds = {directory / "feed.jsonl": {"format": "jsonlines", "overwrite": True}}
    return driver.crawl("web", site, settings, feeds, seeds=seeds, scope=scope)


def fed(directory: Path) -> list[str]:
    """URLs of the feed, in order."""
    return [line["url"] for line in json_lines(directory / "feed.jsonl")]


# ------------------------------------------------------------------------------------------------ where we may go


def test_a_private_seed_is_crawled_and_links_to_its_neighbours_are_not_followed(driver: Driver, tmp_path: Path) -> None:
    """Nor is a redirect to one, nor a link to a public host by a crawl that names no contact."""
    home, others = "http://127.0.0.2:8000/", ("http://127.0.0.2:9000/", "http://127.0.0.3/", "http://router.local/")
    pages = {home: page("home", *others, "http://public.test/", "/to"), home + "to": moved("http://10.0.0.1/")}
    settings: dict[str, Any] = {"WEBCRAWL_SAFETY_ALLOW": "", "WEBCRAWL_POLITENESS_DELAY_SECONDS": 1}
    with serving(pages_of(pages)) as site:
        crawled = crawl(driver, site, tmp_path, home, **settings)
        asked = {url for url in site.urls if not url.endswith("/robots.txt")}
    assert (crawled.error, asked) == ("", {home, home + "to"})
    assert fed(tmp_path) == [home]
    facts = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert facts["links_not_taken"] == {"not_allowed": 4, "no_contact": 1}


ASKING = """
from scrapy import Spider

class Asking(Spider):
    name = "asking"

    async def start(self):
        check = self.crawler.webcrawl_check_address
        self.notes = [check(host, ip) for host, ip in (("a.test", "127.0.0.1"), ("b.test", "192.168.0.1"))]
        return
        yield
"""


def test_whoever_connects_can_ask_whether_a_resolved_address_is_fine(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(ASKING)
    settings = {"WEBCRAWL_DIR": tmp_path / "run", "WEBCRAWL_SAFETY_ALLOW": "127.0.0.0/8"}
    with serving(pages_of({})) as site:
        crawled = driver.crawl(f"{tmp_path}/asking.py:Asking", site, settings)
    fine, refused = crawled.notes
    assert fine is None
    assert refused.startswith("b.test resolves to 192.168.0.1, a private address")


def test_a_webmaster_is_told_who_asks(driver: Driver, tmp_path: Path) -> None:
    home = "http://one.test/"
    with serving(pages_of({home: page("home")})) as site:
        crawl(driver, site, tmp_path, home, WEBCRAWL_CONTACT="crawler@example.org", WEBCRAWL_AGENT="mybot")
        headers = site.asked[-1].headers
    assert headers["User-Agent"] == f"mybot/{__version__} (+crawler@example.org)"
    assert headers["From"] == "crawler@example.org"


def test_a_page_on_the_opt_out_list_is_not_asked_for(driver: Driver, tmp_path: Path) -> None:
    home = "http://one.test/"
    pages = {home: page("home", "/private/1", "/public", "http://www.two.test/"), home + "public": page("public")}
    (tmp_path / "optout.txt").write_text("one.test/private/*\n.two.test\n")
    with serving(pages_of(pages)) as site:
        crawl(driver, site, tmp_path, home, WEBCRAWL_OPTOUT_FILE=tmp_path / "optout.txt")
        assert set(site.urls) == {home, home + "public"}
    facts = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert facts["links_not_taken"] == {"opted_out": 2}


# ------------------------------------------------------------------------------------------------ the generated web


def walk(seed: str, proxy: str) -> set[str]:
    """Every URL that answers 200 and is reached by links: found with lxml and urllib, nothing of ours."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments: Any) -> None:
            return None

    ask = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}), Stay).open
    waiting, known, found = [seed], {seed}, set()
    while waiting:
        url = waiting.pop()
        try:
            with ask(url) as answer:
                body, kind = answer.read(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            error.close()
            links = [error.headers["Location"]] if error.code in (301, 302) else []
        else:
            found.add(url)
            links = lxml.html.fromstring(body).xpath("//a/@href | //area/@href") if "html" in kind else []
        for link in links:
            target = urldefrag(urljoin(url, str(link).strip())).url
            if target.startswith("http:") and target not in known:
                known.add(target)
                waiting.append(target)
    return found


def test_every_page_of_the_generated_web_is_in_the_feed_once(tmp_path: Path) -> None:
    web = GeneratedWeb(pages=150, hosts=6, seed=7, page_bytes=1500, links=25, redirect_ratio=0.1, broken_ratio=0.1)
    feed = tmp_path / "feed.jsonl"
    with serve(web, log=tmp_path / "access.log") as server:
        command = crawl_command(web.seeds[0], tmp_path / "run", "-O", str(feed))
        code, log = finish(start(command, server.proxy_environment))
        walked = walk(web.seeds[0], server.proxy_url)
    assert code == 0, log
    urls = Counter(line["url"] for line in json_lines(feed))
    assert set(web.manifest()) <= set(urls)
    assert set(urls) == walked
    assert set(urls.values()) == {1}
    log_lines = (tmp_path / "access.log").read_text().splitlines()
    asked = Counter(line.split('"')[1] + line.split()[-2] for line in log_lines)
    ours = asked - Counter(dict.fromkeys(asked, 1))  # the walk asked for each once more
    assert set(ours.values()) == {1}


# ------------------------------------------------------------------------------------------------ one web, many cases

LATIN = "<title>Caf\xe9</title><p>na\xefve".encode("latin-1")
START = b"""<!doctype html><html lang="de"><head><title> The  start </title>
<meta name="description" content="All cases."><meta name="robots" content="nosnippet">
<link rel="canonical" href="/"><base href="/deep/"></head><body><h1>Hello</h1>
<a href="../plain">Plain &amp; simple</a> <a rel="nofollow ugc" href="/no-follow#part">Not followed</a>
<a href="/query?b=2&amp;a=1">q</a> <a href="/query?a=1&amp;b=2">q again</a> <a href="relative">R</a>
<a href="/file.pdf">f</a> <a href="/missing">m</a> <a href="/gone">g</a> <a href="/flaky">k</a>
<a href="/always500">h</a> <a href="/forbidden">x</a> <a href="/cut">c</a>
<a href="/hop1">r</a> <a href="/loop1">l</a> <a href="/self">s</a>
<a href="/nowhere">n</a> <a href="/empty">e</a> <a href="/latin">l</a> <a href="http://two.test/far">t</a>
<a href="/no-type">t</a> <a href="mailto:a@b.test">mail</a> <a href="javascript:void(0)">js</a> <a href="/large">b</a>
</body></html>"""


def flaky(asked: Asked) -> Reply:
    return Reply(b"later", 503) if asked.count == 1 else page("Flaky")


ONE = "http://one.test"
CASES: dict[str, Any] = {
    f"{ONE}/": Reply(START),
    f"{ONE}/plain": page("Plain", "/deeper"),
    f"{ONE}/deeper": page("Deeper"),
    f"{ONE}/no-follow": page("No follow"),
    f"{ONE}/query?b=2&a=1": page("Query"),
    f"{ONE}/deep/relative": page("Relative"),
    f"{ONE}/file.pdf": Reply(b"%PDF-1.4 <a href=/in-pdf>x</a>", kind="application/pdf"),
    f"{ONE}/gone": Reply(b"gone", 410),
    f"{ONE}/flaky": flaky,
    f"{ONE}/always500": Reply(b"broken", 500),
    f"{ONE}/forbidden": Reply(b"no", 403),
    f"{ONE}/cut": Reply(cut=True),
    f"{ONE}/hop1": moved("/hop2", 301),
    f"{ONE}/hop2": moved("http://two.test/target", 307),
    f"{ONE}/loop1": moved("/loop2"),
    f"{ONE}/loop2": moved("/loop1"),
    f"{ONE}/self": moved("/self"),
    f"{ONE}/nowhere": moved(""),
    f"{ONE}/empty": Reply(b""),
    f"{ONE}/latin": Reply(LATIN, kind="text/html; charset=ISO-8859-1"),
    f"{ONE}/no-type": Reply(b"<title>Untyped</title><a href=/from-untyped>x</a>", kind=""),
    f"{ONE}/from-untyped": page("From untyped"),
    f"{ONE}/large": Reply(b"<title>Large</title><a href=/from-large>x</a>" + b"<p>word " * 60_000),
    f"{ONE}/from-large": page("From large"),
    "http://two.test/far": page("Far"),
    "http://two.test/target": page("Target", "/after-target"),
    "http://two.test/after-target": page("After"),
}


class Small:
    """The crawl of CASES, done once."""

    def __init__(self, driver: Driver, directory: Path) -> None:
        with serving(pages_of(CASES)) as site:
            self.crawled = crawl(driver, site, directory, f"{ONE}/", WEBCRAWL_RETRY_DELAY_SECONDS=0)
            self.asked = Counter(site.urls)
        self.lines = json_lines(directory / "feed.jsonl")
        self.pages = {line["url"]: line for line in self.lines}
        self.ends = ends(directory / "run")


@pytest.fixture(scope="module")
def small(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(driver, tmp_path_factory.mktemp("small"))


def test_only_answers_with_a_body_give_an_item_and_each_gives_one(small: Small) -> None:
    assert small.crawled.reason == "finished", small.crawled.log
    assert "log_count/ERROR" not in small.crawled.stats, small.crawled.log
    with_body = (url for url, reply in CASES.items() if isinstance(reply, Reply) and reply.status == 200 and reply.body)
    answers = {*with_body, f"{ONE}/flaky"} - {f"{ONE}/no-follow"}
    assert sorted(line["url"] for line in small.lines) == sorted(answers)


def test_the_fields_of_a_page(small: Small) -> None:
    line = small.pages[f"{ONE}/"]
    links = {link["url"]: link for link in line.pop("links")}
    assert line.pop("fetched_at") > "2020-01-01T00:00:00"
    text = line.pop("text")
    assert "Hello" in text and "Plain & simple" in text and "The start" not in text.splitlines()[0]
    assert line == {
        "url": f"{ONE}/",
        "final_url": f"{ONE}/",
        "canonical_url": f"{ONE}/",
        "host": "one.test",
        "site": "one.test",
        "status": 200,
        "visit": 1,
        "depth": 0,
        "kind": "static",
        "score": 0.0,
        "content_type": "text/html",
        "charset": "UTF-8",
        "body_bytes": len(START),
        "content_hash": xxh3_128_hexdigest(START),
        "title": "The start",
        "language": "de",
        "description": "All cases.",
        "robots": "nosnippet",
        "directives": ["nosnippet"],
        "canonical_link": f"{ONE}/",
    }
    assert links[f"{ONE}/plain"] == {"url": f"{ONE}/plain", "anchor": "Plain & simple", "rel": ""}
    assert links[f"{ONE}/no-follow"] == {"url": f"{ONE}/no-follow", "anchor": "Not followed", "rel": "nofollow ugc"}
    assert f"{ONE}/deep/relative" in links
    assert all(url.startswith("http") for url in links)


def test_depth_is_counted_from_the_start_page_of_the_host(small: Small) -> None:
    depths = {url: line["depth"] for url, line in small.pages.items()}
    assert depths[f"{ONE}/plain"] == 1
    assert depths[f"{ONE}/deeper"] == 2
    assert depths["http://two.test/far"] == 1
    assert depths["http://two.test/after-target"] == depths["http://two.test/target"] + 1


def test_queries_are_dynamic_and_one_spelling_is_fetched(small: Small) -> None:
    queries = [line for line in small.lines if "query" in line["url"]]
    assert [line["kind"] for line in queries] == ["dynamic"]
    assert queries[0]["canonical_url"] == f"{ONE}/query?a=1&b=2"
    assert small.asked[f"{ONE}/query?b=2&a=1"] == 1
    assert small.asked[f"{ONE}/query?a=1&b=2"] == 0


def test_what_is_not_html_is_recorded_without_links(small: Small) -> None:
    line = small.pages[f"{ONE}/file.pdf"]
    assert (line["content_type"], line["links"], line["text"], line["title"]) == ("application/pdf", [], "", "")
    assert line["content_hash"] == xxh3_128_hexdigest(CASES[f"{ONE}/file.pdf"].body)
    assert small.asked[f"{ONE}/in-pdf"] == 0


def test_a_page_without_a_type_and_a_large_page_are_read(small: Small) -> None:
    assert small.pages[f"{ONE}/no-type"]["title"] == "Untyped"
    assert small.pages[f"{ONE}/large"]["title"] == "Large"
    assert {f"{ONE}/from-untyped", f"{ONE}/from-large"} <= small.pages.keys()


def test_the_charset_of_the_header_counts(small: Small) -> None:
    line = small.pages[f"{ONE}/latin"]
    assert (line["title"], line["charset"]) == ("Café", "windows-1252")
    assert "naïve" in line["text"]


@pytest.mark.parametrize(
    ("path", "end", "times"),
    [
        ("/missing", ("GONE", "NOT_FOUND"), 1),
        ("/gone", ("GONE", "NOT_FOUND"), 1),
        ("/forbidden", ("GONE", "HTTP_ERROR"), 1),
        ("/always500", ("GONE", "HTTP_ERROR"), 3),
        ("/flaky", ("STORED", "NONE"), 2),
        ("/hop1", ("STORED", "ALIAS"), 1),
        ("/hop2", ("STORED", "ALIAS"), 1),
        ("/loop1", ("STORED", "ALIAS"), 1),
        ("/loop2", ("STORED", "ALIAS"), 1),
        ("/self", ("STORED", "ALIAS"), 1),
        ("/nowhere", ("GONE", "REDIRECT_LOST"), 1),
        ("/empty", ("STORED", "NONE"), 1),
        ("/plain", ("STORED", "NONE"), 1),
    ],
)
def test_how_each_page_ends_and_how_often_it_was_asked_for(
    small: Small, path: str, end: tuple[str, str], times: int
) -> None:
    assert small.ends[ONE + path] == end
    assert small.asked[ONE + path] == times


def test_a_connection_that_breaks_is_tried_again_and_then_given_up(small: Small) -> None:
    assert small.ends[f"{ONE}/cut"] == ("GONE", "UNREACHABLE")
    assert 3 <= small.asked[f"{ONE}/cut"] <= 6, "a request on a kept connection that was just closed is sent once more"


def test_the_target_of_a_chain_of_redirects_is_stored_once(small: Small) -> None:
    assert small.asked["http://two.test/target"] == 1
    assert small.ends["http://two.test/target"] == ("STORED", "NONE")


def test_a_finished_run_ends_at_once_and_leaves_its_output_alone(driver: Driver, tmp_path: Path) -> None:
    with serving(pages_of({f"{ONE}/": page("One", "/a"), f"{ONE}/a": page("A")})) as site:
        crawl(driver, site, tmp_path, f"{ONE}/")
        before = hashlib.sha256((tmp_path / "feed.jsonl").read_bytes()).hexdigest()
        again = crawl(driver, site, tmp_path, f"{ONE}/")
        assert again.reason == "finished"
        assert site.urls == [f"{ONE}/", f"{ONE}/a"]
    assert hashlib.sha256((tmp_path / "feed.jsonl").read_bytes()).hexdigest() == before
    assert sorted(fed(tmp_path)) == [f"{ONE}/", f"{ONE}/a"]


# ------------------------------------------------------------------------------------------------ scope and limits

NAMES = ("http://a.site.test", "http://b.site.test", "http://other.test")


def everybody(asked: Asked) -> Reply:
    """Every host links to every other; each has a chain of pages /1 ... /6."""
    number = int(asked.target[1:] or 0) if asked.target[1:].isdigit() or asked.target == "/" else 99
    return page(f"{asked.host} {number}", *(f"{name}/" for name in NAMES), *([f"/{number + 1}"] if number < 6 else []))


@pytest.fixture(scope="module")
def hosts() -> Iterator[Site]:
    with serving(everybody) as site:
        yield site


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("hosts", {"a.site.test"}),
        ("sites", {"a.site.test", "b.site.test"}),
        ("all", {"a.site.test", "b.site.test", "other.test"}),
        (r"^http://(a|other)\.", {"a.site.test", "other.test"}),
    ],
)
def test_scope(driver: Driver, hosts: Site, tmp_path: Path, scope: str, expected: set[str]) -> None:
    crawled = crawl(driver, hosts, tmp_path, "http://a.site.test/", scope)
    assert crawled.reason == "finished"
    assert sorted(fed(tmp_path)) == sorted(f"http://{host}/{path}" for host in expected for path in ["", *range(1, 7)])


def test_include_and_exclude(driver: Driver, hosts: Site, tmp_path: Path) -> None:
    patterns = {"WEBCRAWL_INCLUDE": "//a\\.\n//other\\.", "WEBCRAWL_EXCLUDE": "/[34]$"}
    crawl(driver, hosts, tmp_path, "http://a.site.test/", **patterns)
    assert {url.rpartition("/")[2] for url in fed(tmp_path)} == {"", "1", "2"}
    assert {url.split("/")[2] for url in fed(tmp_path)} == {"a.site.test", "other.test"}


def test_the_page_limit_is_exact_and_the_run_goes_on_with_a_higher_one(
    driver: Driver, hosts: Site, tmp_path: Path
) -> None:
    crawled = crawl(driver, hosts, tmp_path, "http://a.site.test/", WEBCRAWL_LIMIT_PAGES=5)
    assert crawled.reason == "page_limit"
    assert len(fed(tmp_path)) == 5
    crawled = crawl(driver, hosts, tmp_path, "http://a.site.test/", WEBCRAWL_LIMIT_PAGES=8)
    assert crawled.reason == "page_limit"
    assert len(set(fed(tmp_path))) == len(fed(tmp_path)) == 8
    assert crawl(driver, hosts, tmp_path, "http://a.site.test/").reason == "finished"
    assert len(set(fed(tmp_path))) == len(fed(tmp_path)) == 21


def test_the_depth_limit(driver: Driver, hosts: Site, tmp_path: Path) -> None:
    assert crawl(driver, hosts, tmp_path, "http://a.site.test/", WEBCRAWL_LIMIT_DEPTH=2).reason == "finished"
    assert sorted(fed(tmp_path)) == sorted(f"{name}/{path}" for name in NAMES for path in ("", "1", "2"))
    assert ends(tmp_path / "run")["http://other.test/3"] == ("REFUSED", "TOO_DEEP")


def test_the_page_limit_per_host(driver: Driver, hosts: Site, tmp_path: Path) -> None:
    crawled = crawl(driver, hosts, tmp_path, "http://a.site.test/", WEBCRAWL_LIMIT_PAGES_PER_HOST=3)
    assert crawled.reason == "finished"
    assert Counter(url.split("/")[2] for url in fed(tmp_path)) == {"a.site.test": 3, "b.site.test": 3, "other.test": 3}


def test_the_time_limit_ends_a_crawl_that_waits(driver: Driver, hosts: Site, tmp_path: Path) -> None:
    polite: dict[str, Any] = {"WEBCRAWL_POLITENESS": "on", "WEBCRAWL_POLITENESS_DELAY_SECONDS": 300}
    crawled = crawl(driver, hosts, tmp_path, "http://a.site.test/", "hosts", WEBCRAWL_LIMIT_SECONDS=0.5, **polite)
    assert crawled.reason == "time_limit"
    assert crawled.stats["elapsed_time_seconds"] < 4  # not the heartbeat of the engine, which comes every 5 s
    assert hosts.urls[-1] == "http://a.site.test/robots.txt"


def test_the_byte_limit(driver: Driver, hosts: Site, tmp_path: Path) -> None:
    assert crawl(driver, hosts, tmp_path, "http://a.site.test/", "hosts", WEBCRAWL_LIMIT_BYTES=1).reason == "byte_limit"
    assert fed(tmp_path) == ["http://a.site.test/"]


def test_a_page_that_rests_for_long_does_not_hold_the_run_open(driver: Driver, tmp_path: Path) -> None:
    with serving(pages_of({f"{ONE}/": page("One", "/flaky"), f"{ONE}/flaky": flaky})) as site:
        waiting: dict[str, Any] = {"WEBCRAWL_RETRY_DELAY_SECONDS": 3600, "WEBCRAWL_END_WAIT_SECONDS": 60}
        assert crawl(driver, site, tmp_path, f"{ONE}/", **waiting).reason == "waiting"
        assert ends(tmp_path / "run")[f"{ONE}/flaky"] == ("RESTING", "HTTP_ERROR")
        assert crawl(driver, site, tmp_path, f"{ONE}/", **waiting).reason == "waiting"
        assert site.urls == [f"{ONE}/", f"{ONE}/flaky"]
    assert fed(tmp_path) == [f"{ONE}/"]


# ------------------------------------------------------------------------------------------------ order and pace


def tree(asked: Asked) -> Reply:
    """/, /a ... /c, /aa ... /cc."""
    name = asked.target[1:]
    return page(name, *(f"/{name}{letter}" for letter in "abc") if len(name) < 2 else ())


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("breadth_first", ["", "a", "b", "c", "aa", "ab", "ac", "ba", "bb", "bc", "ca", "cb", "cc"]),
        ("depth_first", ["", "c", "cc", "cb", "ca", "b", "bc", "bb", "ba", "a", "ac", "ab", "aa"]),
    ],
)
def test_the_order_of_the_crawl(driver: Driver, tmp_path: Path, strategy: str, expected: list[str]) -> None:
    with serving(tree) as site:
        one: dict[str, Any] = {"CONCURRENT_REQUESTS": 1, "WEBCRAWL_POLITENESS_OFF_CONNECTIONS": 1}
        crawl(driver, site, tmp_path, f"{ONE}/", WEBCRAWL_STRATEGY=strategy, **one)
        assert [asked.target[1:] for asked in site.asked] == expected


def test_a_host_is_asked_once_a_second_one_at_a_time_and_many_hosts_at_once(driver: Driver, tmp_path: Path) -> None:
    names = [f"http://host{number}.test" for number in range(5)]

    def answer(asked: Asked) -> Reply:
        return page(asked.url, *(["/1", "/2"] if asked.target == "/" else []))

    with serving(answer) as site:
        polite: dict[str, Any] = {"WEBCRAWL_POLITENESS": "on", "WEBCRAWL_POLITENESS_DELAY_SECONDS": 1}
        crawl(driver, site, tmp_path, " ".join(f"{name}/" for name in names), **polite)
        pauses = shortest_pauses(site.asked)
        took = max(asked.ended for asked in site.asked) - site.asked[0].began
    assert sorted(fed(tmp_path)) == sorted(f"{name}/{path}" for name in names for path in ("", "1", "2"))
    assert len(pauses) == len(names)
    assert min(pauses.values()) >= 1.0 - LATE_NOTE_SECONDS
    assert took < len(names) * 2  # one host after the other would take ten seconds


# ------------------------------------------------------------------------------------------------ an orderly stop


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_crawl_drains_and_resumes_without_loss(driver: Driver, tmp_path: Path, sign: signal.Signals) -> None:
    web = GeneratedWeb(pages=300, hosts=4, seed=5, page_bytes=500, links=20, broken_ratio=0)
    feed = tmp_path / "feed.jsonl"
    with serving(answers_of(web)) as site:
        command = crawl_command(web.seeds[0], tmp_path / "run", "-O", str(feed), CONCURRENT_REQUESTS=4)
        process = start(command, site.environment)
        site.wait_for(100)
        os.kill(process.pid, sign)
        code, log = finish(process)
        settled, asked = json_lines(feed), len(site.asked)
        assert code == 0, log
        assert "shutdown" in log
        assert "Traceback" not in log
        assert 0 < len(settled) < 300
        assert len(ends(tmp_path / "run")) >= len(settled)
        crawled = driver.crawl("web", site, {"WEBCRAWL_DIR": tmp_path / "run"}, {feed: {"format": "jsonlines"}},
                               seeds=web.seeds[0], scope="all")  # fmt: skip
        assert crawled.reason == "finished", crawled.log
        assert Counter(site.urls).most_common(1)[0][1] == 1, "what was under way was finished, not fetched again"
        assert len(site.asked) > asked
    urls = Counter(line["url"] for line in json_lines(feed))
    assert set(urls.values()) == {1}
    assert set(web.manifest()) <= set(urls)
