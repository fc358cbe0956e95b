"""The frontier contract: what may be fetched next, and when. One door in, one out, one back.

    offer    seeds and requests come in
    next     a page goes out: leases, or `Wait` until an instant, or `Empty`
    report   the page comes back: outcome, record, links, output bytes, settled as one

Promises of every frontier (checked by `webcrawl.testing.check_frontier`):
- never two leases of one page at once; never more fetches in flight to one host than its policy says;
- no lease before the host's due time, which counts from the end of the last answer;
- what was acknowledged survives kill -9, what was not is owed and will be handed out again;
- highest score first within what politeness allows; same offers, same order;
- `counts()` always adds up: known = ready + leased + resting + stored + refused + gone.

Values only; nothing here keeps state. Instants are epoch seconds that arrive as `now`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from webcrawl.core.backoff import NO_WORD
from webcrawl.core.lifecycle import Event
from webcrawl.core.reasons import Reason

ROBOTS_KIND = 2  # of a lease for a robots.txt, beside the kinds of pages in `urls`
IN_MEMORY = b""  # the request cannot be written down: its page lives as long as this process and is counted apart


class Offer(NamedTuple):
    """A URL that comes in from outside a page: a seed, or a request of somebody's spider."""

    url: str
    key: int = 0  # 64 bits; 0: made from the canonical URL
    depth: int = 0
    priority: float = 0.0  # added to the strategy's score
    request: bytes | None = None  # the rest of the request, serialised; None: a plain GET; IN_MEMORY: see there
    trusted: bool = False  # asked for by the operator or a spider: scope and patterns do not apply


class Lease(NamedTuple):
    """The right to make one visit to one page."""

    page: int
    host: int
    url: str
    depth: int
    kind: int
    score: float
    visit: int
    failures: int
    claimed_at: float
    request: bytes | None


class Wait(NamedTuple):
    """Nothing may be fetched now; ask again at `until` (infinity: after the next report)."""

    until: float


class Empty(NamedTuple):
    """Nothing is left to do, and nothing is under way."""


@dataclass(slots=True)
class Visit:
    """What came back: the page record of Castillo 2004, §7.3.1, without scores."""

    ended_at: float
    status: int = 0
    mime: str = ""
    body_bytes: int = 0
    text_bytes: int = 0
    content_hash: int = 0
    latency_seconds: float = 0.0
    total_seconds: float = 0.0
    retry_after: float = NO_WORD  # seconds
    directives: str = ""  # what the page asked of robots, as a JSON list of texts


class RobotsAnswer(NamedTuple):
    """What came back for a robots.txt; status 0: nothing."""

    status: int = 0
    body: bytes = b""
    cache_control: str = ""
    location: str = ""  # where a redirect leads


@dataclass(slots=True)
class Report:
    """The end of one lease. `event` is what happens to the page (see `lifecycle`)."""

    lease: Lease
    visit: Visit
    event: Event
    reason: Reason = Reason.NONE
    due_at: float = 0.0  # when to come back; 0: never
    links: Sequence[str] = ()
    redirect: str = ""  # the page is an alias of this URL
    children: list[Offer] = field(default_factory=list)
    outputs: list[tuple[int, bytes]] = field(default_factory=list)  # (feed, bytes to append)
    counts: bool = True  # a failure counts for the page; not if its host is to blame
    robots: RobotsAnswer | None = None  # of a lease for a robots.txt; then event, reason and due time do not count
    nofollow_links: int = 0  # links that the page asks robots not to follow: counted, not in `links`


@dataclass(slots=True)
class Counts:
    """The ledger: how many pages are known, and where they are."""

    known: int = 0
    ready: int = 0
    leased: int = 0
    resting: int = 0
    stored: int = 0
    refused: int = 0
    gone: int = 0
    hosts: int = 0
    reasons: dict[Reason, int] = field(default_factory=dict)  # pages refused or gone, and links not taken
    links: dict[Reason, int] = field(default_factory=dict)  # links not taken alone

    @property
    def pages(self) -> int:
        """Pages stored with a body; a redirect is an alias of another one, and a robots.txt is no page."""
        return self.stored - self.reasons.get(Reason.ALIAS, 0) - self.reasons.get(Reason.ROBOTS_FILE, 0)

    def sentence(self) -> str:
        """The ledger as one line that must add up."""
        return (
            f"known {self.known:,} = ready {self.ready:,} + leased {self.leased:,} + resting {self.resting:,}"
            f" + stored {self.stored:,} + refused {self.refused:,} + gone {self.gone:,}"
        )

    def adds_up(self) -> bool:
        """Whether every known page is in exactly one state."""
        parts = self.ready + self.leased + self.resting + self.stored + self.refused + self.gone
        return self.known == parts


class Frontier(Protocol):
    """What the adapters need of a frontier; see the module's promises."""

    def offer(self, offers: Sequence[Offer], now: float) -> list[int]:
        """Take URLs in; the page id of each new one, 0 where it was known or refused."""

    def next(self, now: float, limit: int = 1) -> list[Lease] | Wait | Empty:
        """Up to `limit` leases, best first."""

    def report(self, report: Report, now: float) -> None:
        """Settle a lease: state, record, links and output together."""

    def flush(self, now: float, done: Callable[[], None] | None = None) -> None:
        """Hand everything reported so far to the disk; `done` is called when it is safe."""

    def counts(self) -> Counts:
        """Where every known page is."""

    def stop(self, now: float) -> None:
        """A clean end: everything is on disk, nothing is under way any more."""
