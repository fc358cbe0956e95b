"""The embedded frontier: doors of the contract over columns in memory and a store on disk.

How it works, in the order things happen:
- A page's links are looked up in the seen-set as one batch. New ones get a row, columns and a score, and join the
  working set at once if it has room for them or they beat what is there; the others stay outside, on disk.
- `next` pops the working set (see `core.workingset`). When it runs low a thread draws the next batch (see `refill`).
- `report` changes the columns and notes rows in the current group. A group is handed to the writer (see `writer`) a few
  times a second. What is in a group that was not written is simply not settled: after kill -9 its pages are owed.
- At start everything is read back: nothing that is needed is only in memory, apart from requests that cannot be
  written down.

Nothing here waits for a disk, apart from the claim journal's one write per `next` (see `journal`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from webcrawl.backends.embedded.arrivals import Arrivals, signed
from webcrawl.backends.embedded.journal import Claim, ClaimJournal
from webcrawl.backends.embedded.recovery import Recovered
from webcrawl.backends.embedded.refill import Refill
from webcrawl.backends.embedded.store import Store
from webcrawl.backends.embedded.writer import Group, Writer
from webcrawl.core.columns import Array
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import IN_MEMORY, Counts, Empty, Lease, Offer, Report, Visit, Wait
from webcrawl.core.lifecycle import LEASED, READY, Event, State
from webcrawl.core.pagetable import DEEPEST, PageTable, link_depth
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import NewPages, Scorer
from webcrawl.core.urls import canonicals, host_of, key, keys, kind_of, site_of
from webcrawl.core.workingset import WorkingSet

KNOWN_NAMES = 50_000
SOON_SECONDS = 0.05
ROWS_IN_GROUP = 5_000

Text = tuple[str, bytes | None]  # URL and, for requests of spiders, the rest of the request


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers an embedded frontier works by."""

    batch_pages: int = 100_000
    pages_per_host_in_batch: int = 500
    urls_per_host: int = 25_000
    pages_per_host: int = 0
    depth: int = 0
    commit_pages: int = 500
    random_seed: int = 1


class StaleLeaseError(Exception):
    """A report for a lease that is no longer held."""


class EmbeddedFrontier:
    """One machine's frontier; see the module for how it works."""

    def __init__(
        self,
        store: Store,
        journal: ClaimJournal,
        writer: Writer,
        rules: Rules,
        scorer: Scorer,
        admission: Admission,
        policy: HostPolicy,
        recovered: Recovered,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.table = recovered.table
        self.rules = rules
        self.clock_offset = 0.0  # added to instants that are stored, when the wall clock was set
        self._store, self._journal, self._writer = store, journal, writer
        self._scorer, self._admission, self._policy = scorer, admission, policy
        self._hash_seed = recovered.hash_seed
        self._working = WorkingSet()
        self._refill = Refill(self.table, store, rules.pages_per_host_in_batch, on_ready)
        self._waiting_texts: dict[int, Text] = {}  # URL of every page in the working set
        self._recent: dict[int, Text] = {}  # of pages outside it whose row is in the current group
        self._unwritten: deque[tuple[int, dict[int, Text]]] = deque()  # the same of groups handed over: (last page, ...)
        self.in_memory_offers = 0
        self._in_memory: dict[int, Text] = {}  # of pages that are never written
        self._unwritable: set[int] = set()  # their ids: the next process gives them to other pages
        self._leases: dict[int, Lease] = {}
        self._group = Group(recovered.commits + 1)
        self._dirty_hosts: set[int] = set()
        self._changed: set[int] = set()  # pages whose record must be written though they were not visited
        self._refusals: dict[tuple[int, Reason], int] = {}
        self._refused_links = recovered.refused_links
        self._names: dict[str, int] = {}
        self._new_hosts_at = recovered.new_hosts_at
        self.body_bytes = int(self.table.hosts.body_bytes[: self.table.hosts.count + 1].sum())
        self._outside = recovered.outside
        self._unplanned = recovered.outside
        self._hungry = False
        self._left_out = bool(recovered.outside)
        self._worst = math.inf
        self._refill_after = 0.0
        self._next_due = recovered.next_due
        self._suspects = recovered.suspects
        self._accused = {page for page, _, _ in recovered.suspects}
        self._suspect = 0
        self._lowered = recovered.unfinished
        self._relaxing = False
        self._relaxed_in = -1  # after how many commits links were last read: before the next one nothing new is there
        self._relaxed: deque[tuple[list[int], list[tuple[int, Array]]]] = deque()

    # ------------------------------------------------------------------------------------------------ in

    def offer(self, offers: Sequence[Offer], now: float) -> list[int]:
        """Take URLs in that no page led to."""
        found = self._take_offers(offers, 0, now)
        self._flush_if_full(now)
        return found

    def _take_offers(self, offers: Sequence[Offer], parent: int, now: float) -> list[int]:
        found = []
        for offer in offers:
            number = offer.key or key(canonicals([offer.url])[0], self._hash_seed)
            known = self.table.page_ids.get(number)
            if known:
                self._lower(np.array([known], np.uint32), np.array([offer.depth], np.uint16))
                found.append(0)
                continue
            new = Arrivals(parent, now)
            self._admit(offer, number, new)
            found.append(self._welcome(new)[0] if new.urls else 0)
        return found

    def _admit(self, offer: Offer, number: int, new: Arrivals) -> None:
        host = host_of(offer.url)
        refusal = None if offer.trusted else self._admission.refuse(offer.url, host)
        if refusal is not None:
            self._refuse_link(self._names.get(host, 0), refusal)
            return
        host_id = self._host_id(host)
        new.add(offer.url, number, host_id, offer.depth, offer.request, offer.priority)

    def take_links(self, lease: Lease, urls: Sequence[str], now: float, step: int = 1) -> Array:
        """Offer a page's links as one batch; the ids of their targets, each once. A redirect takes no step."""
        numbers = keys(canonicals(urls), self._hash_seed)
        ids = self.table.page_ids.find(numbers)
        unknown = np.flatnonzero(ids == 0)
        if unknown.size < ids.size:
            self._shorten(lease, ids, urls, step)
        if unknown.size:
            new = Arrivals(lease.page, now)
            taken = self._admit_links(lease, urls, numbers, unknown.tolist(), new, step)
            if new.urls:
                first = self._welcome(new)[0]
                for at, order in taken:
                    ids[at] = first + order
        return np.unique(ids[ids != 0])

    def _admit_links(
        self, lease: Lease, urls: Sequence[str], numbers: Array, unknown: list[int], new: Arrivals, step: int
    ) -> list[tuple[int, int]]:
        """Which of the unknown links are taken: (their position, their order among the new pages)."""
        refuse, known, limit = self._admission.refuse, self.table.hosts.at.known, self.rules.urls_per_host
        taken: list[tuple[int, int]] = []
        orders: dict[int, int] = {}
        for at in unknown:
            number = int(numbers[at])
            if number in orders:
                taken.append((at, orders[number]))
                continue
            url = urls[at]
            host = host_of(url)
            reason = refuse(url, host)
            if reason is not None:
                self._refuse_link(self._names.get(host, 0), reason)
                continue
            host_id = self._names.get(host) or self._host_id(host)
            if limit and known[host_id] + new.of_host(host_id) >= limit:
                self._refuse_link(host_id, Reason.HOST_FULL)
                continue
            depth = self._depth_of(lease, url, host_id, step)
            orders[number] = len(new.urls)
            taken.append((at, len(new.urls)))
            new.add(url, number, host_id, depth)
        return taken

    def _depth_of(self, lease: Lease, url: str, host: int, step: int) -> int:
        depth = self.table.pages.at.depth[lease.page]  # may have become less since the claim
        if not step:
            return 0 if _is_start_page(url) else depth
        return link_depth(depth, host == lease.host, _is_start_page(url))

    def _welcome(self, new: Arrivals) -> list[int]:
        """Give new pages their ids, columns and rows, and a place."""
        table = self.table
        first = table.pages.count + 1
        ids = np.arange(first, first + len(new.urls), dtype=np.uint32)
        depths = np.minimum(np.array(new.depths), DEEPEST).astype(np.uint16)
        kinds = [int(kind_of(url)) for url in new.urls]
        scores = self._scorer(NewPages(ids, depths, np.array(kinds, np.uint8), self.rules.random_seed))
        scores = scores + np.array(new.priorities, np.float32)
        hosts = np.array(new.hosts, np.uint32)
        table.append_pages(np.array(new.keys, np.uint64), hosts, depths, np.array(kinds, np.uint8), scores)
        np.add.at(table.hosts.known, hosts, 1)
        np.add.at(table.hosts.dynamic, hosts, np.array(kinds, np.uint32))
        self._dirty_hosts.update(new.hosts)
        self._group.pages.extend(new.rows(first, kinds, self.clock_offset))
        for order, score in enumerate(scores.tolist()):
            self._find_place(first + order, new, order, score)
        return ids.tolist()

    def _find_place(self, page: int, new: Arrivals, order: int, score: float) -> None:
        host, text = new.hosts[order], (new.urls[order], new.requests[order])
        is_written = text[1] != IN_MEMORY
        if not is_written:
            self._in_memory[page] = text
            self._unwritable.add(page)
            self.in_memory_offers += 1
        elif self.rules.depth and new.depths[order] > self.rules.depth:
            self.table.move(page, Event.REFUSE, Reason.TOO_DEEP)
            self._note_change(page)
            self._remember(page, text)
            return
        elif new.priorities[order]:
            self._note_change(page)
        if not self._join(page, host, score, text, new.now):
            self._leave_outside(page, host, text)

    def _join(self, page: int, host: int, score: float, text: Text, now: float) -> bool:
        """Into the working set, if there is room or the page beats what is there."""
        working, table = self._working, self.table
        queue = working.hosts.get(host)
        if queue is not None and len(queue.pages) >= self.rules.pages_per_host_in_batch:
            if (score, -page) <= queue.pages[0]:
                return False
            self._evict(working.drop_worst(host), host)
        elif working.size >= self.rules.batch_pages and score <= self._worst:
            self._left_out = True
            return False
        elif score < self._worst:
            self._worst = score
        working.add(page, host, score, table.hosts.at.next_at[host], self._policy.connections, now)
        table.pages.at.working[page] = True
        table.hosts.at.queued[host] += 1
        self._waiting_texts[page] = text
        return True

    def _leave_outside(self, page: int, host: int, text: Text | None) -> None:
        self.table.hosts.at.outside[host] += 1
        self._outside += 1
        self._unplanned += 1
        if text is not None:
            self._remember(page, text)

    def _remember(self, page: int, text: Text) -> None:
        """Keep the URL of a page outside the working set until it is on disk."""
        if page > self._writer.settled_page:
            self._recent[page] = text

    def _evict(self, page: int, host: int) -> None:
        self.table.pages.at.working[page] = False
        self.table.hosts.at.queued[host] -= 1
        self._leave_outside(page, host, self._waiting_texts.pop(page))

    def _host_id(self, host: str) -> int:
        """The id of a host, made when it is new."""
        found = self._names.get(host)
        if found:
            return found
        if len(self._names) >= KNOWN_NAMES:
            self._names.clear()
        number = key(host, self._hash_seed)
        found = self.table.host_ids.get(number)
        if not found:
            found = self.table.hosts.append(1)
            self.table.hosts.at.next_at[found] = self._new_hosts_at
            self.table.host_ids.add(np.array([number], np.uint64), np.array([found], np.uint32))
            self._group.hosts.append((found, host, site_of(host)))
        self._names[host] = found
        return found

    def _refuse_link(self, host: int, reason: Reason) -> None:
        self._refused_links[reason] += 1
        self._refusals[host, reason] = self._refusals.get((host, reason), 0) + 1

    # ------------------------------------------------------------------------------------------------ depth

    def _shorten(self, lease: Lease, ids: Array, urls: Sequence[str], step: int) -> None:
        """Known pages may be nearer than was thought."""
        if not self.rules.depth:
            return  # without a limit nothing depends on it; the page's own record keeps what was true then
        known = np.flatnonzero(ids)
        targets = ids[known]
        hosts = self.table.pages.host[targets].tolist()
        depths = [self._depth_of(lease, urls[at], host, step) for at, host in zip(known.tolist(), hosts, strict=True)]
        self._lower(targets, np.array(depths, np.uint16))

    def _lower(self, pages: Array, depths: Array) -> None:
        columns = self.table.pages
        lower = np.flatnonzero(depths < columns.depth[pages])
        for at in lower.tolist():
            page, depth = int(pages[at]), int(depths[at])
            if depth < columns.at.depth[page]:
                columns.at.depth[page] = depth
                self._reconsider(page)

    def _reconsider(self, page: int) -> None:
        columns = self.table.pages
        state, depth = columns.at.state[page], columns.at.depth[page]
        if state == State.REFUSED and columns.at.reason[page] == Reason.TOO_DEEP and depth <= self.rules.depth:
            self.table.move(page, Event.FALL_DUE)
            self._leave_outside(page, columns.at.host[page], None)
            self._left_out = True
        elif state == State.STORED and self.rules.depth:
            self._lowered.append(page)
            self._group.unfinished.append((page,))
        self._note_change(page)

    def _relax(self) -> None:
        """Look again at the links of pages whose depth was lowered; their rows are read in the refill thread."""
        if self._relaxing or not self._lowered or self._writer.commits == self._relaxed_in:
            return
        pages, self._lowered, self._relaxing = self._lowered, [], True
        self._relaxed_in = self._writer.commits
        self._refill.call(lambda: self._relaxed.append((pages, self._store.links(pages))))

    def _take_relaxed(self) -> None:
        pages, found = self._relaxed.popleft()
        columns = self.table.pages
        for page, targets in found:
            depth, is_alias = columns.at.depth[page], columns.at.reason[page] == Reason.ALIAS
            same = columns.host[targets] == columns.at.host[page]
            depths = np.where(same | is_alias, min(depth + (not is_alias), DEEPEST), 1).astype(np.uint16)
            self._lower(targets, depths)
            self._group.finished.append((page,))
        read = {page for page, _ in found}
        self._lowered.extend(page for page in pages if page not in read)  # not written yet: after the next commit
        self._relaxing = False

    # ------------------------------------------------------------------------------------------------ out

    def next(self, now: float, limit: int = 1) -> list[Lease] | Wait | Empty:
        """Up to `limit` leases, best first, written to the journal before they leave."""
        if self._refill.ready:
            self._integrate(now)
        if self._relaxed:
            self._take_relaxed()
        if now >= self._next_due:
            self._wake_pages(now)
        if self._suspects and not self._suspect:
            self._try_suspect(now)
        leases: list[Lease] = []
        while len(leases) < limit and (found := self._working.pop(now)) is not None:
            lease = self._lease(*found, now)
            if lease is not None:
                leases.append(lease)
        self._refill_if_low(now)
        if not leases:
            return self._nothing(now)
        return leases

    def _lease(self, page: int, host: int, now: float) -> Lease | None:
        pages, hosts = self.table.pages, self.table.hosts
        url, request = self._waiting_texts.pop(page)
        hosts.at.queued[host] -= 1
        pages.at.working[page] = False
        if hosts.at.outside[host] and hosts.at.queued[host] * 2 < self.rules.pages_per_host_in_batch:
            self._hungry = True
        if self._host_is_done(host):
            self.table.move(page, Event.REFUSE, Reason.HOST_LIMIT)
            self._note_change(page)
            self._working.release(host, hosts.at.next_at[host], now)
            if page == self._suspect:
                self._suspect = 0
            return None
        self.table.claim(page)
        lease = Lease(
            page,
            host,
            url,
            pages.at.depth[page],
            pages.at.kind[page],
            pages.at.score[page],
            pages.at.visits[page],
            pages.at.failures[page],
            now,
            request,
        )
        self._leases[page] = lease
        if self._journal.is_full():
            self._journal.start([_claim(lease) for lease in self._leases.values()])
        self._journal.note(page, host, lease.visit, now)
        return lease

    def _host_is_done(self, host: int) -> bool:
        limit = self.rules.pages_per_host
        if not limit:
            return False
        under_way = self._working.hosts[host].under_way - 1
        return self.table.hosts.at.stored[host] + under_way >= limit

    def _nothing(self, now: float) -> Wait | Empty:
        if self._refill.is_running or self._refill.ready or self._relaxing or self._lowered:
            self._relax()
            return Wait(now + SOON_SECONDS)
        until = self.next_instant(now)
        if self._leases:
            return Wait(until)
        return Wait(until) if until < math.inf else Empty()

    def next_instant(self, now: float) -> float:
        """When something may be leased again without any report; infinity: never."""
        waiting = self._working.next_due_at()
        instants = [self._next_due, math.inf if waiting is None else waiting]
        if self._outside or self._suspects:
            instants.append(now + SOON_SECONDS)
        return min(instants)

    @property
    def is_selecting(self) -> bool:
        """Whether more pages are on their way into the working set."""
        return self._refill.is_running or bool(self._refill.ready) or self._relaxing

    def wait_for_selection(self) -> None:
        """Block until the selection under way has ended; for tests and benchmarks without an event loop."""
        self._refill.wait()

    def knows(self, number: int) -> bool:
        """Whether a page with this key is known."""
        return bool(self.table.page_ids.get(number))

    @property
    def under_way(self) -> int:
        """Leases not reported yet."""
        return len(self._leases)

    def _refill_if_low(self, now: float) -> None:
        low = self._working.size * 2 < self.rules.batch_pages and (self._left_out or not self._working.size)
        if not self._outside or self._refill.is_running or self._refill.ready or not (low or self._hungry):
            return
        if now < self._refill_after and self._working.size:
            return
        replan = self._unplanned * 4 > self._refill.left_over
        if replan:
            self._unplanned = 0
        self._hungry = False
        self._left_out = False
        self._refill_after = now + SOON_SECONDS
        self._refill.start(max(1, self.rules.batch_pages - self._working.size), replan)

    def _integrate(self, now: float) -> None:
        """Take one part of a drawn batch into the working set; each page is checked again."""
        found = self._refill.ready.popleft()
        while self._refill.unread:
            for page in self._refill.unread.popleft().tolist():
                text = self._text_in_memory(page)
                if text is not None:
                    found.append((page, *text))
                else:
                    self._unplanned += 1  # written meanwhile: the next plan finds it
                    self._left_out = True
        pages = self.table.pages
        for page, url, request in found:
            if pages.at.state[page] == READY and not pages.at.working[page]:
                self._enter(page, (url, request), now)
        if not self._refill.ready and self._refill.left_over:
            self._left_out = True

    def _text_in_memory(self, page: int) -> Text | None:
        """The URL of a page that is not on disk (yet)."""
        for texts in (self._recent, self._in_memory, *(texts for _, texts in self._unwritten)):
            if page in texts:
                return texts[page]
        return None

    def _enter(self, page: int, text: Text, now: float) -> None:
        host, score = self.table.pages.at.host[page], self.table.pages.at.score[page]
        self.table.hosts.at.outside[host] -= 1
        self._outside -= 1
        self._worst = min(self._worst, score)
        next_at = self.table.hosts.at.next_at[host]
        self._working.add(page, host, score, next_at, self._policy.connections, now)
        self.table.pages.at.working[page] = True
        self.table.hosts.at.queued[host] += 1
        self._waiting_texts[page] = text

    def _wake_pages(self, now: float) -> None:
        """Pages whose due time has come are ready again, outside the working set."""
        columns = self.table.pages
        due = columns.due[: columns.count + 1]
        waiting = np.flatnonzero(due)
        instants = due[waiting]
        for page in waiting[instants <= now].tolist():
            columns.at.due[page] = 0
            self.table.move(page, Event.FALL_DUE)
            self._leave_outside(page, columns.at.host[page], None)
            self._left_out = True
        later = instants[instants > now]
        self._next_due = float(later.min()) if later.size else math.inf

    def _try_suspect(self, now: float) -> None:
        """Pages that saw the crawler die run one at a time, after something else has been settled."""
        if not self._writer.commits and (self._working.size or self._outside or self._leases):
            return
        page, url, request = self._suspects.pop()
        self._suspect = page
        self.table.hosts.at.outside[self.table.pages.at.host[page]] += 1  # _enter takes it off again
        self._outside += 1
        self._enter(page, (url, request), now)

    def _acquit(self, page: int) -> None:
        """A page that saw the crawler die has come back: what it was accused of counts no more."""
        self._accused.discard(page)
        self._group.cleared.append((page,))

    # ------------------------------------------------------------------------------------------------ back

    def report(self, report: Report, now: float) -> None:
        """Settle a lease: state, record, links, children and output together."""
        lease = report.lease
        if self._leases.get(lease.page) is not lease:
            raise StaleLeaseError(f"page {lease.page} is not leased for visit {lease.visit}")
        del self._leases[lease.page]
        self._journal.note_return(_claim(lease))
        if lease.page == self._suspect:
            self._suspect = 0
        if report.event is Event.RETURN:
            self._give_back(lease, now)
            return
        if lease.page in self._accused:
            self._acquit(lease.page)
        self._note_host(lease.host, report)
        state = self._note_state(lease, report)
        original = self._take_all_links(lease, report, now)
        if report.children:
            self._take_offers(report.children, lease.page, now)
        for feed, data in report.outputs:
            self._group.outputs.setdefault(feed, []).append(data)
        if lease.request != IN_MEMORY:
            self._note_visit(lease, report, state, original)
        elif state in (State.STORED, State.GONE, State.REFUSED):
            self._in_memory.pop(lease.page)
        if report.due_at:
            self._remember(lease.page, (lease.url, lease.request))
        self._working.release(lease.host, self.table.hosts.at.next_at[lease.host], now)
        self._group.reports += 1
        self._flush_if_full(now)

    def _give_back(self, lease: Lease, now: float) -> None:
        self.table.move(lease.page, Event.RETURN)
        self._working.release(lease.host, self.table.hosts.at.next_at[lease.host], now)
        if not self._join(lease.page, lease.host, lease.score, (lease.url, lease.request), now):
            self._leave_outside(lease.page, lease.host, (lease.url, lease.request))

    def _rest(self, host: int, ended_at: float) -> None:
        """A host was asked until `ended_at`; of several answers, the last end counts."""
        next_at = self.table.hosts.at.next_at
        next_at[host] = max(next_at[host], self._policy.next_at(ended_at))
        self._dirty_hosts.add(host)

    def _note_host(self, host: int, report: Report) -> None:
        hosts = self.table.hosts
        self._rest(host, report.visit.ended_at)
        hosts.at.body_bytes[host] += report.visit.body_bytes
        self.body_bytes += report.visit.body_bytes
        if report.event is Event.STORE:
            hosts.at.stored[host] += 1
        else:
            hosts.at.failed[host] += 1

    def _note_state(self, lease: Lease, report: Report) -> State:
        pages = self.table.pages
        state = self.table.move(lease.page, report.event, report.reason)
        pages.at.visits[lease.page] = min(lease.visit + 1, 65535)
        pages.at.failures[lease.page] = 0 if report.event is Event.STORE else min(lease.failures + 1, 255)
        if report.due_at:
            pages.at.due[lease.page] = math.ceil(report.due_at)
            self._next_due = min(self._next_due, float(math.ceil(report.due_at)))
        return state

    def _take_all_links(self, lease: Lease, report: Report, now: float) -> int:
        """Links and redirect of a page; the page that a redirect leads to, or 0."""
        if report.redirect:
            targets = self.take_links(lease, [report.redirect], now, step=0)
        elif len(report.links):
            targets = self.take_links(lease, report.links, now)
        else:
            return 0
        if lease.request != IN_MEMORY:
            self._group.links.append((lease.page, targets.astype("<u4").tobytes()))
        return int(targets[0]) if report.redirect and targets.size else 0

    def _note_visit(self, lease: Lease, report: Report, state: State, original: int) -> None:
        visit, pages, page = report.visit, self.table.pages, lease.page
        self._group.records.append(
            (
                page,
                int(state),
                int(report.reason),
                pages.at.visits[page],
                pages.at.failures[page],
                pages.at.depth[page],
                lease.score,
                pages.at.due[page],
                visit.ended_at + self.clock_offset,
                visit.status,
                visit.mime,
                visit.body_bytes,
                visit.text_bytes,
                signed(visit.content_hash),
                visit.latency_seconds,
                visit.total_seconds,
                original or None,
                self._group.number,
            )
        )

    def _note_change(self, page: int) -> None:
        if page not in self._unwritable:
            self._changed.add(page)

    def _changes(self) -> Iterator[tuple[float, ...]]:
        """Rows as they are when the group is handed over: a page may be visited after it was changed."""
        at = self.table.pages.at
        for page in self._changed:
            state = READY if at.state[page] == LEASED else at.state[page]
            known = at.reason[page], at.visits[page], at.failures[page], at.depth[page], at.score[page], at.due[page]
            yield page, state, *known

    # ------------------------------------------------------------------------------------------------ disk

    def _flush_if_full(self, now: float) -> None:
        """Never in the middle of a report: its parts are written together."""
        if self._group.reports >= self.rules.commit_pages or len(self._group.pages) >= ROWS_IN_GROUP:
            self.flush(now)

    def flush(self, now: float, done: Callable[[], None] | None = None) -> None:
        """Hand the current group to the writer."""
        group = self._group
        if done is not None:
            group.done.append(done)
        group.changes.extend(self._changes())
        self._changed.clear()
        self._note_hosts(group)
        if group.is_empty():
            return
        self._group = Group(group.number + 1)
        if self._recent:
            self._unwritten.append((self.table.pages.count, self._recent))
            self._recent = {}
        self._writer.hand_over(group)
        while self._unwritten and self._unwritten[0][0] <= self._writer.settled_page:
            self._unwritten.popleft()
        self._relax()
        if self._journal.is_nearly_full():
            self._journal.start([_claim(lease) for lease in self._leases.values()])

    def _note_hosts(self, group: Group) -> None:
        hosts = self.table.hosts
        for host in self._dirty_hosts:
            group.host_updates.append(
                (
                    host,
                    hosts.at.next_at[host] + self.clock_offset,
                    hosts.at.known[host],
                    hosts.at.stored[host],
                    hosts.at.failed[host],
                    hosts.at.dynamic[host],
                    hosts.at.body_bytes[host],
                )
            )
        self._dirty_hosts.clear()
        group.refusals.extend((host, int(reason), count) for (host, reason), count in self._refusals.items())
        self._refusals.clear()

    def note_feed_header(self, feed: int, header: str) -> None:
        """Remember what a feed needs to be continued, e.g. the columns of a CSV file."""
        self._group.headers.append((feed, header))

    def output(self, feed: int, data: bytes) -> None:
        """Output that belongs to no page."""
        self._group.outputs.setdefault(feed, []).append(data)

    def counts(self) -> Counts:
        """Where every known page is, and how many links were not taken."""
        counts = self.table.counts()
        for number, count in enumerate(self._refused_links):
            if count:
                counts.reasons[Reason(number)] = counts.reasons.get(Reason(number), 0) + count
        return counts

    def hosts_active(self) -> tuple[int, int]:
        """(hosts with something under way, hosts that rest)."""
        waiting = self._working.hosts_waiting()
        return sum(1 for queue in self._working.hosts.values() if queue.under_way), waiting

    @property
    def stored(self) -> int:
        """Pages that are stored."""
        return self.table.by_state[State.STORED]

    @property
    def backlog(self) -> int:
        """Reports that are not on disk yet."""
        return self._writer.backlog + self._group.reports

    def stop(self, now: float) -> None:
        """A clean end: what is under way is given back, everything else is written."""
        for lease in list(self._leases.values()):
            self._rest(lease.host, now)
            self.report(Report(lease, Visit(now), Event.RETURN), now)
        self.flush(now)
        self._refill.close()
        self._writer.close()
        if self._writer.failure is None:
            self._journal.close()


def _is_start_page(url: str) -> bool:
    return url.find("/", 8) == len(url) - 1


def _claim(lease: Lease) -> Claim:
    return Claim(lease.page, lease.host, lease.visit, lease.claimed_at)
