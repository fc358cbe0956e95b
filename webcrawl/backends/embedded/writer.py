"""The writer: settles groups of reports, one after the other, off the event loop.

For each group, in this order: append the output bytes to the feeds, sync them, then one transaction with the page rows,
records, links, hosts and the new lengths of the feeds, then acknowledge. So at any kill -9:
- a settled page has its output inside the settled length of its feed;
- bytes behind the settled length belong to no settled page and are cut off at the next start;
- no settlement is on disk before the one that caused it, because groups are written in order.

A full or failing disk ends the crawl, not the data: the feeds are cut back to what is settled, the group is dropped,
and its pages are fetched again next time.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from webcrawl.backends.embedded.store import Store, explain
from webcrawl.core.errors import StoreError

KEPT_COMMITS = 1_000
MOST_GROUPS = 20
MOST_REPORTS = 5_000

Row = tuple[Any, ...]


@dataclass(slots=True)
class Group:
    """Settlements that are written together."""

    number: int
    pages: list[Row] = field(default_factory=list)
    records: list[Row] = field(default_factory=list)
    changes: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)
    hosts: list[Row] = field(default_factory=list)
    host_updates: list[Row] = field(default_factory=list)
    refusals: list[Row] = field(default_factory=list)
    robots: list[Row] = field(default_factory=list)
    asked_again: list[Row] = field(default_factory=list)
    addresses: list[Row] = field(default_factory=list)
    controls: list[Row] = field(default_factory=list)
    meta: list[Row] = field(default_factory=list)
    outputs: dict[int, list[bytes]] = field(default_factory=dict)
    headers: list[Row] = field(default_factory=list)
    cleared: list[Row] = field(default_factory=list)
    unfinished: list[Row] = field(default_factory=list)
    finished: list[Row] = field(default_factory=list)
    reports: int = 0
    done: list[Callable[[], None]] = field(default_factory=list)

    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (
            self.pages
            or self.records
            or self.changes
            or self.host_updates
            or self.refusals
            or self.robots
            or self.asked_again
            or self.addresses
            or self.controls
            or self.meta
            or self.outputs
            or self.done
        )


VISITED = """
INSERT INTO records(page, state, reason, visits, failures, depth, score, due_at, first_at, last_at, status, mime,
    body_bytes, text_bytes, content_hash, latency_seconds, total_seconds, original, settled_in,
    directives)
VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)
ON CONFLICT(page) DO UPDATE SET
    changes = changes + (excluded.status BETWEEN 200 AND 299 AND content_hash IS NOT excluded.content_hash
        AND content_hash IS NOT NULL),
    unchanged_seconds = unchanged_seconds + iif(content_hash IS excluded.content_hash,
        excluded.last_at - ifnull(last_at, excluded.last_at), 0),
    state = excluded.state, reason = excluded.reason, visits = excluded.visits, failures = excluded.failures,
    depth = excluded.depth, score = excluded.score, due_at = excluded.due_at,
    first_at = ifnull(first_at, excluded.first_at), last_at = excluded.last_at, status = excluded.status,
    mime = excluded.mime, body_bytes = excluded.body_bytes, text_bytes = excluded.text_bytes,
    content_hash = excluded.content_hash, latency_seconds = excluded.latency_seconds,
    total_seconds = excluded.total_seconds, original = excluded.original, settled_in = excluded.settled_in,
    directives = excluded.directives"""

CHANGED = """
INSERT INTO records(page, state, reason, visits, failures, depth, score, due_at) VALUES(?,?,?,?,?,?,?,?)
ON CONFLICT(page) DO UPDATE SET state = excluded.state, reason = excluded.reason, failures = excluded.failures,
    depth = excluded.depth, score = excluded.score, due_at = excluded.due_at"""

HOST = """
UPDATE hosts SET next_at = ?2, known = ?3, stored = ?4, failed = ?5, dynamic = ?6, body_bytes = ?7, crawl_delay = ?8,
    took = ?9, rest_seconds = ?10, incident_at = ?11, steps = ?12, trouble = ?13, flags = ?14 WHERE id = ?1"""

# A file that could not be had this time does not take the place of the one there is.
ROBOTS = """
INSERT INTO robots VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT(origin) DO UPDATE SET crawl_delay = excluded.crawl_delay, page = excluded.page,
    answer = excluded.answer, status = excluded.status,
    asked_at = excluded.asked_at, expires_at = excluded.expires_at, retry_at = excluded.retry_at,
    retries = excluded.retries, unreachable_since = excluded.unreachable_since, digest = excluded.digest,
    body = ifnull(excluded.body, iif(excluded.answer = 0, body, NULL))"""

REFUSAL = "INSERT INTO refusals VALUES(?,?,?) ON CONFLICT(host, reason) DO UPDATE SET count = count + excluded.count"

# In this order: what a row refers to is there before it.
STATEMENTS = (
    ("pages", "INSERT INTO pages VALUES(?,?,?,?,?,?,?,?,?)"),
    ("hosts", "INSERT INTO hosts(id, name, site) VALUES(?,?,?)"),
    ("records", VISITED),
    ("changes", CHANGED),
    ("links", "INSERT OR REPLACE INTO links VALUES(?,?)"),
    ("host_updates", HOST),
    ("refusals", REFUSAL),
    ("robots", ROBOTS),
    ("asked_again", "UPDATE robots SET expires_at = 0, retry_at = 0, retries = 0 WHERE origin = ?"),
    ("addresses", "INSERT OR REPLACE INTO addresses VALUES(?,?,?)"),
    ("controls", "INSERT OR REPLACE INTO controls VALUES(?,?,?,?)"),
    ("meta", "INSERT OR REPLACE INTO meta VALUES(?,?)"),
    ("headers", "UPDATE feeds SET header = ?2 WHERE id = ?1"),
    ("cleared", "DELETE FROM suspects WHERE page = ?"),
    ("unfinished", "INSERT OR IGNORE INTO unfinished VALUES(?)"),
    ("finished", "DELETE FROM unfinished WHERE page = ?"),
)


class FeedFile:
    """One output file that only the writer appends to."""

    def __init__(self, number: int, path: Path, settled_bytes: int) -> None:
        self.number = number
        self.path = path
        self.settled_bytes = settled_bytes
        self.is_used = False  # whether this process gives it anything
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, data: bytes) -> None:
        """Write all of it; the length is settled later, with the commit."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def sync(self) -> None:
        """Make the bytes survive a power cut, where the system can."""
        getattr(os, "fdatasync", os.fsync)(self._file)

    def cut(self) -> None:
        """Back to what is settled."""
        os.ftruncate(self._file, self.settled_bytes)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


class Writer:
    """A thread that writes groups in the order they were handed over."""

    def __init__(self, store: Store, sync: str, on_failure: Callable[[StoreError], None]) -> None:
        self._store = store
        self._syncs = sync == "full"
        self._on_failure = on_failure
        self.feeds: dict[int, FeedFile] = {}
        self.commits = 0
        self.settled_page = 0
        self.failure: StoreError | None = None
        self._queue: SimpleQueue[Group | None] = SimpleQueue()
        self._handed_over = 0  # each is counted by one thread only
        self._written = 0
        self._thread = threading.Thread(target=self._run, name="webcrawl-writer", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """Reports handed over and not yet on disk."""
        return self._handed_over - self._written

    @property
    def is_behind(self) -> bool:
        """Whether so much waits for the disk that no more should be taken in: memory must stay bounded."""
        return self._queue.qsize() > MOST_GROUPS or self.backlog > MOST_REPORTS

    def hand_over(self, group: Group) -> None:
        """Queue a group; the caller must not touch it again."""
        self._handed_over += group.reports
        self._queue.put(group)

    def close(self) -> None:
        """Write everything that was handed over, then stop."""
        self._queue.put(None)
        self._thread.join()
        for feed in self.feeds.values():
            feed.close()

    def _run(self) -> None:
        while (group := self._queue.get()) is not None:
            if self.failure is None:
                self._try(group)
            self._written += group.reports

    def _try(self, group: Group) -> None:
        try:
            self._write(group)
        except Exception as error:  # noqa: BLE001 - whatever it is: a thread that died would settle nothing, silently
            self.fail(error)
            self._cut_back()
            return
        for done in group.done:
            done()

    def fail(self, error: Exception) -> None:
        """The store cannot be used any more: say so once, and settle nothing after this."""
        if self.failure is None:
            self.failure = explain(self._store.path, error)
            self._on_failure(self.failure)

    def _write(self, group: Group) -> None:
        lengths = self._append(group.outputs)
        connection = self._store.writer
        with connection:
            for name, statement in STATEMENTS:
                if rows := getattr(group, name):
                    connection.executemany(statement, rows)
            self._note_commit(group.number, lengths)
        for number, length in lengths.items():
            self.feeds[number].settled_bytes = length
        if group.pages:
            self.settled_page = group.pages[-1][0]
        self.commits += 1

    def _note_commit(self, number: int, lengths: dict[int, int]) -> None:
        connection = self._store.writer
        if lengths:
            connection.executemany("UPDATE feeds SET settled_bytes = ?2 WHERE id = ?1", list(lengths.items()))
        every = json.dumps({feed.number: lengths.get(feed.number, feed.settled_bytes) for feed in self.feeds.values()})
        connection.execute("INSERT INTO commits VALUES(?,?,?)", (number, time.time(), every))
        connection.execute("DELETE FROM commits WHERE id < ?", (number - KEPT_COMMITS,))

    def _append(self, outputs: dict[int, list[bytes]]) -> dict[int, int]:
        lengths = {}
        for number, parts in outputs.items():
            feed, data = self.feeds[number], b"".join(parts)
            feed.append(data)
            if self._syncs:
                feed.sync()
            lengths[number] = feed.settled_bytes + len(data)
        return lengths

    def _cut_back(self) -> None:
        for feed in self.feeds.values():
            try:
                feed.cut()
            except OSError:  # the next start cuts it
                pass
