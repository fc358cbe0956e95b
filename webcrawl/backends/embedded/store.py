"""The store of a run: one SQLite file that can be opened and asked questions while the crawl runs.

Tables
    meta      key, value: schema and canonicalisation version, hash seed, what the run is about
    pages     one row per known page, written once: id, url as found, key, host, parent (first page that linked to it),
              depth when found, kind (0 static, 1 dynamic), found_at, request (JSON of a spider's own request)
    records   one row per page that was visited, refused or changed: state, reason, visits, times, status, sizes,
              content hash, alias target, due_at, current depth and score, the commit that settled it
              (Castillo 2004, §7.3.1), what the page asked of robots (a JSON list; NULL: nothing)
    links     targets of a settled page as packed little-endian uint32 page ids: the truth the link graph is made from
    hosts     one row per host: name, site, next_at (when it may be asked again), counts (Castillo 2004, §7.3.1),
              what it asked for (crawl_delay), how long its last answer took, the length of its rest, its troubles
    robots    one row per origin: what its robots.txt answered, when it must be asked again, the file
    addresses where hosts lived, newest last: a row whenever that changes
    controls  what the operator has changed while the crawl ran: rules by kind and target; no value: taken back
    refusals  links that got no row: how many per host (0: no row of its own) and reason; the host is the one that the
              link leads to, for `nofollow` the one that asks
    feeds     output files and the length of each that is settled
    commits   the last thousand commits and the settled lengths of the feeds after each, as JSON
    suspects  pages that were under way when the process died, and how often
    unfinished pages whose depth was lowered and whose links must still be looked at
    starts    one row per process that worked on this run: when, how it ended, the ledger

Rules kept here:
1. One writer connection, one reader connection; the event loop touches neither.
2. A transaction holds whole settlements. What it says about a feed is already in that file (see `writer`).
3. Through apsw, because SQLite before 3.51.3 can damage a file when two connections commit and checkpoint at once.
4. The file is made for one user (mode 0700 on the directory): stored requests may hold passwords.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from webcrawl.core.columns import Array
from webcrawl.core.errors import RunError, StoreError

SCHEMA_VERSION = 4
FILE_NAME = "frontier.sqlite"
ROWS_AT_ONCE = 50_000
CACHE_KIB = 16_384  # of each of the two connections; pages are written in the order of their ids, so little is enough

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pages(id INTEGER PRIMARY KEY, url TEXT NOT NULL, key INTEGER NOT NULL, host INTEGER NOT NULL,
    parent INTEGER NOT NULL, depth INTEGER NOT NULL, kind INTEGER NOT NULL, found_at REAL NOT NULL, request TEXT);
CREATE TABLE records(page INTEGER PRIMARY KEY, state INTEGER NOT NULL, reason INTEGER NOT NULL, visits INTEGER NOT NULL,
    failures INTEGER NOT NULL, depth INTEGER NOT NULL, score REAL NOT NULL, due_at INTEGER NOT NULL,
    first_at REAL, last_at REAL, changes INTEGER NOT NULL DEFAULT 0, unchanged_seconds REAL NOT NULL DEFAULT 0,
    status INTEGER, mime TEXT, body_bytes INTEGER, text_bytes INTEGER, content_hash INTEGER,
    latency_seconds REAL, total_seconds REAL, original INTEGER, settled_in INTEGER, directives TEXT);
CREATE TABLE links(page INTEGER PRIMARY KEY, targets BLOB NOT NULL);
CREATE TABLE hosts(id INTEGER PRIMARY KEY, name TEXT NOT NULL, site TEXT NOT NULL, next_at REAL NOT NULL DEFAULT 0,
    known INTEGER NOT NULL DEFAULT 0, stored INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    dynamic INTEGER NOT NULL DEFAULT 0, body_bytes INTEGER NOT NULL DEFAULT 0, address TEXT, resolved_at REAL,
    crawl_delay REAL NOT NULL DEFAULT 0, took REAL NOT NULL DEFAULT 0, rest_seconds INTEGER NOT NULL DEFAULT 0,
    incident_at REAL NOT NULL DEFAULT 0, steps INTEGER NOT NULL DEFAULT 0, trouble INTEGER NOT NULL DEFAULT 0,
    flags INTEGER NOT NULL DEFAULT 0);
CREATE TABLE robots(origin TEXT PRIMARY KEY, host INTEGER NOT NULL, crawl_delay REAL NOT NULL, page INTEGER NOT NULL,
    answer INTEGER NOT NULL, status INTEGER NOT NULL, asked_at REAL NOT NULL, expires_at REAL NOT NULL,
    retry_at REAL NOT NULL, retries INTEGER NOT NULL, unreachable_since REAL NOT NULL,
    digest INTEGER NOT NULL, body BLOB) WITHOUT ROWID;
CREATE TABLE refusals(host INTEGER, reason INTEGER, count INTEGER NOT NULL, PRIMARY KEY(host, reason)) WITHOUT ROWID;
CREATE TABLE feeds(id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, path TEXT NOT NULL, format TEXT NOT NULL,
    settled_bytes INTEGER NOT NULL, header TEXT);
CREATE TABLE commits(id INTEGER PRIMARY KEY, at REAL NOT NULL, lengths TEXT NOT NULL);
CREATE TABLE suspects(page INTEGER PRIMARY KEY, crashes INTEGER NOT NULL);
CREATE TABLE unfinished(page INTEGER PRIMARY KEY);
CREATE TABLE starts(id INTEGER PRIMARY KEY, started_at REAL NOT NULL, ended_at REAL, reason TEXT, ledger TEXT);
CREATE TABLE addresses(host INTEGER, seen_at REAL, addresses TEXT NOT NULL, PRIMARY KEY(host, seen_at)) WITHOUT ROWID;
CREATE TABLE controls(kind TEXT, target TEXT, value TEXT, set_at REAL NOT NULL, PRIMARY KEY(kind, target))
    WITHOUT ROWID;
"""

# From each older version to the next, one transaction each.
MIGRATIONS = {
    1: """
ALTER TABLE hosts ADD COLUMN crawl_delay REAL NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN took REAL NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN rest_seconds INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN incident_at REAL NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN trouble INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN flags INTEGER NOT NULL DEFAULT 0;
CREATE TABLE robots(origin TEXT PRIMARY KEY, host INTEGER NOT NULL, crawl_delay REAL NOT NULL, page INTEGER NOT NULL,
    answer INTEGER NOT NULL, status INTEGER NOT NULL, asked_at REAL NOT NULL, expires_at REAL NOT NULL,
    retry_at REAL NOT NULL, retries INTEGER NOT NULL, unreachable_since REAL NOT NULL,
    digest INTEGER NOT NULL, body BLOB) WITHOUT ROWID;
""",
    2: """
ALTER TABLE records ADD COLUMN directives TEXT;
""",
    3: """
CREATE TABLE addresses(host INTEGER, seen_at REAL, addresses TEXT NOT NULL, PRIMARY KEY(host, seen_at)) WITHOUT ROWID;
CREATE TABLE controls(kind TEXT, target TEXT, value TEXT, set_at REAL NOT NULL, PRIMARY KEY(kind, target))
    WITHOUT ROWID;
""",
}


class Store:
    """Opens the run's file and reads it; writing is the business of `writer`."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        is_new = not self.path.exists()
        try:
            self.writer = self._connect()
            if is_new:
                self._create()
            self._check_version()
            self.reader = self._connect()
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise damaged(self.path, error) from error
        except apsw.FullError as error:
            raise disk_full(self.path) from error
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
            raise StoreError(
                f"{self.path} cannot be opened: {error}.", "", "Look at the directory's owner, rights and disk."
            ) from error

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path))
        connection.set_busy_timeout(10_000)
        connection.pragma("page_size", 8192)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", 2)
        connection.pragma("cache_size", -CACHE_KIB)
        return connection

    def set_sync(self, sync: str) -> None:
        """How much a commit waits for the disk: `full` survives a power cut."""
        self.writer.pragma("synchronous", 2 if sync == "full" else 1)

    def _create(self) -> None:
        with self.writer:
            self.writer.execute(SCHEMA)
            self.writer.execute(
                "INSERT INTO meta VALUES('schema_version', ?), ('created_at', ?)",
                (str(SCHEMA_VERSION), str(time.time())),
            )

    def _check_version(self) -> None:
        tables = self.writer.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'").fetchone()
        if tables == (0,):  # killed between creating the file and the schema's commit
            self._create()
        found = int(self.meta("schema_version") or 0)
        if found > SCHEMA_VERSION:
            raise RunError(
                f"{self.path} was written by a newer webcrawl (its schema is {found}, ours is {SCHEMA_VERSION}).",
                "Writing to it could lose data.",
                "Upgrade webcrawl, or choose another directory with -s WEBCRAWL_DIR=DIR.",
            )
        for version in range(found, SCHEMA_VERSION):
            self._migrate(version)

    def _migrate(self, version: int) -> None:
        with self.writer:
            self.writer.execute(MIGRATIONS[version])
            self.writer.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version + 1),))

    def meta(self, key: str) -> str | None:
        """One value of the run's description."""
        row = self.writer.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, **values: str) -> None:
        """Write values of the run's description at once."""
        with self.writer:
            self.writer.executemany("INSERT OR REPLACE INTO meta VALUES(?, ?)", list(values.items()))

    def columns(self, query: str, kind: npt.DTypeLike = np.int64) -> Iterator[Array]:
        """The rows of an all-number query as arrays of (rows, columns), a part at a time."""
        cursor = self.reader.execute(query)
        while rows := list(islice(cursor, ROWS_AT_ONCE)):
            width = len(rows[0])
            flat = np.fromiter(chain.from_iterable(rows), kind, len(rows) * width)
            yield flat.reshape(len(rows), width)

    def rows(self, query: str, *arguments: Any) -> list[Any]:
        """All rows of a query, as tuples."""
        return self.reader.execute(query, arguments).fetchall()

    def last_page(self) -> int:
        """The highest page id."""
        return int(self.rows("SELECT ifnull(max(id), 0) FROM pages")[0][0])

    def urls(self, pages: Array) -> list[tuple[int, str, bytes | None]]:
        """(page, url, request) of these pages, those that are there. One step of SQLite for all of them, so that
        the thread does not fight for the interpreter's lock at every row (0.8 µs a page)."""
        wanted = np.sort(pages).astype(np.int64)
        query = (
            "SELECT group_concat(p.id || ' ' || p.url, char(10)), json_group_object(p.id, p.request) FILTER"
            " (WHERE p.request IS NOT NULL) FROM carray(?) c CROSS JOIN pages p ON p.id = c.value"
        )
        [(text, requests)] = self.rows(query, apsw.carray(wanted))
        special = json.loads(requests or "{}")
        found = []
        for line in (text or "").split("\n"):
            if line:
                page, _, url = line.partition(" ")
                request = special.get(page)
                found.append((int(page), url, request.encode() if request else None))
        return found

    def links(self, pages: list[int]) -> list[tuple[int, Array]]:
        """(page, targets) of these pages, those whose settlement is on disk; a page may have no links."""
        query = (
            "SELECT r.page, ifnull(l.targets, x'') FROM carray(?) c CROSS JOIN records r ON r.page = c.value"
            " LEFT JOIN links l ON l.page = r.page WHERE r.state = 4"
        )
        rows = self.rows(query, apsw.carray(np.array(pages, np.int64)))
        return [(page, np.frombuffer(targets, "<u4")) for page, targets in rows]

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it."""
        self.reader.close()
        try:
            self.writer.pragma("wal_checkpoint", "TRUNCATE")
        except apsw.Error:  # a full disk: everything stays in the log, and the next start reads it there
            pass
        self.writer.close()


def damaged(path: Path, error: Exception) -> StoreError:
    """The sentence for a file SQLite cannot read."""
    return StoreError(
        f"{path} is damaged: {error}.",
        "Going on could make it worse, so nothing was written.",
        f"Restore it from a copy, save what is readable with `sqlite3 {path.name} .recover`, or start anew with "
        "-s WEBCRAWL_DIR=DIR.",
    )


def disk_full(path: Path) -> StoreError:
    """The sentence for a full disk."""
    return StoreError(
        f"The disk that holds {path.parent} is full.",
        "Pages fetched since the last commit are not settled and will be fetched again.",
        "Free some space and start the same command: it resumes.",
    )


def explain(path: Path, error: Exception) -> StoreError:
    """The sentence for whatever went wrong while the store was read or written."""
    if isinstance(error, apsw.FullError) or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(path)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return damaged(path, error)
    return StoreError(
        f"Working in {path.parent} failed: {error}.",
        "Pages fetched since the last commit are not settled and will be fetched again.",
        "Look at the disk and start the same command: it resumes.",
    )


def check_mode(directory: Path) -> None:
    """Make the run directory, for this user alone; one that is there already keeps its rights."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
