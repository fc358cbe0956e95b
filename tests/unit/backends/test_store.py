"""The store: files of older versions are brought up to date with all their rows, and records keep what pages asked."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from webcrawl.backends.embedded.store import MIGRATIONS, SCHEMA, SCHEMA_VERSION, Store
from webcrawl.core.frontier import Lease, Offer, Report, Visit
from webcrawl.core.lifecycle import Event
from webcrawl.core.reasons import Reason
from webcrawl.testing import EmbeddedCrawl, Manners

NOW = 1_000_000.0

# As version 1 wrote it.
FIRST_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pages(id INTEGER PRIMARY KEY, url TEXT NOT NULL, key INTEGER NOT NULL, host INTEGER NOT NULL,
    parent INTEGER NOT NULL, depth INTEGER NOT NULL, kind INTEGER NOT NULL, found_at REAL NOT NULL, request TEXT);
CREATE TABLE records(page INTEGER PRIMARY KEY, state INTEGER NOT NULL, reason INTEGER NOT NULL, visits INTEGER NOT NULL,
    failures INTEGER NOT NULL, depth INTEGER NOT NULL, score REAL NOT NULL, due_at INTEGER NOT NULL,
    first_at REAL, last_at REAL, changes INTEGER NOT NULL DEFAULT 0, unchanged_seconds REAL NOT NULL DEFAULT 0,
    status INTEGER, mime TEXT, body_bytes INTEGER, text_bytes INTEGER, content_hash INTEGER,
    latency_seconds REAL, total_seconds REAL, original INTEGER, settled_in INTEGER);
CREATE TABLE links(page INTEGER PRIMARY KEY, targets BLOB NOT NULL);
CREATE TABLE hosts(id INTEGER PRIMARY KEY, name TEXT NOT NULL, site TEXT NOT NULL, next_at REAL NOT NULL DEFAULT 0,
    known INTEGER NOT NULL DEFAULT 0, stored INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    dynamic INTEGER NOT NULL DEFAULT 0, body_bytes INTEGER NOT NULL DEFAULT 0, address TEXT, resolved_at REAL);
CREATE TABLE refusals(host INTEGER, reason INTEGER, count INTEGER NOT NULL, PRIMARY KEY(host, reason)) WITHOUT ROWID;
CREATE TABLE feeds(id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, path TEXT NOT NULL, format TEXT NOT NULL,
    settled_bytes INTEGER NOT NULL, header TEXT);
CREATE TABLE commits(id INTEGER PRIMARY KEY, at REAL NOT NULL, lengths TEXT NOT NULL);
CREATE TABLE suspects(page INTEGER PRIMARY KEY, crashes INTEGER NOT NULL);
CREATE TABLE unfinished(page INTEGER PRIMARY KEY);
CREATE TABLE starts(id INTEGER PRIMARY KEY, started_at REAL NOT NULL, ended_at REAL, reason TEXT, ledger TEXT);
"""
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "meta": [("hash_seed", "7"), ("schema_version", "1")],
    "pages": [
        (1, "http://a.test/", 11, 1, 0, 0, 0, 5.0, None),
        (2, "http://a.test/x?y=1", -12, 1, 1, 1, 1, 6.0, None),
        (3, "http://b.test/", 13, 2, 1, 0, 0, 6.0, '{"meta": {"a": 1}}'),
    ],
    "records": [
        (1, 4, 0, 1, 0, 0, 0.5, 0, 5.0, 6.0, 0, 0.0, 200, "text/html", 9, 4, -5, 0.1, 0.2, None, 1),
        (2, 6, 40, 1, 1, 1, 0.25, 0, 7.0, 7.0, 0, 0.0, 404, "", 0, 0, None, 0.1, 0.1, None, 2),
    ],
    "links": [(1, b"\x02\0\0\0\x03\0\0\0")],
    "hosts": [
        (1, "a.test", "a.test", 20.0, 2, 1, 1, 1, 9, None, None),
        (2, "b.test", "b.test", 0.0, 1, 0, 0, 0, 0, None, None),
    ],
    "refusals": [(0, 1, 4), (1, 3, 2)],
    "feeds": [(1, "f.jsonl", "/nowhere/f.jsonl", "jsonlines", 0, None)],
    "commits": [(1, 6.0, "{}"), (2, 7.0, "{}")],
    "suspects": [(3, 1)],
    "unfinished": [(1,)],
    "starts": [(1, 5.0, 8.0, "finished", "known 3")],
}


def old_store(directory: Path) -> Path:
    """A run that version 1 left."""
    directory.mkdir()
    path = directory / "frontier.sqlite"
    with sqlite3.connect(path) as store:
        store.executescript(FIRST_SCHEMA)
        for table, rows in ROWS.items():
            store.executemany(f"INSERT INTO {table} VALUES({','.join('?' * len(rows[0]))})", rows)
    store.close()
    return path


def asked(path: Path, query: str) -> list[Any]:
    """Of a file that nobody else has open: two SQLite libraries in one process undo each other's locks."""
    store = sqlite3.connect(path)
    try:
        return store.execute(query).fetchall()
    finally:
        store.close()


def columns(path: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Name, type and default of every column; those added later stand at the end of their table, or not."""
    tables = [name for (name,) in asked(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {table: {row[1:] for row in asked(path, f"PRAGMA table_info({table})")} for table in tables}


def test_a_store_of_the_first_version_is_brought_up_to_date_with_all_its_rows(tmp_path: Path) -> None:
    path = old_store(tmp_path / "old")
    Store(path.parent).close()
    assert asked(path, "SELECT value FROM meta WHERE key = 'schema_version'") == [(str(SCHEMA_VERSION),)]
    for table, rows in ROWS.items():
        if table != "meta":
            found = asked(path, f"SELECT * FROM {table} ORDER BY 1")
            assert [row[: len(rows[0])] for row in found] == rows, table
    assert asked(path, "SELECT directives FROM records") == [(None,), (None,)]
    assert asked(path, "SELECT crawl_delay, flags FROM hosts") == [(0.0, 0), (0.0, 0)]
    Store(path.parent).close()  # nothing is left to do


def test_a_store_brought_up_to_date_is_the_same_as_a_new_one(tmp_path: Path) -> None:
    Store(old_store(tmp_path / "old").parent).close()
    (tmp_path / "new").mkdir()
    Store(tmp_path / "new").close()
    assert columns(tmp_path / "old" / "frontier.sqlite") == columns(tmp_path / "new" / "frontier.sqlite")


def test_there_is_a_way_from_every_version_to_the_next() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))
    assert len(re.findall("CREATE TABLE", SCHEMA)) >= len(ROWS)


# ------------------------------------------------------------------------------------------------ what pages asked


@pytest.fixture
def crawl(tmp_path: Path) -> EmbeddedCrawl:
    crawl = EmbeddedCrawl(tmp_path / "run", Manners(), NOW)
    crawl.frontier.offer([Offer("http://a.test/")], NOW)
    return crawl


def visited(crawl: EmbeddedCrawl, now: float, lease: Lease, **report: Any) -> None:
    directives = report.pop("directives", "")
    visit = Visit(now, 200, "text/html", directives=directives)
    crawl.frontier.report(Report(lease, visit, Event.STORE, **report), now)
    crawl.commit(now)


def leased(crawl: EmbeddedCrawl, now: float) -> Lease:
    answer = crawl.next(now)
    assert isinstance(answer, list)
    return answer[0]


def test_a_record_says_what_the_page_asked_at_the_last_visit(crawl: EmbeddedCrawl) -> None:
    words = ["noindex", "tdm-reservation: 1"]
    visited(crawl, NOW, leased(crawl, NOW), directives=json.dumps(words), due_at=NOW + 1000)
    found = crawl.run.store.rows("SELECT value FROM records, json_each(directives)")
    assert [word for (word,) in found] == words
    visited(crawl, NOW + 1000, leased(crawl, NOW + 1000))
    assert crawl.run.store.rows("SELECT visits, directives FROM records") == [(2, None)]
    crawl.close(NOW + 1000)


def test_links_that_are_not_followed_are_counted_for_the_host_that_asks(crawl: EmbeddedCrawl, tmp_path: Path) -> None:
    visited(crawl, NOW, leased(crawl, NOW), nofollow_links=3, links=["http://b.test/"])
    visited(crawl, NOW, leased(crawl, NOW), nofollow_links=2)
    assert crawl.frontier.counts().reasons[Reason.NOFOLLOW] == 5
    crawl.close(NOW)
    query = "SELECT h.name, r.reason, r.count FROM refusals r JOIN hosts h ON h.id = r.host ORDER BY 1"
    assert asked(tmp_path / "run" / "frontier.sqlite", query) == [("a.test", 9, 3), ("b.test", 9, 2)]
    again = EmbeddedCrawl(tmp_path / "run", Manners(), NOW)
    assert again.frontier.counts().reasons[Reason.NOFOLLOW] == 5
    again.close(NOW)
