"""Feeds: every format and option, through kills and restarts; each item once, every file whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lxml.etree
import pytest

from tests.integration import user_spiders
from tests.integration.crawling import (
    Asked,
    Crawled,
    Driver,
    Reply,
    Site,
    answers_of,
    crawl_command,
    csv_rows,
    finish,
    json_lines,
    kill,
    page,
    serving,
    start,
)
from webcrawl.extensions.feeds import page_line
from webcrawl.items import Page
from webcrawl.simulator.generated import GeneratedWeb

ONE = "http://one.test"
FILE = user_spiders.__file__
PAGES = [f"{ONE}/", f"{ONE}/a", f"{ONE}/b", f"{ONE}/c"]


def answer(asked: Asked) -> Reply:
    return page(f"page {asked.target}", *PAGES, text='a "quoted", text;\nwith lines')


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(answer) as site:
        yield site


def crawl(driver: Driver, site: Site, directory: Path, feeds: dict[Path, dict[str, Any]], **settings: Any) -> Crawled:
    settings = {"WEBCRAWL_DIR": directory / "run", **settings}
    return driver.crawl("web", site, settings, feeds, seeds=f"{ONE}/", scope="all")


def test_four_formats_at_once_survive_a_kill(tmp_path: Path) -> None:
    web = GeneratedWeb(pages=150, hosts=5, seed=3, page_bytes=600, links=15, file_ratio=0, redirect_ratio=0)
    names = ("feed.jsonl", "feed.csv", "feed.json", "feed.xml")
    outputs = [part for name in names for part in ("-O", str(tmp_path / name))]
    command = crawl_command(web.seeds[0], tmp_path / "run", *outputs, CONCURRENT_REQUESTS=4)
    with serving(answers_of(web)) as site:
        process = start(command, site.environment)
        site.wait_for(75)
        kill(process)
        assert not (tmp_path / "feed.json").exists(), "it is written when the crawl closes"
        code, log = finish(start(command, site.environment))
        wanted = sorted(url for url in set(site.urls) if not url.endswith(("robots.txt", "favicon.ico")))
    assert code == 0, log
    assert "Traceback" not in log
    lines = json_lines(tmp_path / "feed.jsonl")
    urls = sorted(line["url"] for line in lines)
    assert set(web.manifest()) <= set(urls)
    assert set(urls) <= set(wanted)
    assert max(Counter(urls).values()) == 1
    header, *rows = csv_rows(tmp_path / "feed.csv")
    assert header == list(lines[0])
    assert {len(row) for row in rows} == {len(header)}
    assert sorted(row[0] for row in rows) == urls
    objects = json.loads((tmp_path / "feed.json").read_text())
    assert sorted(each["url"] for each in objects) == urls
    assert {each["url"]: each for each in objects} == {line["url"]: line for line in lines}
    items = lxml.etree.parse(tmp_path / "feed.xml").getroot()
    assert sorted(item.findtext("url") for item in items) == urls


def test_overwriting_begins_a_file_and_appending_goes_on_with_one(driver: Driver, site: Site, tmp_path: Path) -> None:
    fresh, old, table = tmp_path / "fresh.jsonl", tmp_path / "old.jsonl", tmp_path / "old.csv"
    fresh.write_text('{"url": "of another crawl"}\n')
    old.write_text('{"url": "of another crawl"}\n')
    table.write_text("url\nof another crawl\n")
    crawl(driver, site, tmp_path, {
        fresh: {"format": "jsonlines", "overwrite": True},
        old: {"format": "jsonlines"},
        table: {"format": "csv", "fields": ["url"]},
    })  # fmt: skip
    assert sorted(line["url"] for line in json_lines(fresh)) == PAGES
    assert sorted(line["url"] for line in json_lines(old)) == sorted([*PAGES, "of another crawl"])
    assert csv_rows(table)[:2] == [["url"], ["of another crawl"]]
    assert sorted(row[0] for row in csv_rows(table)[2:]) == PAGES


def test_a_whole_file_of_somebody_else_is_not_overwritten(driver: Driver, site: Site, tmp_path: Path) -> None:
    feed = tmp_path / "feed.json"
    feed.write_text("[]")
    before = len(site.asked)
    crawled = crawl(driver, site, tmp_path, {feed: {"format": "json"}})
    assert crawled.reason == "feed_failed"
    assert "cannot be appended to" in crawled.log
    assert feed.read_text() == "[]"
    assert len(site.asked) == before, "nothing is fetched that could not be written"
    crawl(driver, site, tmp_path, {feed: {"format": "json", "overwrite": True}})
    assert sorted(each["url"] for each in json.loads(feed.read_text())) == PAGES


def test_a_feed_that_cannot_be_opened_ends_the_crawl_before_it_begins(
    driver: Driver, site: Site, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    before = len(site.asked)
    assert (
        crawl(driver, site, tmp_path, {tmp_path / "file" / "feed.jsonl": {"format": "jsonlines"}}).reason
        == "feed_failed"
    )
    assert len(site.asked) == before


def test_a_resumed_run_continues_its_files_and_may_have_more_of_them(
    driver: Driver, site: Site, tmp_path: Path
) -> None:
    lines, table, first, second = (tmp_path / name for name in ("a.jsonl", "b.csv", "c.json", "d.json"))
    own = {lines: {"format": "jsonlines", "overwrite": True}, table: {"format": "csv", "overwrite": True}}
    crawl(driver, site, tmp_path, {**own, first: {"format": "json", "overwrite": True}}, WEBCRAWL_LIMIT_PAGES=2)
    assert len(json_lines(lines)) == len(csv_rows(table)) - 1 == len(json.loads(first.read_text())) == 2
    crawl(driver, site, tmp_path, {**own, second: {"format": "json", "overwrite": True}})
    assert sorted(line["url"] for line in json_lines(lines)) == PAGES
    assert sorted(row[0] for row in csv_rows(table)) == sorted([*PAGES, "url"])
    assert len(json.loads(first.read_text())) == 2, "nobody asked for it the second time"
    assert len(json.loads(second.read_text())) == 2, "what was settled before is in the other file"


def test_options_of_feeds(driver: Driver, site: Site, tmp_path: Path) -> None:
    crawl(driver, site, tmp_path, {
        tmp_path / "%(name)s" / "pages.jsonl": {"format": "jsonlines", "fields": ["url", "title"]},
        tmp_path / "renamed.csv": {
            "format": "csv",
            "fields": {"url": "Address", "depth": "Depth"},
            "item_export_kwargs": {"delimiter": ";"},
        },
        tmp_path / "bare.csv": {
            "format": "csv", "fields": ["url"], "item_export_kwargs": {"include_headers_line": False}
        },
        tmp_path / "none.jsonl": {"format": "jsonlines", "item_classes": ["scrapy.Item"]},
        tmp_path / "all.jsonl": {"format": "jsonlines", "item_classes": ["webcrawl.items.Page"]},
        tmp_path / "ascii.jsonl": {"format": "jsonlines", "encoding": "latin-1", "fields": ["url", "text"]},
        tmp_path / "packed.jsonl.gz": {
            "format": "jsonlines", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]
        },
    })  # fmt: skip
    assert [list(line) for line in json_lines(tmp_path / "web" / "pages.jsonl")] == [["url", "title"]] * len(PAGES)
    table = (tmp_path / "renamed.csv").read_text().splitlines()
    assert table[0] == "Address;Depth"
    assert sorted(table[1:]) == [f"{ONE}/;0", *(f"{url};1" for url in PAGES[1:])]
    assert sorted((tmp_path / "bare.csv").read_text().splitlines()) == PAGES
    assert json_lines(tmp_path / "none.jsonl") == []
    assert sorted(line["url"] for line in json_lines(tmp_path / "all.jsonl")) == PAGES
    assert len((tmp_path / "ascii.jsonl").read_bytes().splitlines()) == len(PAGES)
    import gzip

    packed = gzip.decompress((tmp_path / "packed.jsonl.gz").read_bytes()).splitlines()
    assert sorted(json.loads(line)["url"] for line in packed) == PAGES


def test_items_of_pipelines_and_of_start_are_in_every_feed(driver: Driver, tmp_path: Path) -> None:
    feeds = {
        tmp_path / "feed.jsonl": {"format": "jsonlines"},
        tmp_path / "feed.csv": {"format": "csv"},
        tmp_path / "feed.json": {"format": "json"},
    }
    with serving(lambda asked: Reply(f"<title>{asked.target[1:]}</title>".encode())) as site:
        crawled = driver.crawl(f"{FILE}:Doors", site, {"WEBCRAWL_DIR": tmp_path / "run"}, feeds)
    assert crawled.reason == "finished", crawled.log
    titles = Counter(line["title"] for line in json_lines(tmp_path / "feed.jsonl"))
    assert titles["before anything"] == 1
    assert not titles.keys() & {"drop", "break"}
    assert all(line["seen"] for line in json_lines(tmp_path / "feed.jsonl"))
    assert Counter(each["title"] for each in json.loads((tmp_path / "feed.json").read_text())) == titles
    header, *rows = csv_rows(tmp_path / "feed.csv")
    assert header == ["title", "seen"], "the columns of the first item, as in Scrapy"
    assert Counter(row[0] for row in rows) == titles


def page_with(title: str) -> Page:
    return Page("u", "u", "u", "h", "s", 200, "t", 1, 0, "static", 0.0, "text/html", "UTF-8", 0, "", title=title)


@pytest.mark.parametrize("title", ["plain", "ü", "half \ud83d", "line\nend", "\u2028", "\x00"])
def test_a_line_is_json_whatever_is_in_it(title: str) -> None:
    line = page_line(page_with(title))
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("utf-8"))["title"] == title


def test_a_line_holds_what_a_pipeline_put_into_a_page() -> None:
    changed = page_with("x")
    changed.text = {"a", "set"}  # type: ignore[assignment]
    assert sorted(json.loads(page_line(changed))["text"]) == ["a", "set"]
