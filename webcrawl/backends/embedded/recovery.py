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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from webcrawl.backends.embedded.journal import Claim, ClaimJournal
from webcrawl.backends.embedded.store import Store
from webcrawl.core.columns import Array, Columns
from webcrawl.core.errors import RunError
from webcrawl.core.lifecycle import Event, State
from webcrawl.core.pagetable import OWN, PageTable
from webcrawl.core.politeness import HostPolicy
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
    new_hosts_at: float = 0.0  # the last process asked hosts that are not on disk: whoever is new may be one of them
    suspects: list[tuple[int, str, bytes | None]] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    hosts_to_write: list[int] = field(default_factory=list)  # their next_at is not what is stored
    refused_links: list[int] = field(default_factory=lambda: [0] * (max(Reason) + 1))
    under_way: int = 0
    set_aside: int = 0
    owed_again: int = 0
    cut_bytes: int = 0
    was_clean: bool = True
    is_careful: bool = False  # the process died with a page under way that is not on disk: it cannot be named

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
    store: Store,
    journal: ClaimJournal,
    scorer: Scorer,
    random_seed: int,
    policy: HostPolicy,
    is_own: Callable[[str], bool],
    now: float,
) -> Recovered:
    """Read a run; `now` is the moment from which hosts may be made to wait."""
    recovered = Recovered(PageTable(), int(store.meta("hash_seed") or 1))
    recovered.owed_again, recovered.cut_bytes = _mend_feeds(store, was_clean=not journal.is_there)
    recovered.commits = int(store.rows("SELECT ifnull(max(id), 0) FROM commits")[0][0])
    _load_hosts(recovered, store, policy, is_own, now)
    _load_pages(recovered, store, scorer, random_seed)
    _load_records(recovered, store)
    recovered.unfinished = [int(page) for (page,) in store.rows("SELECT page FROM unfinished")]
    for reason, count in store.rows("SELECT reason, sum(count) FROM refusals GROUP BY reason"):
        recovered.refused_links[reason] = count
    claims = journal.read()
    _let_rest(recovered, store, claims, policy, now)
    _judge_claims(recovered, store, claims)
    journal.start([])
    _count_outside(recovered)
    return recovered


HOST_COLUMNS = (
    "next_at",
    "known",
    "stored",
    "failed",
    "dynamic",
    "body_bytes",
    "crawl_delay",
    "took",
    "rest_seconds",
    "incident_at",
    "steps",
    "trouble",
    "flags",
)


def _load_hosts(
    recovered: Recovered, store: Store, policy: HostPolicy, is_own: Callable[[str], bool], now: float
) -> None:
    """A host waits at most its own pause or rest beyond now, whatever is stored: the clock may have been set back."""
    hosts = recovered.table.hosts
    rows = store.rows(f"SELECT id, name, {', '.join(HOST_COLUMNS)} FROM hosts ORDER BY id")  # noqa: S608 - our names
    if not rows:
        return
    hosts.append(rows[-1][0])
    ids = np.array([row[0] for row in rows], np.uint32)
    names = np.array([key(row[1], recovered.hash_seed) for row in rows], np.uint64)
    recovered.table.host_ids.add(names, ids)
    for order, column in enumerate(HOST_COLUMNS, 2):
        getattr(hosts, column)[ids] = [row[order] for row in rows]
    own = np.array([OWN if is_own(row[1]) else 0 for row in rows], np.uint8)
    hosts.flags[ids] = (hosts.flags[ids] & ~np.uint8(OWN)) | own
    latest = now + np.maximum(_pauses(hosts, ids, policy), hosts.rest_seconds[ids])
    recovered.hosts_to_write = ids[hosts.next_at[ids] > latest].tolist()
    hosts.next_at[ids] = np.minimum(hosts.next_at[ids], latest)


def _pauses(hosts: Columns, ids: Array, policy: HostPolicy) -> Array:
    """The pause of each of these hosts: `HostPolicy.pause` for many."""
    is_large = hosts.stored[ids] > policy.large_pages
    base = np.where(is_large, policy.base(policy.large_pages + 1), policy.base(0))
    wished = hosts.crawl_delay[ids]
    if policy.crawl_delay_most_seconds:
        wished = np.minimum(wished, policy.crawl_delay_most_seconds)
    adaptive = np.minimum(policy.factor * hosts.took[ids], policy.factor_most_seconds)
    pauses = np.maximum(np.maximum(base, wished), adaptive)
    return np.where(hosts.flags[ids] & OWN, 0.0, pauses)


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
        table.page_ids.add(
            part[:, 1].view(np.uint64) if part.flags.f_contiguous else part[:, 1].copy().view(np.uint64), ids
        )
        table.by_state[State.READY] += len(ids)


def _load_records(recovered: Recovered, store: Store) -> None:
    table, pages = recovered.table, recovered.table.pages
    query = "SELECT page, state, reason, visits, failures, depth, due_at, score FROM records"
    for part in store.columns(query, np.float64):  # whole numbers are exact in it up to 2^53
        ids = part[:, 0].astype(np.int64)
        for order, column in enumerate(("state", "reason", "visits", "failures", "depth", "due"), 1):
            getattr(pages, column)[ids] = part[:, order]
        pages.score[ids] = part[:, 7]
        table.by_state[State.READY] -= len(ids)
        _tally(table.by_state, part[:, 1].astype(np.int64))
        _tally(table.by_reason, part[:, 2].astype(np.int64))
    table.by_reason[Reason.NONE] = 0
    due = pages.due[: pages.count + 1]
    waiting = due[due > 0]
    recovered.next_due = float(waiting.min()) if waiting.size else math.inf


def _tally(counts: list[int], values: Array) -> None:
    for value, count in enumerate(np.bincount(values, minlength=len(counts)).tolist()):
        counts[value] += count


def _let_rest(recovered: Recovered, store: Store, claims: list[Claim], policy: HostPolicy, now: float) -> None:
    """Hosts that were asked rest for a full pause. That is written down, or a second kill would forget it."""
    hosts = recovered.table.hosts
    asked = {claim.host for claim in claims}
    latest = now + policy.base(0)
    found_before = min(float(store.meta("new_hosts_at") or 0.0), latest)
    recovered.new_hosts_at = latest if any(host > hosts.count for host in asked) else found_before
    known = np.array(sorted(host for host in asked if host <= hosts.count), np.uint32)
    pauses = _pauses(hosts, known, policy)
    for target, value in store.rows("SELECT target, value FROM controls WHERE kind = 'delay' AND value IS NOT NULL"):
        delayed = known == recovered.table.host_ids.get(key(target, recovered.hash_seed))
        pauses[delayed] = np.maximum(pauses[delayed], float(value))
    hosts.next_at[known] = np.maximum(hosts.next_at[known], now + pauses)
    changed = [*recovered.hosts_to_write, *known.tolist()]
    with store.writer:
        rests = ((float(hosts.next_at[host]), host) for host in changed)
        store.writer.executemany("UPDATE hosts SET next_at = ? WHERE id = ?", rests)
        store.writer.execute("INSERT OR REPLACE INTO meta VALUES('new_hosts_at', ?)", (str(recovered.new_hosts_at),))


def _judge_claims(recovered: Recovered, store: Store, claims: list[Claim]) -> None:
    pages = recovered.table.pages
    open_claims = {claim.page: claim for claim in claims if _is_open(recovered.table, claim)}
    recovered.under_way = len(open_claims)
    recovered.was_clean = not claims
    recovered.is_careful = any(claim.page > pages.count and not claim.came_back for claim in claims)
    crashes = dict(store.rows("SELECT page, crashes FROM suspects"))
    with store.writer:
        for page in (page for page, claim in open_claims.items() if not claim.came_back):
            crashes[page] = crashes.get(page, 0) + 1
            store.writer.execute("INSERT OR REPLACE INTO suspects VALUES(?, ?)", (page, crashes[page]))
        doomed = [page for page, count in crashes.items() if count >= SUSPECT_CRASHES]
        for page in doomed:
            _set_aside(recovered, store, page)
            del crashes[page]
    _quarantine(recovered, store, {page: count for page, count in crashes.items() if pages.state[page] == State.READY})


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
            (
                page,
                int(State.REFUSED),
                int(Reason.CRASHED),
                int(pages.visits[page]),
                int(pages.depth[page]),
                float(pages.score[page]),
            ),
        )
    store.writer.execute("DELETE FROM suspects WHERE page = ?", (page,))


def _quarantine(recovered: Recovered, store: Store, crashes: dict[int, int]) -> None:
    """Suspects run one at a time, the least suspect first (the last of the list), else in an order that differs at
    every start: a kill from outside hits another one."""
    if not crashes:
        return
    recovered.suspects = store.urls(np.array(list(crashes)))
    random.SystemRandom().shuffle(recovered.suspects)
    recovered.suspects.sort(key=lambda found: -crashes[found[0]])
    recovered.table.pages.working[list(crashes)] = True


def _count_outside(recovered: Recovered) -> None:
    pages, hosts = recovered.table.pages, recovered.table.hosts
    count = pages.count + 1
    outside = np.flatnonzero((pages.state[:count] == State.READY) & ~pages.working[:count])
    per_host = np.bincount(pages.host[outside], minlength=1)
    hosts.outside[: len(per_host)] = per_host
    recovered.outside = len(outside)


# ------------------------------------------------------------------------------------------------ output files


def _mend_feeds(store: Store, was_clean: bool) -> tuple[int, int]:
    """Cut every output file to what is settled; (pages owed again, bytes cut off).

    After a clean end there is nothing unsettled: what a file has grown by since then is somebody else's, and stays.
    """
    feeds = {
        number: (Path(path), settled)
        for number, path, settled in store.rows("SELECT id, path, settled_bytes FROM feeds")
    }
    if any(_size(path) < settled for path, settled in feeds.values()):
        _check_there(feeds)
        return _go_back(store, feeds)
    if was_clean:
        return _adopt(store, feeds), 0
    return 0, sum(_cut(path, settled) for path, settled in feeds.values())


def _adopt(store: Store, feeds: dict[int, tuple[Path, int]]) -> int:
    """Go on behind what others have appended; no page is owed for that."""
    grown = [(number, _size(path)) for number, (path, settled) in feeds.items() if _size(path) > settled]
    with store.writer:
        store.writer.executemany("UPDATE feeds SET settled_bytes = ?2 WHERE id = ?1", grown)
        if grown:  # what earlier commits say about lengths is no longer where their pages end
            store.writer.execute("DELETE FROM commits WHERE id < (SELECT max(id) FROM commits)")
    return 0


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _cut(path: Path, length: int) -> int:
    spare = _size(path) - length
    if spare > 0:
        os.truncate(path, length)
    return max(spare, 0)


def _go_back(store: Store, feeds: dict[int, tuple[Path, int]]) -> tuple[int, int]:
    """A file is shorter than what is settled (power loss): go back to the last commit that is wholly there. A commit
    from before a file belonged to the run is no help: it does not know how long that file was."""
    for number, lengths_text in store.rows("SELECT id, lengths FROM commits ORDER BY id DESC"):
        lengths = {int(feed): length for feed, length in json.loads(lengths_text).items()}
        if all(feed in lengths and _size(path) >= lengths[feed] for feed, (path, _) in feeds.items()):
            return _owe_since(store, number, lengths), sum(
                _cut(path, lengths[feed]) for feed, (path, _) in feeds.items()
            )
    raise _lost(next(path for path, settled in feeds.values() if _size(path) < settled))


def _check_there(feeds: dict[int, tuple[Path, int]]) -> None:
    """A power cut shortens a file; one that is gone was moved: the whole crawl must not be fetched again for that."""
    for path, settled in feeds.values():
        if settled and not path.exists():
            raise _lost(path)


def _lost(path: Path) -> RunError:
    return RunError(
        f"{path} is missing or has lost most of what this run wrote to it.",
        "Going on would leave those pages out of it for ever.",
        "Put the file back, or start a new run with -s WEBCRAWL_DIR=DIR.",
    )


def _owe_since(store: Store, commit: int, lengths: dict[int, int]) -> int:
    """Everything that was settled after this commit is owed again."""
    settled = (int(State.STORED), int(State.GONE))  # a page that is gone may have left a line, too
    with store.writer:
        query = (
            "SELECT p.host, count(*) FROM records r JOIN pages p ON p.id = r.page"
            " WHERE r.settled_in > ? AND r.state = ? GROUP BY p.host"
        )
        stored = store.writer.execute(query, (commit, int(State.STORED))).fetchall()
        store.writer.executemany("UPDATE hosts SET stored = max(0, stored - ?2) WHERE id = ?1", stored)
        store.writer.execute(
            "UPDATE records SET state = ?, reason = 0, due_at = 0 WHERE settled_in > ? AND state IN (?, ?)",
            (int(State.READY), commit, *settled),
        )
        owed = store.writer.changes()
        # What these commits say about lengths will soon be true of other bytes.
        store.writer.execute("DELETE FROM commits WHERE id > ?", (commit,))
        for feed, length in lengths.items():
            store.writer.execute(
                "UPDATE feeds SET settled_bytes = ?1, header = iif(?1 = 0, NULL, header) WHERE id = ?2", (length, feed)
            )
    return owed
