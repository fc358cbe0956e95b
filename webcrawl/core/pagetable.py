"""What is known of every page and host, in columns: about 47 bytes a page and 90 a host, keys included.

Rules kept here:
1. Ids are dense from 1 in the order of discovery and shared with the link graph.
2. The state of a page changes only through `move`, which keeps the ledger.
3. Depth is a minimum: 0 for a seed and for "/", one more than its parent on the same host, 1 for the first link from
   another host. A shorter path found later lowers it.
"""

from __future__ import annotations

import numpy as np

from webcrawl.core.columns import RESERVED_CELLS, Array, Columns
from webcrawl.core.frontier import Counts
from webcrawl.core.lifecycle import LEASED, READY, Event, State, following
from webcrawl.core.reasons import Reason
from webcrawl.core.seenset import SeenSet

DEEPEST = 65535

# Flags of a host.
OWN = 1  # politeness is off for it
GIVEN_UP = 2  # it has not answered for days
HAS_ROBOTS = 4  # the store knows a robots.txt of it


class PageTable:
    """Columns of pages and hosts, and which key is which id."""

    def __init__(self, cells: int = RESERVED_CELLS) -> None:
        self.pages = Columns(
            cells,
            host=np.uint32,
            score=np.float32,
            due=np.uint32,
            depth=np.uint16,
            visits=np.uint16,
            state=np.uint8,
            reason=np.uint8,
            failures=np.uint8,
            kind=np.uint8,
            working=np.bool_,
        )
        self.hosts = Columns(
            cells,
            next_at=np.float64,
            body_bytes=np.uint64,
            known=np.uint32,
            queued=np.uint32,
            outside=np.uint32,
            stored=np.uint32,
            failed=np.uint32,
            dynamic=np.uint32,
            crawl_delay=np.float32,
            took=np.float32,
            rest_seconds=np.uint32,
            incident_at=np.uint32,
            steps=np.uint8,
            trouble=np.uint8,
            flags=np.uint8,
        )
        self.page_ids = SeenSet()
        self.host_ids = SeenSet()
        self.unboosted: Columns | None = None  # what scores would be without boosts, once there is one
        self.by_state = [0] * (max(State) + 1)
        self.by_reason = [0] * (max(Reason) + 1)

    def append_pages(self, keys: Array, hosts: Array, depths: Array, kinds: Array, scores: Array) -> int:
        """New pages, all READY; the id of the first."""
        count = len(keys)
        first = self.pages.append(count)
        cells = slice(first, first + count)
        self.pages.host[cells] = hosts
        self.pages.depth[cells] = depths
        self.pages.kind[cells] = kinds
        self.pages.score[cells] = scores
        self.pages.state[cells] = READY
        self.by_state[READY] += count
        self.page_ids.add(keys, np.arange(first, first + count, dtype=np.uint32))
        return first

    def claim(self, page: int) -> None:
        """`move(page, Event.CLAIM)`, for the hot path."""
        state = self.pages.at.state
        assert state[page] == READY, "only a ready page can be claimed"
        state[page] = LEASED
        self.by_state[READY] -= 1
        self.by_state[LEASED] += 1

    def move(self, page: int, event: Event, reason: Reason = Reason.NONE) -> int:
        """Let `event` happen to a page; the ledger follows. The number of the new state."""
        at = self.pages.at
        state = at.state[page]
        new = following(state, event)
        self.by_state[state] -= 1
        self.by_state[new] += 1
        at.state[page] = new
        before = at.reason[page]
        if before or reason:
            self.by_reason[before] -= 1
            self.by_reason[reason] += 1
            at.reason[page] = reason
        return new

    def boost(self, page: int, score: float) -> None:
        """Change a page's score for as long as an operator wishes; what it would be without is kept."""
        if self.unboosted is None:
            self.unboosted = Columns(self.pages.cells, score=np.float32, is_boosted=np.bool_)
        kept = self.unboosted
        if page > kept.count:
            kept.append(page - kept.count)
        if not kept.at.is_boosted[page]:
            kept.at.is_boosted[page] = True
            kept.at.score[page] = self.pages.at.score[page]
        self.pages.at.score[page] = score

    def own_score(self, page: int) -> float:
        """The score without boosts: the one that is stored, because boosts are rules and are applied at every start."""
        kept = self.unboosted
        if kept is None or page > kept.count or not kept.at.is_boosted[page]:
            return float(self.pages.at.score[page])
        return float(kept.at.score[page])

    def counts(self) -> Counts:
        """The ledger of pages; links that got no row are not in it."""
        states = self.by_state
        return Counts(
            known=len(self.page_ids),
            ready=states[State.READY],
            leased=states[State.LEASED],
            resting=states[State.RESTING],
            stored=states[State.STORED],
            refused=states[State.REFUSED],
            gone=states[State.GONE],
            hosts=self.hosts.count,
            reasons={Reason(number): count for number, count in enumerate(self.by_reason) if number and count},
        )

    def bytes_used(self) -> int:
        """Memory of all columns and both seen-sets."""
        tables = (self.pages, self.hosts, self.page_ids, self.host_ids)
        return sum(table.bytes_used() for table in tables)


def link_depth(parent_depth: int, same_host: bool, is_start_page: bool) -> int:
    """The depth of a link's target (Castillo 2004, §5.1: clicks from the start page, not slashes).

    >>> link_depth(3, same_host=True, is_start_page=False)
    4
    """
    if is_start_page:
        return 0
    return min(parent_depth + 1, DEEPEST) if same_host else 1
