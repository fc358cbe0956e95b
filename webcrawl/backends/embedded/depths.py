"""Depth is a minimum, so that the set of pages a depth limit admits does not depend on the order of the crawl.

A shorter path found later lowers a page's depth. If that brings a page within the limit that was refused as too deep,
it is ready after all. If the page is stored already, its links lie nearer too: they are read back from the store, in
the refill's thread, and looked at again. That a page still has to be looked at is written down (table `unfinished`), so
a kill in between changes nothing.

Without a limit nothing depends on the depth, and none of this happens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from webcrawl.backends.embedded.ready import ReadyPages
from webcrawl.backends.embedded.store import Store
from webcrawl.backends.embedded.writer import Group, Writer
from webcrawl.core.columns import Array
from webcrawl.core.lifecycle import Event, State
from webcrawl.core.pagetable import DEEPEST, PageTable
from webcrawl.core.reasons import Reason


class Depths:
    """Keeps depths minimal; what it changes is noted through `note_change`."""

    def __init__(
        self,
        table: PageTable,
        store: Store,
        writer: Writer,
        ready: ReadyPages,
        limit: int,
        unfinished: list[int],
        note_change: Callable[[int], None],
    ) -> None:
        self.limit = limit
        self._table, self._store, self._writer, self._ready = table, store, writer, ready
        self._note_change = note_change
        self._lowered = unfinished
        self.is_reading = False
        self._read_after = -1  # how many commits there were when links were last read: until the next nothing is new
        self._read: deque[tuple[list[int], list[tuple[int, Array]]]] = deque()

    @property
    def is_busy(self) -> bool:
        """Whether pages may still become ready without any report."""
        return self.is_reading or bool(self._lowered)

    def lower(self, pages: Array, depths: Array, group: Group) -> None:
        """These pages lie at most this deep."""
        columns = self._table.pages
        for at in np.flatnonzero(depths < columns.depth[pages]).tolist():
            page, depth = int(pages[at]), int(depths[at])
            if depth < columns.at.depth[page]:
                columns.at.depth[page] = depth
                self._reconsider(page, depth, group)

    def _reconsider(self, page: int, depth: int, group: Group) -> None:
        at = self._table.pages.at
        if at.state[page] == State.REFUSED and at.reason[page] == Reason.TOO_DEEP and depth <= self.limit:
            self._table.move(page, Event.FALL_DUE)
            self._ready.put_outside(page, at.host[page], is_wanted=True)
        elif at.state[page] == State.STORED and self.limit:
            self._lowered.append(page)
            group.unfinished.append((page,))
        self._note_change(page)

    def read_links(self) -> None:
        """Have the links of lowered pages read, if there may be any on disk that were not there last time."""
        if self.is_reading or not self._lowered or self._writer.commits == self._read_after:
            return
        pages, self._lowered, self.is_reading = self._lowered, [], True
        self._read_after = self._writer.commits
        self._ready.refill.call(lambda: self._read.append((pages, self._store.links(pages))))

    def take_links(self, group: Group) -> None:
        """Look at the links that were read, if any."""
        if not self._read:
            return
        pages, found = self._read.popleft()
        for page, targets in found:
            self._lower_targets(page, targets, group)
            group.finished.append((page,))
        read = {page for page, _ in found}
        self._lowered.extend(page for page in pages if page not in read)  # not written yet: after the next commit
        self.is_reading = False

    def _lower_targets(self, page: int, targets: Array, group: Group) -> None:
        columns = self._table.pages
        is_alias = columns.at.reason[page] == Reason.ALIAS
        nearest = min(columns.at.depth[page] + (not is_alias), DEEPEST)
        same_host = columns.host[targets] == columns.at.host[page]
        self.lower(targets, np.where(same_host | is_alias, nearest, 1).astype(np.uint16), group)
