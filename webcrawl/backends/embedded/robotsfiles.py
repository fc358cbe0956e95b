"""The robots.txt files a frontier goes by: which are known, which must be fetched first, and what they allow.

How it works:
- One file per origin (scheme, host, port). A page is asked for only when its origin's file is known and not too old;
  `check` says what to do with a page that is about to be leased.
- A file is fetched like a page: it has a row, stands in front of its host's queue, is leased, journalled and reported.
  So it keeps the host's pause, survives a kill, and is fetched once however many pages wait for it.
- A file that cannot be had (5xx, 429, no answer) forbids its origin for now (RFC 9309 §2.3.1.4): pages rest until it is
  tried again. An older copy goes on being used meanwhile (§2.4). After thirty days it counts as not there.
- A redirect is a further request, to the host it leads to; up to five (§2.3.1.2).
- Parsed files are kept for the origins in use; the others are read back from the store, in the refill's thread.
- A file that changes brings back what the old one refused: those pages are ready again and are asked about anew.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from webcrawl.backends.embedded.arrivals import signed
from webcrawl.backends.embedded.store import Store
from webcrawl.core.columns import Array
from webcrawl.core.frontier import Lease, RobotsAnswer
from webcrawl.core.lifecycle import Event
from webcrawl.core.pagetable import HAS_ROBOTS, PageTable
from webcrawl.core.reasons import Reason
from webcrawl.core.robots import ALLOW_ALL, Answer, Robots, expires_at, judge_answer, origin_of, parse
from webcrawl.core.urls import host_of

MOST_HOPS = 5
FORGET_SECONDS = 30 * 86_400.0  # unreachable for so long: as if there were no file
KEPT_ORIGINS = 20_000

# What to do with a page that is about to be leased.
GO, DISALLOWED, FETCH, LOAD, REST, HOLD = range(6)


@dataclass(frozen=True, slots=True)
class RobotsPolicy:
    """Whose rules are read, and how long a file is believed."""

    agent: str
    least_seconds: float = 3_600.0
    most_seconds: float = 86_400.0
    retry_seconds: float = 600.0
    retry_most_seconds: float = 86_400.0
    may_go: Callable[[str], bool] = lambda url: True  # whether a redirect may be followed to this URL


class Origin:
    """What is known of one origin's file."""

    __slots__ = (
        "answer",
        "digest",
        "expires_at",
        "is_fetching",
        "page",
        "retries",
        "retry_at",
        "robots",
        "unreachable_since",
    )

    def __init__(self) -> None:
        self.robots: Robots | None = None
        self.answer = Answer.UNREACHABLE
        self.digest = 0
        self.expires_at = 0.0
        self.retry_at = 0.0
        self.retries = 0
        self.unreachable_since = 0.0
        self.is_fetching = False
        self.page = 0  # of the request for it that is on its way


class End(NamedTuple):
    """What becomes of the row of a robots.txt, and whether another one must be asked for."""

    event: Event
    reason: Reason
    redirect: str = ""
    has_changed: bool = False


class Errand(NamedTuple):
    """Which origin a request for a robots.txt is for, and how many redirects led to it."""

    origin: str
    host: int  # of the origin; a redirect may lead to another one
    hops: int = 0

    def to_bytes(self) -> bytes:
        """As it is kept in the row."""
        return json.dumps({"robots": self.origin, "host": self.host, "hops": self.hops}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Errand:
        """Read it back."""
        found = json.loads(data)
        return cls(found["robots"], found["host"], found["hops"])


class RobotsFiles:
    """Files of the origins in use."""

    def __init__(
        self,
        policy: RobotsPolicy,
        table: PageTable,
        store: Store,
        call_in_thread: Callable[[Callable[[], None]], None],
        pause_of: Callable[[int], float],
    ) -> None:
        self._policy, self._table, self._store = policy, table, store
        self._call_in_thread, self._may_go, self._pause_of = call_in_thread, policy.may_go, pause_of
        self._known: dict[str, Origin] = {}
        self._loading: set[str] = set()
        self._loaded: deque[tuple[str, list[Any]]] = deque()
        self.rows: list[tuple[Any, ...]] = []  # not with the writer yet
        self._delays: dict[int, dict[str, float]] = {}  # of hosts that ask for one: by origin
        for host, origin, seconds in store.rows("SELECT host, origin, crawl_delay FROM robots WHERE crawl_delay > 0"):
            self._delays.setdefault(host, {})[origin] = seconds

    # ------------------------------------------------------------------------------------------------ before a lease

    def check(self, url: str, host: int, now: float) -> int:
        """What to do with a page that is about to be leased: one of GO, DISALLOWED, FETCH, LOAD, REST, HOLD."""
        origin = origin_of(url)
        known = self._known.get(origin)
        if known is None:
            if self._table.hosts.at.flags[host] & HAS_ROBOTS:
                return LOAD
            known = self._remember(origin, Origin())
        if now < known.expires_at:
            assert known.robots is not None
            return GO if known.robots.allows(url) else DISALLOWED
        if known.is_fetching:
            return HOLD
        return REST if now < known.retry_at else FETCH

    def signals_of(self, url: str) -> tuple[str, ...]:
        """Content-Signal and Content-Usage of the file by which a page was allowed; none where none was asked for."""
        known = self._known.get(origin_of(url))
        return known.robots.signals if known is not None and known.robots is not None else ()

    def retry_at(self, url: str) -> float:
        """When the file of this page's origin is tried again, after REST."""
        return self._known[origin_of(url)].retry_at

    def must_be_read(self, errand: Errand) -> bool:
        """Whether the store knows a file of this origin that nobody has read yet in this process."""
        has_file = self._table.hosts.at.flags[errand.host] & HAS_ROBOTS
        return bool(has_file) and errand.origin not in self._known

    def begin(self, origin: str, page: int) -> None:
        """A request for this origin's file is on its way."""
        known = self._known.get(origin) or self._remember(origin, Origin())
        known.is_fetching, known.page = True, page

    def page_under_way(self, url: str) -> int:
        """The page of the robots.txt that somebody has asked for already."""
        return self._known[origin_of(url)].page

    def call_off(self, origin: str) -> None:
        """The request for this origin's file is not made, and nobody needs it for now."""
        known = self._known.get(origin)
        if known is not None:
            known.is_fetching = False

    def ask_again(self, origin: str) -> None:
        """Believe this origin's file no longer, or do not wait with the next attempt to have it."""
        known = self._known.get(origin)
        if known is not None and not known.is_fetching:
            known.expires_at = known.retry_at = 0.0
            known.retries = 0

    def origins_of(self, hosts: Collection[str]) -> list[str]:
        """The origins of these hosts whose files are known; for the refill's thread."""
        stored = (origin for (origin,) in self._store.rows("SELECT origin FROM robots"))
        return [origin for origin in {*stored, *list(self._known)} if host_of(f"{origin}/") in hosts]

    def abandon(self, origin: str, now: float) -> None:
        """The request for this origin's file is not made: the host it leads to was given up."""
        known = self._known.get(origin)
        if known is not None and known.is_fetching:
            known.is_fetching = False
            self._unreachable(known, now)
            known.retry_at = now + self._policy.retry_most_seconds

    def _remember(self, origin: str, known: Origin) -> Origin:
        if len(self._known) >= KEPT_ORIGINS:
            for name in [name for name, old in self._known.items() if not old.is_fetching][: KEPT_ORIGINS // 10]:
                del self._known[name]
        self._known[origin] = known
        return known

    # ------------------------------------------------------------------------------------------------ after the fetch

    def settle(self, lease: Lease, answer: RobotsAnswer, now: float) -> End:
        """A robots.txt, or none, has come back."""
        assert lease.request is not None
        errand = Errand.from_bytes(lease.request)
        known = self._known.get(errand.origin) or self._remember(errand.origin, Origin())
        meaning = judge_answer(answer.status) if answer.status else Answer.UNREACHABLE
        if meaning is Answer.REDIRECT:
            if answer.location and errand.hops < MOST_HOPS and self._may_go(answer.location):
                return End(Event.STORE, Reason.ROBOTS_FILE, redirect=answer.location)
            is_forbidden = bool(answer.location) and not self._may_go(answer.location)
            meaning = Answer.UNREACHABLE if is_forbidden else Answer.ALLOW_ALL
        known.is_fetching = False
        if meaning is Answer.UNREACHABLE:
            end = self._unreachable(known, now)
        else:
            end = self._reached(known, meaning, answer, now)
        self._note_delay(errand, known)
        if known.expires_at > now:  # a host that is asked less than once a day must not be asked for its file only
            known.expires_at = max(known.expires_at, now + 2.0 * self._pause_of(errand.host))
        self._note_row(errand, known, lease.page, answer, now)
        return end

    def _reached(self, known: Origin, meaning: Answer, answer: RobotsAnswer, now: float) -> End:
        policy = self._policy
        digest = xxh3_64_intdigest(answer.body) if meaning is Answer.RULES else 0
        has_changed = known.robots is not None and (known.digest, known.answer) != (digest, meaning)
        known.robots = parse(answer.body, policy.agent) if meaning is Answer.RULES else ALLOW_ALL
        known.answer, known.digest = meaning, digest
        known.expires_at = expires_at(
            now, answer.cache_control, least_seconds=policy.least_seconds, most_seconds=policy.most_seconds
        )
        known.unreachable_since = known.retry_at = 0.0
        known.retries = 0
        return End(Event.STORE, Reason.ROBOTS_FILE, has_changed=has_changed)

    def _unreachable(self, known: Origin, now: float) -> End:
        policy = self._policy
        known.unreachable_since = known.unreachable_since or now
        pause = min(policy.retry_seconds * 2.0**known.retries, policy.retry_most_seconds)
        known.retries = min(known.retries + 1, 30)
        known.retry_at = now + pause
        if known.robots is None and now - known.unreachable_since >= FORGET_SECONDS:
            known.robots, known.answer = ALLOW_ALL, Answer.ALLOW_ALL
        if known.robots is not None:  # the copy there is goes on being used until then
            known.expires_at = known.retry_at
        return End(Event.GIVE_UP, Reason.ROBOTS_UNREACHABLE)  # until a page needs it

    def _note_row(self, errand: Errand, known: Origin, page: int, answer: RobotsAnswer, now: float) -> None:
        is_fresh = known.unreachable_since == 0.0
        self._table.hosts.at.flags[errand.host] |= HAS_ROBOTS
        self.rows.append(
            (
                errand.origin,
                errand.host,
                known.robots.crawl_delay or 0.0 if known.robots is not None else 0.0,
                page,
                int(known.answer),
                answer.status,
                now,
                known.expires_at,
                known.retry_at,
                known.retries,
                known.unreachable_since,
                signed(known.digest),
                answer.body if is_fresh and known.answer is Answer.RULES else None,
            )
        )

    def _note_delay(self, errand: Errand, known: Origin) -> None:
        """The Crawl-delay counts for the host, whichever of its files says the longest."""
        if known.robots is not None:
            delays = self._delays.setdefault(errand.host, {})
            delays[errand.origin] = known.robots.crawl_delay or 0.0
            self._table.hosts.at.crawl_delay[errand.host] = max(delays.values())
            if not any(delays.values()):
                del self._delays[errand.host]

    # ------------------------------------------------------------------------------------------------ from the store

    def load(self, origin: str) -> None:
        """Have this origin's file read."""
        if origin not in self._loading:
            self._loading.add(origin)
            self._call_in_thread(lambda: self._loaded.append((origin, self._read(origin))))

    def _read(self, origin: str) -> list[Any]:
        columns = "answer, expires_at, retry_at, retries, unreachable_since, digest, body"
        rows = self._store.rows(f"SELECT {columns} FROM robots WHERE origin = ?", origin)  # noqa: S608 - our own names
        return [(*row[:-1], parse(row[-1], self._policy.agent) if row[-1] is not None else None) for row in rows]

    @property
    def is_loading(self) -> bool:
        """Whether files are being read."""
        return bool(self._loading)

    def take_loaded(self) -> list[str]:
        """Origins whose files have been read since the last call."""
        done = []
        while self._loaded:
            origin, rows = self._loaded.popleft()
            self._loading.discard(origin)
            known = self._known.get(origin) or self._remember(origin, Origin())
            if rows and not known.expires_at and not known.retry_at:
                _restore(known, rows[0])
            done.append(origin)
        return done

    # ------------------------------------------------------------------------------------------------ what was refused

    def refused_pages(self, host: int) -> Array:
        """Pages of this host that its robots.txt refused; for the refill's thread."""
        pages = self._table.pages
        count = pages.count + 1
        return np.flatnonzero((pages.host[:count] == host) & (pages.reason[:count] == int(Reason.ROBOTS)))


def _restore(known: Origin, row: Any) -> None:
    answer, known.expires_at, known.retry_at, known.retries, known.unreachable_since, digest, robots = row
    known.answer = Answer(answer)
    known.digest = digest % (1 << 64)
    if robots is not None:
        known.robots = robots
    elif known.answer is Answer.ALLOW_ALL:
        known.robots = ALLOW_ALL
    else:
        known.expires_at = -math.inf
