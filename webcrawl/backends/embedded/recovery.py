"""Recovery: from what is on disk to a frontier that goes on as if nothing had happened.

In order: output files are cut to their settled length; pages and hosts are read into columns; the claim journal tells
which pages were under way. Those are ready again, their hosts rest for a full pause, and if the crawler has now died
three times with the same page under way, that page is set aside. The result says in numbers what was found.
"""

from __future__ import annotations

import json
import math
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from webcrawl.backends.embedded.journal import Claim, ClaimJournal
from webcrawl.backends.embedded.store import Store
from webcrawl.core.columns import Array
from webcrawl.core.errors import RunError
from webcrawl.core.lifecycle import Event, State
from webcrawl.core.pagetable import PageTable
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import NewPages, Scorer
from webcrawl.core.urls import key

SUSPECT_CRASHES = 3


@dataclass(slots=True)
class Recovered:
    """A page table as it was, and what has to be done about the way the last process ended."""

    table: PageTable
    hash_seed: int
    commits: int = 0
    outside: int = 0
    next_due: float = math.inf
    suspects: list[tuple[int, str, bytes | None]] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    refused_links: list[int] = field(default_factory=lambda: [0] * (max(Reason) + 1))
    under_way: int = 0
    set_aside: int = 0
    owed_again: int = 0
    cut_bytes: int = 0
    was_clean: bool = True

    def sentence(self) -> str:
        """What was found, for people."""
        parts = [self.table.counts().sentence()]
        if self.under_way:
            parts.append(f"{self.under_way:,} pages were under way and will be fetched again")
        if self.set_aside:
            parts.append(f"{self.set_aside:,} set aside because the crawler died {SUSPECT_CRASHES} times on them")
        if self.cut_bytes:
            parts.append(f"{self.cut_bytes:,} unsettled bytes cut off the output")
        if self.owed_again:
            parts.append(f"{self.owed_again:,} pages whose output was lost will be fetched again")
        return "; ".join(parts)


def recover(
    store: Store, journal: ClaimJournal, scorer: Scorer, random_seed: int, delay_seconds: float, now: float
) -> Recovered:
    """Read a run; `now` is the moment from which hosts may be made to wait."""
    recovered = Recovered(PageTable(), int(store.meta("hash_seed") or 1))
    recovered.owed_again, recovered.cut_bytes = _mend_feeds(store)
    recovered.commits = int(store.rows("SELECT ifnull(max(id), 0) FROM commits")[0][0])
    _load_hosts(recovered, store, now + delay_seconds)
    _load_pages(recovered, store, scorer, random_seed)
    _load_records(recovered, store)
    recovered.unfinished = [int(page) for (page,) in store.rows("SELECT page FROM unfinished")]
    for reason, count in store.rows("SELECT reason, sum(count) FROM refusals GROUP BY reason"):
        recovered.refused_links[reason] = count
    _judge_claims(recovered, store, journal, now + delay_seconds)
    _count_outside(recovered)
    return recovered


def _load_hosts(recovered: Recovered, store: Store, latest: float) -> None:
    """A host waits at most its own pause beyond now, whatever is stored: the clock may have been set back."""
    hosts = recovered.table.hosts
    rows = store.rows("SELECT id, name, next_at, known, stored, failed, dynamic, body_bytes FROM hosts ORDER BY id")
    if not rows:
        return
    hosts.append(rows[-1][0])
    ids = np.array([row[0] for row in rows], np.uint32)
    names = np.array([key(row[1], recovered.hash_seed) for row in rows], np.uint64)
    recovered.table.host_ids.add(names, ids)
    for order, column in enumerate(("next_at", "known", "stored", "failed", "dynamic", "body_bytes"), 2):
        getattr(hosts, column)[ids] = [row[order] for row in rows]
    hosts.next_at[ids] = np.minimum(hosts.next_at[ids], latest)


def _load_pages(recovered: Recovered, store: Store, scorer: Scorer, random_seed: int) -> None:
    table = recovered.table
    pages = table.pages
    pages.append(store.last_page())
    for part in store.columns("SELECT id, key, host, depth << 8 | kind FROM pages"):
        ids = part[:, 0].astype(np.uint32)
        pages.host[ids] = part[:, 2]
        pages.depth[ids] = part[:, 3] >> 8
        pages.kind[ids] = part[:, 3] & 255
        pages.state[ids] = State.READY
        pages.score[ids] = scorer(NewPages(ids, pages.depth[ids], pages.kind[ids], random_seed))
        table.page_ids.add(part[:, 1].view(np.uint64) if part.flags.f_contiguous else part[:, 1].copy().view(np.uint64), ids)
        table.by_state[State.READY] += len(ids)


def _load_records(recovered: Recovered, store: Store) -> None:
    table, pages = recovered.table, recovered.table.pages
    query = "SELECT page, state, reason, visits, failures, depth, due_at, CAST(score * 1048576 AS INTEGER) FROM records"
    for part in store.columns(query):
        ids = part[:, 0]
        for order, column in enumerate(("state", "reason", "visits", "failures", "depth", "due"), 1):
            getattr(pages, column)[ids] = part[:, order]
        pages.score[ids] = part[:, 7] / 1048576
        table.by_state[State.READY] -= len(ids)
        _tally(table.by_state, part[:, 1])
        _tally(table.by_reason, part[:, 2])
    table.by_reason[Reason.NONE] = 0
    due = pages.due[: pages.count + 1]
    waiting = due[due > 0]
    recovered.next_due = float(waiting.min()) if waiting.size else math.inf


def _tally(counts: list[int], values: Array) -> None:
    for value, count in enumerate(np.bincount(values, minlength=len(counts)).tolist()):
        counts[value] += count


def _judge_claims(recovered: Recovered, store: Store, journal: ClaimJournal, rest_until: float) -> None:
    claims = journal.read()
    pages, hosts = recovered.table.pages, recovered.table.hosts
    open_claims = {claim.page: claim for claim in claims if _is_open(recovered.table, claim)}
    recovered.under_way = len(open_claims)
    recovered.was_clean = not claims
    for claim in claims:
        if claim.host <= hosts.count:
            hosts.next_at[claim.host] = max(hosts.next_at[claim.host], rest_until)
    crashes = dict(store.rows("SELECT page, crashes FROM suspects"))
    with store.writer:
        for page in (page for page, claim in open_claims.items() if not claim.came_back):
            crashes[page] = crashes.get(page, 0) + 1
            store.writer.execute("INSERT OR REPLACE INTO suspects VALUES(?, ?)", (page, crashes[page]))
        doomed = [page for page, count in crashes.items() if count >= SUSPECT_CRASHES]
        for page in doomed:
            _set_aside(recovered, store, page)
            del crashes[page]
    journal.start([])
    _quarantine(recovered, store, [page for page in crashes if pages.state[page] == State.READY])


def _is_open(table: PageTable, claim: Claim) -> bool:
    """Whether the store does not know the visit that this claim was for."""
    pages = table.pages
    if claim.page > pages.count or pages.state[claim.page] != State.READY:
        return False
    return int(pages.visits[claim.page]) <= claim.visit


def _set_aside(recovered: Recovered, store: Store, page: int) -> None:
    pages = recovered.table.pages
    if pages.state[page] == State.READY:
        recovered.table.move(page, Event.REFUSE, Reason.CRASHED)
        recovered.set_aside += 1
        store.writer.execute(
            "INSERT INTO records(page, state, reason, visits, failures, depth, score, due_at) VALUES(?,?,?,?,0,?,?,0)"
            " ON CONFLICT(page) DO UPDATE SET state = excluded.state, reason = excluded.reason",
            (page, int(State.REFUSED), int(Reason.CRASHED), int(pages.visits[page]), int(pages.depth[page]),
             float(pages.score[page])),
        )
    store.writer.execute("DELETE FROM suspects WHERE page = ?", (page,))


def _quarantine(recovered: Recovered, store: Store, pages: list[int]) -> None:
    """Suspects run one at a time, in an order that differs at every start: a kill from outside hits another one."""
    if not pages:
        return
    recovered.suspects = store.urls(np.array(pages))
    random.SystemRandom().shuffle(recovered.suspects)
    recovered.table.pages.working[pages] = True


def _count_outside(recovered: Recovered) -> None:
    pages, hosts = recovered.table.pages, recovered.table.hosts
    count = pages.count + 1
    outside = np.flatnonzero((pages.state[:count] == State.READY) & ~pages.working[:count])
    per_host = np.bincount(pages.host[outside], minlength=1)
    hosts.outside[: len(per_host)] = per_host
    recovered.outside = len(outside)


# ------------------------------------------------------------------------------------------------ output files


def _mend_feeds(store: Store) -> tuple[int, int]:
    """Cut every output file to what is settled; (pages owed again, bytes cut off)."""
    feeds = {number: (Path(path), settled) for number, path, settled in
             store.rows("SELECT id, path, settled_bytes FROM feeds")}
    if any(_size(path) < settled for path, settled in feeds.values()):
        return _go_back(store, feeds)
    return 0, sum(_cut(path, settled) for path, settled in feeds.values())


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _cut(path: Path, length: int) -> int:
    spare = _size(path) - length
    if spare > 0:
        os.truncate(path, length)
    return max(spare, 0)


def _go_back(store: Store, feeds: dict[int, tuple[Path, int]]) -> tuple[int, int]:
    """A file is shorter than what is settled (power loss): go back to the last commit that is wholly there."""
    for number, lengths_text in store.rows("SELECT id, lengths FROM commits ORDER BY id DESC"):
        lengths = {int(feed): length for feed, length in json.loads(lengths_text).items()}
        if all(_size(path) >= lengths.get(feed, 0) for feed, (path, _) in feeds.items()):
            return _owe_since(store, number), sum(_cut(path, lengths.get(feed, 0)) for feed, (path, _) in feeds.items())
    missing = next(path for path, settled in feeds.values() if _size(path) < settled)
    raise RunError(
        f"{missing} is missing or has lost most of what this run wrote to it.",
        "Going on would leave those pages out of it for ever.",
        "Put the file back, or start a new run with -s WEBCRAWL_DIR=DIR.",
    )


def _owe_since(store: Store, commit: int) -> int:
    lengths = json.loads(store.rows("SELECT lengths FROM commits WHERE id = ?", commit)[0][0])
    with store.writer:
        store.writer.execute(
            "UPDATE records SET state = ?, reason = 0, due_at = 0 WHERE settled_in > ? AND state = ?",
            (int(State.READY), commit, int(State.STORED)),
        )
        owed = store.writer.changes()
        for feed, length in lengths.items():
            store.writer.execute("UPDATE feeds SET settled_bytes = ? WHERE id = ?", (length, int(feed)))
    return owed


