"""Spiders that know nothing of webcrawl, on its scheduler: they must behave as in Scrapy, and survive kill -9."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration import user_spiders
from tests.integration.crawling import (
    LATE_NOTE_SECONDS,
    OWN_WEB,
    Asked,
    Crawled,
    Driver,
    Reply,
    Site,
    finish,
    json_lines,
    kill,
    moved,
    page,
    serving,
    shortest_pauses,
    start,
)

ONE = "http://one.test"
FILE = user_spiders.__file__
NO_REST = {"WEBCRAWL_RETRY_DELAY_SECONDS": 0}
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "WEBCRAWL_POLITENESS_OFF_CONNECTIONS": 1}


def answer(asked: Asked) -> Reply:
    """What the spiders of this file meet."""
    path = asked.target.partition("?")[0]
    if path == "/always500" or (path == "/flaky" and asked.count == 1):
        return Reply(b"later", 503)
    if path.startswith("/missing"):
        return Reply(b"no", 404)
    if path == "/cut":
        return Reply(cut=True)
    if path == "/to-plain":
        return moved("/plain2")
    if path == "/far":
        return moved("http://far.test/")
    if path == "/search":
        return Reply(asked.body, kind="text/plain")
    if path == "/timeout":
        time.sleep(1.0)  # longer than the request's own limit
    if asked.url == f"{ONE}/" and "shop" in asked.headers.get("User-Agent", ""):
        return page("Shop", "/category/1", "/item/0", "http://other.test/item/9")
    if path == "/category/1":
        return page("One", "/category/2", "/item/1", "/item/2", "/item/1#same")
    if path == "/category/2":
        return page("Two", "/category/1", "/item/2", "/item/3")
    return page(path[1:])


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(answer) as site:
        yield site


def crawl(driver: Driver, site: Site, directory: Path, spider: str, **settings: Any) -> tuple[Crawled, list[Any]]:
    """(what came of it, items)."""
    settings = {"WEBCRAWL_DIR": directory / "run", **settings}
    feed = directory / "feed.jsonl"
    crawled = driver.crawl(f"{FILE}:{spider}", site, settings, {feed: {"format": "jsonlines", "overwrite": True}})
    assert crawled.reason == "finished", (crawled.error, crawled.log)
    return crawled, json_lines(feed)


def test_rules(driver: Driver, site: Site, tmp_path: Path) -> None:
    _, items = crawl(driver, site, tmp_path, "Shop", USER_AGENT="shop")
    assert sorted((item["url"], item["found"], item["text"]) for item in items) == [
        (f"{ONE}/item/{number}", "by rule", f"to /item/{number}") for number in range(4)
    ]
    assert {item["url"]: item["depth"] for item in items}[f"{ONE}/item/0"] == 1
    assert max(Counter(site.urls).values()) == 1
    assert "http://other.test/item/9" not in site.urls, "Scrapy's OffsiteMiddleware still works"


def test_everything_a_request_carries_arrives(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawled, items = crawl(driver, site, tmp_path, "Arguments")
    assert crawled.notes == [[True, True, [None, 1.5]]]
    asked = {asked.method: asked for asked in site.asked}
    assert asked["GET"].headers["X-Test"] == "yes"
    assert asked["GET"].headers["Cookie"] == "taste=sweet"
    assert asked["GET"].headers["Referer"] == "http://from.test/"
    assert asked["POST"].body == b"field=%C3%A4+%C3%B6"
    assert asked["POST"].headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert asked["POST"].headers["Referer"] == ONE
    assert asked["PUT"].body == b"\xff\x00"
    found = {item["method"]: item for item in items}
    kept = {"kept": [None, 1.5], "cookiejar": 7, "flags": [], "depth": 1}
    assert found["POST"] == {"url": f"{ONE}/form", "method": "POST", **kept}
    assert found["PUT"]["flags"] == ["mine"]


def test_errback_and_callback_see_the_last_outcome_once(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawled, items = crawl(driver, site, tmp_path, "Failures", **NO_REST)
    assert sorted(map(tuple, crawled.notes)) == [
        ("answered", "fine", 200),
        ("answered", "flaky", 200),
        ("answered", "raises", 200),
        ("failed", "always500", 503, "HttpError"),
        ("failed", "cut", 0, "ConnectionDroppedError"),
        ("failed", "missing", 404, "HttpError"),
    ]
    assert Counter(site.urls)[f"{ONE}/always500"] == 3
    paths = Counter(item["path"] for item in items)
    assert paths == dict.fromkeys(("fine", "flaky", "raises", "child", "always500", "cut", "missing"), 1)
    assert crawled.stats["spider_exceptions/ValueError"] == 1
    again, same = crawl(driver, site, tmp_path, "Failures", **NO_REST)
    assert again.notes == [], "the page whose callback failed is settled, too"
    assert same == items


def test_priority_decides_then_age(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawl(driver, site, tmp_path, "Ordered", **ONE_BY_ONE)
    assert [asked.target for asked in site.asked] == ["/", "/10?3", "/5?1", "/5?4", "/1?5", "/0?0", "/-3?2"]


def test_dont_filter_repeats_and_the_rest_is_filtered_also_at_the_next_start(
    driver: Driver, site: Site, tmp_path: Path
) -> None:
    _, items = crawl(driver, site, tmp_path, "Repeating")
    assert Counter(site.urls) == {f"{ONE}/": 2, f"{ONE}/same": 4, f"{ONE}/once": 1}
    assert len(items) == 7
    _, same = crawl(driver, site, tmp_path, "Repeating")
    assert len(site.asked) == 7, "the start requests of the second start are the same as those of the first"
    assert same == items


def test_requests_that_cannot_be_written_down_are_made_all_the_same(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawled, items = crawl(driver, site, tmp_path, "Lambdas", **NO_REST)
    assert sorted(str(item["number"]) for item in items) == ["0", "1", "2", "child", "flaky"]
    assert crawled.stats["webcrawl/requests_in_memory"] == 4


def test_middlewares_pipelines_and_signals_of_a_project(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawled, items = crawl(driver, site, tmp_path, "Doors", **NO_REST)
    assert sorted(item["title"] for item in items) == sorted(
        ["before anything", "canned", "replacement", "again", "rescued", "plain", "plain2", ""]
    )
    assert all(item["seen"] for item in items)
    asked = Counter(site.urls)
    assert asked[f"{ONE}/ignored"] == asked[f"{ONE}/canned"] == asked[f"{ONE}/replaced"] == 0
    assert asked[f"{ONE}/again"] == 2
    assert asked[f"{ONE}/plain"] == asked[f"{ONE}/plain2"] == asked["http://far.test/"] == 1
    notes = Counter(map(tuple, crawled.notes))
    assert notes["failed", f"{ONE}/ignored", "IgnoreRequest"] == 1
    assert notes["failed", f"{ONE}/swallowed", "IgnoreRequest"] == 1
    assert notes["dropped", f"{ONE}/plain"] == 1, "the second request for a page is dropped aloud, as in Scrapy"
    assert notes["scheduled", f"{ONE}/plain"] == 2
    assert notes["item dropped", "drop"] == notes["item error", "break"] == 1
    assert notes["received", f"{ONE}/canned"] == 1


@pytest.mark.parametrize(
    ("setting", "missing"),
    [
        ("DOWNLOADER_MIDDLEWARES", {"webcrawl.middlewares.outcome.OutcomeMiddleware": None}),
        (
            "EXTENSIONS",
            {"scrapy.extensions.feedexport.FeedExporter": 0, "webcrawl.extensions.feeds.SettledFeeds": None},
        ),
    ],
)
def test_a_crawl_without_a_part_of_ours_is_refused(
    driver: Driver, site: Site, tmp_path: Path, setting: str, missing: dict[str, int | None]
) -> None:
    feeds: dict[Path, dict[str, Any]] = {tmp_path / "feed.jsonl": {"format": "jsonlines"}}
    crawled = driver.crawl(f"{FILE}:Media", site, {"WEBCRAWL_DIR": tmp_path / "run", setting: missing}, feeds)
    assert next(iter(missing)) in crawled.log + crawled.error
    assert site.asked == []


def test_a_spider_with_a_middleware_of_its_own_needs_no_other_change(
    driver: Driver, site: Site, tmp_path: Path
) -> None:
    _, items = crawl(driver, site, tmp_path, "Plain")
    assert len(items) == 7


def test_the_retries_of_a_project_work_too(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawled, items = crawl(driver, site, tmp_path, "Retrying", WEBCRAWL_RETRY_TIMES=0)
    assert Counter(site.urls) == {f"{ONE}/flaky": 2, f"{ONE}/always500": 2}
    assert [item["title"] for item in items] == ["flaky"]
    assert ["failed", f"{ONE}/always500", "HttpError"] in crawled.notes


def test_requests_beside_the_scheduler_do_not_disturb(driver: Driver, site: Site, tmp_path: Path) -> None:
    _, items = crawl(driver, site, tmp_path, "Media")
    assert sorted((item["of"][-1], item["status"], item["url"]) for item in items) == [
        (of, status, f"{ONE}/{name}")
        for of in "ab"
        for status, name in sorted([(200, f"image?of={of}"), (200, "plain2"), (404, f"missing?of={of}")])
    ]
    _, same = crawl(driver, site, tmp_path, "Media")
    assert same == items


def test_requests_beside_the_scheduler_keep_pauses_and_robots(driver: Driver, tmp_path: Path) -> None:
    """Also while their page is being worked on; what robots.txt forbids is not asked for."""

    def closed(asked: Asked) -> Reply:
        robots = Reply(b"User-agent: *\nDisallow: /missing\n", kind="text/plain")
        return robots if asked.target == "/robots.txt" else answer(asked)

    with serving(closed) as site:
        polite: dict[str, Any] = {"WEBCRAWL_POLITENESS": "on", "WEBCRAWL_POLITENESS_DELAY_SECONDS": 1}
        _, items = crawl(driver, site, tmp_path, "Media", **polite, WEBCRAWL_POLITENESS_DELAY_FACTOR=0)
        assert sorted(item["url"] for item in items) == [
            f"{ONE}/image?of=a",
            f"{ONE}/image?of=b",
            *[f"{ONE}/plain2"] * 2,
        ]
        assert not [url for url in site.urls if "missing" in url]
        assert site.urls.count(f"{ONE}/robots.txt") == 1
        assert min(shortest_pauses(site.asked).values()) >= 1.0 - LATE_NOTE_SECONDS


def test_odd_requests(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawled, items = crawl(driver, site, tmp_path, "Odd", **NO_REST)
    assert sorted(item["url"] for item in items) == [f"{ONE}/?query", f"{ONE}/class"]
    assert {item.get("kind") for item in items} == {None, "Item"}
    assert sorted(crawled.notes) == [
        ["failed", f"{ONE}/always500", "HttpError"],
        ["failed", f"{ONE}/always500?2", "HttpError"],
        ["failed", f"{ONE}/timeout", "DownloadTimeoutError"],
    ]
    asked = Counter(site.urls)
    assert (asked[f"{ONE}/always500"], asked[f"{ONE}/always500?2"]) == (1, 2)
    assert "A request is not made: 'data:,text' is neither http nor https." in crawled.log
    assert "A request is not made: 'http://no" in crawled.log


def expected_catalogue() -> list[str]:
    lists, details = range(user_spiders.Catalogue.lists), range(user_spiders.Catalogue.details)
    items: list[dict[str, Any]] = [{"list": number} for number in lists]
    items += [
        {"key": [number, detail], "url": f"{ONE}/detail/{number}/{detail}", "from": f"{ONE}/list/{number}"}
        for number in lists
        for detail in details
    ]
    items += [{"search": f"list={number}"} for number in lists]
    items += [{"poll": number} for number in lists] + [{"lost": number} for number in lists]
    return sorted(map(json.dumps, items))


def test_a_script_that_is_killed_goes_on_where_it_was(driver: Driver, site: Site, tmp_path: Path) -> None:
    feed = tmp_path / "feed.jsonl"
    settings = {**OWN_WEB, "WEBCRAWL_DIR": str(tmp_path / "run"), "FEEDS": {str(feed): {"format": "jsonlines"}}}
    command = [FILE, "Catalogue", json.dumps({**settings, "CONCURRENT_REQUESTS": 4})]
    for more in (1, 60, 70):
        process = start(command, site.environment, tmp_path)
        site.wait_for(len(site.asked) + more)
        assert "Traceback" not in kill(process)
    code, log = finish(start(command, site.environment, tmp_path))
    assert code == 0, log
    assert "Traceback" not in log
    assert sorted(map(json.dumps, json_lines(feed))) == expected_catalogue()


def test_a_stored_request_that_the_spider_no_longer_understands_is_set_aside(
    driver: Driver, site: Site, tmp_path: Path
) -> None:
    settings = {"WEBCRAWL_DIR": tmp_path / "run", "WEBCRAWL_LIMIT_PAGES": 12, **ONE_BY_ONE}
    assert driver.crawl(f"{FILE}:Catalogue", site, settings).reason == "page_limit"
    crawled = driver.crawl(f"{FILE}:Renamed", site, {"WEBCRAWL_DIR": tmp_path / "run"})
    assert crawled.reason == "finished"
    assert "cannot be used by this spider any more" in crawled.log
    kinds = Counter(asked.target.split("/")[1] for asked in site.asked)
    assert kinds == dict.fromkeys(("list", "search", "poll", "missing"), 12)
