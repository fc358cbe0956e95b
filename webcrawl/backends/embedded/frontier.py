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
from collections.abc import Callable, Sequence
from time import thread_time

import numpy as np

from webcrawl.backends.embedded.arrivals import Arrivals
from webcrawl.backends.embedded.beside import Beside, RobotsFirst
from webcrawl.backends.embedded.controls import Controls, Wishes
from webcrawl.backends.embedded.depths import Depths
from webcrawl.backends.embedded.duepages import DuePages
from webcrawl.backends.embedded.gate import Gate
from webcrawl.backends.embedded.hosts import Hosts
from webcrawl.backends.embedded.journal import Claim, ClaimJournal
from webcrawl.backends.embedded.ready import SOON_SECONDS, ReadyPages
from webcrawl.backends.embedded.recovery import Recovered
from webcrawl.backends.embedded.robotsfiles import RobotsFiles, RobotsPolicy
from webcrawl.backends.embedded.rows import change_rows, host_rows, record_row
from webcrawl.backends.embedded.rules import Rules
from webcrawl.backends.embedded.store import Store
from webcrawl.backends.embedded.writer import Group, Writer
from webcrawl.core.columns import Array
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import IN_MEMORY, ROBOTS_KIND, Counts, Empty, Lease, Offer, Report, Visit, Wait
from webcrawl.core.lifecycle import RETURN, STORE, Event, State
from webcrawl.core.names import Addresses, NoAddresses
from webcrawl.core.pagetable import DEEPEST, link_depth
from webcrawl.core.politeness import Hours, quiet_until
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import NewPages, Scorer
from webcrawl.core.turns import Sharing
from webcrawl.core.urls import Kind, canonicals, host_of, key, keys, kind_of

LOOKS_AT_ONCE = 100  # pages that are refused in one turn of the event loop
LOOK_SECONDS = 0.005  # of CPU time, after which the others have to wait for the next turn
ROWS_IN_GROUP = 5_000


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
        hosts: Hosts,
        recovered: Recovered,
        robots: RobotsPolicy | None = None,
        quiet: Sequence[Hours] = (),
        sharing: Sharing = Sharing(),  # noqa: B008 - it is frozen
        addresses: Addresses = NoAddresses(),  # noqa: B008 - it has no state
        started_at: float = 0.0,
        on_ready: Callable[[], None] = lambda: None,
        wishes: Wishes = Wishes(),  # noqa: B008 - it is frozen
    ) -> None:
        self.table = recovered.table
        self.rules = rules
        self.clock_offset = 0.0  # added to instants that are stored, when the wall clock was set
        self._store, self._journal, self._writer = store, journal, writer
        self._scorer, self._admission, self._hosts, self._quiet = scorer, admission, hosts, quiet
        self._hash_seed = recovered.hash_seed
        self._ready = ReadyPages(self.table, store, writer, rules, hosts.connections_of, recovered.outside, on_ready)
        call = self._ready.refill.call
        self._robots = RobotsFiles(robots, self.table, store, call, hosts.pause_of) if robots else None
        self._due = DuePages(self.table, self._ready, call, recovered.next_due)
        self._gate = Gate(
            self.table,
            hosts,
            self._ready,
            self._due,
            self._robots,
            rules.pages_per_host,
            recovered.hash_seed,
            self._note_change,
            self._admit_robots,
            sharing,
            addresses,
            started_at,
        )
        self._takes_turns = robots is not None or sharing.is_needed
        self._beside = Beside(hosts, self._ready, self._gate, self._robots)
        self.in_memory_offers = 0
        self._unwritable: set[int] = set()  # ids of pages that are never written: the next process reuses them
        self._leases: dict[int, Lease] = {}
        self._settled: list[Claim] = []  # those that came back since the last group
        self._group = Group(recovered.commits + 1)
        self._changed: set[int] = set()  # pages whose record must be written though they were not visited
        self._refusals: dict[tuple[int, Reason], int] = {}
        self._refused_links = recovered.refused_links
        self.body_bytes = int(self.table.hosts.body_bytes[: self.table.hosts.count + 1].sum())
        self._suspects = recovered.suspects
        self._accused = {page for page, _, _ in recovered.suspects}
        self._is_careful = recovered.is_careful  # ask only for pages that are on disk, where a crash can be counted
        self._suspect = 0
        self._depths = Depths(
            self.table, store, writer, self._ready, rules.depth, recovered.unfinished, self._note_change
        )
        self._silence: Callable[[float], float] | None = None  # until when nobody is asked; None: nothing speaks for it
        self.controls = Controls(self, store, hosts, self._ready, self._gate, self._robots, wishes)
        self.note_controls()

    # ------------------------------------------------------------------------------------------------ in

    def offer(self, offers: Sequence[Offer], now: float) -> list[int]:
        """Take URLs in that no page led to."""
        found = self._take_offers(offers, 0, now)
        self.flush_if_full(now)
        return found

    def _take_offers(self, offers: Sequence[Offer], parent: int, now: float) -> list[int]:
        found = []
        for offer in offers:
            number = offer.key or key(canonicals([offer.url])[0], self._hash_seed)
            known = self.table.page_ids.get(number)
            if known:
                self._depths.lower(np.array([known], np.uint32), np.array([offer.depth], np.uint16), self._group)
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
            self._refuse_link(self._hosts.names.get(host, 0), refusal)
            return
        host_id = self._hosts.id_of(host)
        new.add(offer.url, number, host_id, offer.depth, offer.request, offer.priority)

    def take_links(self, lease: Lease, urls: Sequence[str], now: float, step: int = 1) -> Array:
        """Offer a page's links as one batch; the ids of their targets, each once. A redirect takes no step."""
        numbers = keys(canonicals(urls), self._hash_seed)
        ids = self.table.page_ids.find(numbers)
        unknown = np.flatnonzero(ids == 0)
        if self.rules.depth and unknown.size < ids.size:
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
                self._refuse_link(self._hosts.names.get(host, 0), reason)
                continue
            host_id = self._hosts.names.get(host) or self._hosts.id_of(host)
            if limit and known[host_id] + new.of_host(host_id) >= limit:
                self._refuse_link(host_id, Reason.HOST_FULL)
                continue
            depth = self._depth_of(lease, url, host_id, step)
            orders[number] = len(new.urls)
            taken.append((at, len(new.urls)))
            new.add(url, number, host_id, depth)
        return taken

    def _shorten(self, lease: Lease, ids: Array, urls: Sequence[str], step: int) -> None:
        """Known pages may be nearer than was thought."""
        known = np.flatnonzero(ids)
        targets = ids[known]
        hosts = self.table.pages.host[targets].tolist()
        depths = [self._depth_of(lease, urls[at], host, step) for at, host in zip(known.tolist(), hosts, strict=True)]
        self._depths.lower(targets, np.array(depths, np.uint16), self._group)

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
        kinds = [int(kind_of(url)) for url in new.urls] if new.kind is None else [new.kind] * len(new.urls)
        scores = self._scorer(NewPages(ids, depths, np.array(kinds, np.uint8), self.rules.random_seed))
        scores = scores + np.array(new.priorities, np.float32)
        hosts = np.array(new.hosts, np.uint32)
        table.append_pages(np.array(new.keys, np.uint64), hosts, depths, np.array(kinds, np.uint8), scores)
        if self.controls.has_boosts and new.kind is None:
            scores = self.controls.boost_new(first, new.urls, scores)
        np.add.at(table.hosts.known, hosts, 1)
        np.add.at(table.hosts.dynamic, hosts, np.array(kinds) == Kind.DYNAMIC)
        self._hosts.changed.update(new.hosts)
        self._group.pages.extend(new.rows(first, kinds, self.clock_offset))
        for order, score in enumerate(scores.tolist()):
            self._find_place(first + order, new, order, score)
        return ids.tolist()

    def _find_place(self, page: int, new: Arrivals, order: int, score: float) -> None:
        host, text = new.hosts[order], (new.urls[order], new.requests[order])
        if text[1] == IN_MEMORY:
            self._ready.keep(page, text)
            self._unwritable.add(page)
            self.in_memory_offers += 1
        elif self.rules.depth and new.depths[order] > self.rules.depth:
            self.table.move(page, Event.REFUSE, Reason.TOO_DEEP)
            self._note_change(page)
            self._ready.remember(page, text)
            return
        elif self._gate.veto is not None and new.kind is None and (why := self._gate.veto(page, text[0], 0)):
            self.table.move(page, Event.REFUSE, why)
            self._note_change(page)
            self._ready.remember(page, text)
            return
        elif new.priorities[order]:
            self._note_change(page)
        if self._is_careful and text[1] != IN_MEMORY:
            self._ready.put_outside(page, host, is_wanted=True)
        else:
            self._ready.put(page, host, score, text, new.now)

    def _admit_robots(self, url: str, number: int, host: int, request: bytes, now: float) -> int:
        """A row for a robots.txt, before everything else of its host."""
        new = Arrivals(0, now, ROBOTS_KIND)
        new.add(url, number, host, 0, request, math.inf)
        return self._welcome(new)[0]

    def _refuse_link(self, host: int, reason: Reason, count: int = 1) -> None:
        self._refused_links[reason] += count
        self._refusals[host, reason] = self._refusals.get((host, reason), 0) + count

    # ------------------------------------------------------------------------------------------------ out

    def next(self, now: float, limit: int = 1) -> list[Lease] | Wait | Empty:
        """Up to `limit` leases, best first, written to the journal before they leave."""
        if self._silence is not None and (until := self._silence(now)):
            return Wait(until)
        self._take_news(now)
        leases: list[Lease] = []
        looks, begun = limit + LOOKS_AT_ONCE, 0.0
        while len(leases) < limit and looks and (found := self._ready.pop(now)) is not None:
            looks -= 1
            if self._gate.lets_through(*found, now):
                leases.append(self._lease(*found, now))
                continue
            if found[0] == self._suspect:
                self._suspect = 0
            begun = begun or thread_time()  # refusing may be slow: a robots.txt can be a riddle
            if thread_time() - begun > LOOK_SECONDS:
                looks = 0
        self._ready.refill_if_low(now)
        if leases:
            return leases
        return self._nothing(now) if looks else Wait(now)

    def _take_news(self, now: float) -> None:
        """What threads have found, and what has fallen due since the last time."""
        if self._ready.refill.ready:
            self._ready.take_selected(now)
        if self._gate.is_busy:
            self._gate.take_news(now)
        if self._depths.is_reading:
            self._depths.take_links(self._group)
        if now >= self._due.next_at or self._due.is_scanning:
            self._due.wake(now)
        if self._suspects and not self._suspect:
            self._try_suspect(now)
        if now >= self._gate.sweep_at:
            self._gate.sweep(now)

    def _lease(self, page: int, host: int, text: tuple[str, bytes | None], now: float) -> Lease:
        at = self.table.pages.at
        self.table.claim(page)
        lease = Lease(
            page,
            host,
            text[0],
            at.depth[page],
            at.kind[page],
            at.score[page],
            at.visits[page],
            at.failures[page],
            now,
            text[1],
        )
        self._leases[page] = lease
        if self._journal.is_full():
            self._journal.extend()
        self._journal.note(page, host, lease.visit, now)
        return lease

    def _nothing(self, now: float) -> Wait | Empty:
        if self._ready.is_selecting or self._depths.is_busy or self._gate.is_busy:
            self._depths.read_links()
            return Wait(now + SOON_SECONDS)
        until = self.next_instant(now)
        if self._leases or self._gate.is_resolving or self._beside.is_busy:
            return Wait(until)
        return Wait(until) if until < math.inf else Empty()

    def next_instant(self, now: float) -> float:
        """When something may be leased again without any report; infinity: never."""
        waiting = self._ready.working.next_due_at()
        instants = [self._due.next_at, self._gate.sweep_at, math.inf if waiting is None else waiting]
        if self._ready.working.has_due():
            instants.append(now)
        if self._ready.outside or self._gate.is_busy or self._due.is_scanning:
            instants.append(now + SOON_SECONDS)
        if self._suspects and not self._suspect:
            instants.append(max(now + SOON_SECONDS, min(map(self._may_try_at, self._suspects))))
        earliest = min(instants)
        silent_until = self._silence(now) if self._silence is not None else 0.0
        return max(earliest, silent_until) if earliest < math.inf else earliest

    def ask_beside(self, url: str, now: float) -> Lease | Wait | Reason:
        """A turn for a request that is no page of the crawl; see `beside`."""
        if self._quiet and (until := quiet_until(now, self._quiet)):
            return Wait(until)
        answer = self._beside.ask(url, now)
        return self._lease(*answer, now) if isinstance(answer, RobotsFirst) else answer

    def note_answer_ended(self, lease: Lease, ended_at: float) -> None:
        """The answer is here, though its page is not settled yet: the pause of its host counts from now on."""
        self._beside.note_answer_ended(lease, ended_at)

    def end_beside(self, lease: Lease, visit: Visit, reason: Reason, now: float) -> None:
        """Such a request has ended."""
        self._beside.end(lease, visit, reason, now)

    def note_addresses(self, name: str, addresses: Sequence[str], now: float) -> None:
        """A host lives at other addresses than before."""
        host = self._hosts.known_id(name)
        if host:
            self._group.addresses.append((host, now + self.clock_offset, " ".join(addresses)))

    def note_resolved(self, name: str, failure: Reason, now: float) -> None:
        """A name that the frontier asked for has been looked up; NONE: it has an address."""
        self._gate.resolved(name, failure, now)

    @property
    def is_selecting(self) -> bool:
        """Whether more pages are on their way into the working set."""
        return self._ready.is_selecting or self._depths.is_reading or self._due.is_scanning

    def wait_for_selection(self) -> None:
        """Block until the selection under way has ended; for tests and benchmarks without an event loop."""
        self._ready.refill.wait()

    def knows(self, number: int) -> bool:
        """Whether a page with this key is known."""
        return bool(self.table.page_ids.get(number))

    @property
    def under_way(self) -> int:
        """Leases not reported yet."""
        return len(self._leases)

    @property
    def is_busy(self) -> bool:
        """Whether something is under way that may make pages ready: visits, selections, look-ups, or a pause."""
        return bool(self._leases) or self.is_selecting or self._gate.is_resolving or self.controls.is_paused

    def note_controls(self) -> None:
        """The operator has changed something."""
        self._silence = self._silent_until if self._quiet or self.controls.is_needed_first else None

    def _silent_until(self, now: float) -> float:
        """Nobody is asked in quiet hours and while the crawl is paused; what the operator wants is done anyway."""
        until = self.controls.silent_until(now) or quiet_until(now, self._quiet)
        if until and self._gate.is_busy:
            self._gate.take_news(now)
            return now + SOON_SECONDS
        return until

    @property
    def group(self) -> Group:
        """What will be written together next."""
        return self._group

    def note_change(self, page: int) -> None:
        """A page was changed without a visit."""
        self._note_change(page)

    def can_be_read(self, page: int) -> bool:
        """Whether the URL of a page is on disk, or kept."""
        return page not in self._unwritable or self._ready.text_in_memory(page) is not None

    def _try_suspect(self, now: float) -> None:
        """Pages that saw the crawler die run one at a time, after something else has been settled."""
        ready = self._ready
        if not self._writer.commits and (ready.working.size or ready.outside or self._leases):
            return
        ripe = [at for at, suspect in enumerate(self._suspects) if self._may_try_at(suspect) <= now]
        if ripe:  # a host that rests for long must not keep the others waiting
            page, url, request = self._suspects.pop(ripe[-1])
            self._suspect = page
            ready.put_first(page, (url, request), now)

    def _may_try_at(self, suspect: tuple[int, str, bytes | None]) -> float:
        return float(self.table.hosts.at.next_at[self.table.pages.at.host[suspect[0]]])

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
        claim = Claim(lease.page, lease.host, lease.visit, -lease.claimed_at)
        self._journal.note_return(claim)
        self._settled.append(claim)
        if lease.page == self._suspect:
            self._suspect = 0
        if self._takes_turns:
            self._gate.free(lease.page, report.visit.ended_at)
            self._beside.note_settled(lease)
        if report.event is RETURN:
            self._give_back(lease, now)
            return
        if lease.page in self._accused:
            self._acquit(lease.page)
        settled = self._gate.settled(report, now) if lease.kind == ROBOTS_KIND else report
        self._hosts.note(report)  # after a robots.txt: its Crawl-delay holds from the first page on
        self.body_bytes += report.visit.body_bytes
        report = settled
        state = self._note_state(lease, report)
        original = self._take_all_links(lease, report, now)
        if report.nofollow_links:
            self._refuse_link(lease.host, Reason.NOFOLLOW, report.nofollow_links)
        if report.children:
            self._take_offers(report.children, lease.page, now)
        for feed, data in report.outputs:
            self._group.outputs.setdefault(feed, []).append(data)
        if lease.request != IN_MEMORY:
            row = record_row(self.table, report, state, original, self._group.number, self.clock_offset)
            self._group.records.append(row)
        elif state in (State.STORED, State.GONE, State.REFUSED):
            self._ready.forget(lease.page)
        if report.due_at:
            self._ready.remember(lease.page, (lease.url, lease.request))
        self._ready.release(lease.host, now)
        self._group.reports += 1
        self.flush_if_full(now)

    def _give_back(self, lease: Lease, now: float) -> None:
        self.table.move(lease.page, RETURN)
        self._ready.release(lease.host, now)
        self._ready.put(lease.page, lease.host, lease.score, (lease.url, lease.request), now)

    def _note_state(self, lease: Lease, report: Report) -> int:
        at, page = self.table.pages.at, lease.page
        state = self.table.move(page, report.event, report.reason)
        at.visits[page] = min(lease.visit + 1, 65535)
        at.failures[page] = 0 if report.event is STORE else min(lease.failures + report.counts, 255)
        if report.due_at:
            self._due.note(page, report.due_at)
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

    def _note_change(self, page: int) -> None:
        if page not in self._unwritable:
            self._changed.add(page)

    # ------------------------------------------------------------------------------------------------ disk

    def flush_if_full(self, now: float) -> None:
        """Never in the middle of a report: its parts are written together."""
        if self._group.reports >= self.rules.commit_pages or len(self._group.pages) >= ROWS_IN_GROUP:
            self.flush(now)

    def flush(self, now: float, done: Callable[[], None] | None = None) -> None:
        """Hand the current group to the writer."""
        group = self._group
        if done is not None:
            group.done.append(done)
        self._note_rest(group)
        if group.is_empty():
            return
        self._renew_journal()
        self._group = Group(group.number + 1)
        self._writer.hand_over(group)
        self._ready.note_hand_over()
        self._depths.read_links()

    def _renew_journal(self) -> None:
        """Keep only what the store does not know: what is under way, and what is settled in the current group."""
        if self._journal.is_nearly_full() and not self._writer.backlog and self._writer.failure is None:
            self._journal.start([*self._settled, *(_claim(lease) for lease in self._leases.values())])
        self._settled.clear()

    def _note_rest(self, group: Group) -> None:
        """What changes often is written once per group, as it is then."""
        group.changes.extend(change_rows(self.table, self._changed))
        group.hosts.extend(self._hosts.new)
        group.host_updates.extend(host_rows(self.table, self._hosts.changed, self.clock_offset))
        if self._robots is not None:
            group.robots.extend(self._robots.rows)
            self._robots.rows.clear()
        group.refusals.extend((host, int(reason), count) for (host, reason), count in self._refusals.items())
        self._changed.clear()
        self._hosts.new.clear()
        self._hosts.changed.clear()
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
                counts.links[Reason(number)] = count
                counts.reasons[Reason(number)] = counts.reasons.get(Reason(number), 0) + count
        return counts

    def signals_of(self, lease: Lease) -> tuple[str, ...]:
        """What the robots.txt by which this page was just leased says of its use."""
        return self._robots.signals_of(lease.url) if self._robots is not None else ()

    def trouble_of(self, host: int) -> int:
        """How often in a row a host has pushed us back or not answered."""
        return self._hosts.trouble_of(host)

    def hosts_active(self) -> tuple[int, int]:
        """(hosts with something under way, hosts that rest)."""
        working = self._ready.working
        return sum(1 for queue in working.hosts.values() if queue.under_way), working.hosts_waiting()

    @property
    def stored(self) -> int:
        """Pages that are stored with a body; aliases and robots.txt files do not count."""
        reasons = self.table.by_reason
        return self.table.by_state[State.STORED] - reasons[Reason.ALIAS] - reasons[Reason.ROBOTS_FILE]

    @property
    def backlog(self) -> int:
        """Reports that are not on disk yet."""
        return self._writer.backlog + self._group.reports

    @property
    def has_unwritten_rows(self) -> bool:
        """Whether pages were added or refused since the last group, without a report."""
        return bool(self._group.pages) or bool(self._changed)

    @property
    def is_behind(self) -> bool:
        """Whether the disk cannot keep up; then nothing more should be claimed for a moment."""
        return self._writer.is_behind

    def stop(self, now: float) -> None:
        """A clean end: what is under way is given back, everything else is written."""
        for lease in list(self._leases.values()):
            self._hosts.rest(lease.host, now)
            self.report(Report(lease, Visit(now), RETURN), now)
        self.flush(now)
        self._ready.refill.close()
        self._writer.close()
        if self._writer.failure is None:
            self._journal.close()


def _is_start_page(url: str) -> bool:
    return url.find("/", 8) == len(url) - 1


def _claim(lease: Lease) -> Claim:
    return Claim(lease.page, lease.host, lease.visit, lease.claimed_at)
