"""The gate: what is asked about a page between its turn and its lease.

A page whose host may be asked now is still held back if its host was given up, has all the pages it may have, or if
its robots.txt says no, is not known yet or cannot be had. What happens then:
    refused      the page is REFUSED with its reason, the host stays free
    fetched      the robots.txt stands in front of the host's queue, the page goes back behind it
    held         the file is being read from the store, or is on its way
    parked       a host that shares its server or owner is being asked, or was just now
    looked up    its address is not known yet: the host waits with the page
    postponed    the file cannot be had: the page rests until it is tried again
Nothing here waits; `take_news` applies what threads have found since.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from webcrawl.backends.embedded.duepages import DuePages
from webcrawl.backends.embedded.hosts import Hosts
from webcrawl.backends.embedded.ready import ReadyPages, Text
from webcrawl.backends.embedded.robotsfiles import DISALLOWED, FETCH, GO, LOAD, REST, Errand, RobotsFiles
from webcrawl.core.columns import Array
from webcrawl.core.frontier import ROBOTS_KIND, Report, RobotsAnswer
from webcrawl.core.lifecycle import READY, Event, State
from webcrawl.core.names import Addresses
from webcrawl.core.pagetable import GIVEN_UP, OWN, PageTable
from webcrawl.core.reasons import Reason
from webcrawl.core.robots import origin_of, robots_url
from webcrawl.core.turns import Sharing, Turns
from webcrawl.core.urls import host_of, key, site_of

SWEEP_SECONDS = 1.0
REVIVED_AT_ONCE = 1_000  # in one turn of the event loop

Veto = Callable[[int, str, int], Reason | None]  # page, URL, kind: why it must not be asked for
AdmitRobots = Callable[[str, int, int, bytes, float], int]  # url, key, host, request, now: a page that is ready


class Gate:
    """Lets pages through, or sees to what must come first."""

    def __init__(
        self,
        table: PageTable,
        hosts: Hosts,
        ready: ReadyPages,
        due: DuePages,
        files: RobotsFiles | None,
        pages_per_host: int,
        hash_seed: int,
        note_change: Callable[[int], None],
        admit_robots: AdmitRobots,
        sharing: Sharing,
        addresses: Addresses,
        started_at: float,
    ) -> None:
        self._table, self._hosts, self._ready, self._due, self._files = table, hosts, ready, due, files
        self._pages_per_host, self._hash_seed = pages_per_host, hash_seed
        self._note_change, self._admit_robots = note_change, admit_robots
        self._sharing, self._addresses = sharing, addresses
        self._turns = Turns(started_at, self._wake) if sharing.is_needed else None
        self._now = started_at
        self.sweep_at = math.inf  # when to look after parked hosts
        self._is_open_to_own = not pages_per_host  # nothing else is asked about hosts of the operator's own
        self._is_open = self._is_open_to_own and files is None and self._turns is None
        self._unresolved: dict[str, tuple[int, int, Text]] = {}
        self._held: dict[str, list[tuple[int, int, Text]]] = {}
        self._waiting: set[int] = set()  # held pages whose hosts wait with them
        self._found: deque[Array] = deque()
        self._reviving = 0
        self._jobs: deque[Callable[[float], bool]] = deque()
        self.veto: Veto | None = None  # None: nobody has asked us to stay away from anything

    @property
    def is_busy(self) -> bool:
        """Whether threads are reading something that makes pages ready."""
        return bool(self._reviving) or (self._files is not None and self._files.is_loading)

    @property
    def is_resolving(self) -> bool:
        """Whether hosts wait for their addresses."""
        return bool(self._unresolved)

    # ------------------------------------------------------------------------------------------------ before a lease

    def lets_through(self, page: int, host: int, text: Text, now: float) -> bool:
        """Whether this page may be leased now; if not, it is dealt with and its host is free again."""
        if self._is_open and self.veto is None and self._table.hosts.at.flags[host] <= OWN:
            return True
        if self._is_open_to_own and self.veto is None and self._table.hosts.at.flags[host] == OWN:
            return True
        if not self._may_be_asked(page, host, text, now):
            if self._turns is not None:
                self._turns.pass_on(self._owners_of(text[0]), now)
            return False
        return self._turns is None or self._has_turn(page, host, text, now)

    def _has_turn(self, page: int, host: int, text: Text, now: float) -> bool:
        """Whether nobody who shares a server or an owner with this host is being asked, or was just now."""
        assert self._turns is not None
        if self._table.hosts.at.flags[host] & OWN:
            return True
        keys = self._owners_of(text[0])
        until = self._turns.ask(host, keys, now)
        if until:
            self._ready.park(page, host, text, until, now)
            self.sweep_at = min(self.sweep_at, now + SWEEP_SECONDS)
            return False
        self._turns.take(page, host, keys, now)
        return True

    def _owners_of(self, url: str) -> list[tuple[str, float]]:
        host = host_of(url)
        return self._sharing.keys_of(host, site_of(host), self._addresses.known(url) or "")

    def free(self, request: int, ended_at: float) -> None:
        """The answer to this page, or to this request beside, has ended."""
        if self._turns is not None:
            self._turns.free(request, ended_at)

    def _wake(self, host: int, at: float) -> bool:
        return self._ready.wake(host, at, self._now)

    def sweep(self, now: float) -> None:
        """Nobody waits for ever for an owner that has been free for a while."""
        if self._turns is not None and now >= self.sweep_at:
            self._now = now
            self._turns.sweep(now)
            self.sweep_at = now + SWEEP_SECONDS if self._turns.has_parked else math.inf

    def _may_be_asked(self, page: int, host: int, text: Text, now: float) -> bool:
        self._now = now
        flags, kind = self._table.hosts.at.flags[host], self._table.pages.at.kind[page]
        if self.veto is not None and (reason := self.veto(page, text[0], kind)):
            return self._stop(page, host, text, reason, now)
        if flags & GIVEN_UP:
            if kind == ROBOTS_KIND:
                self._abandon(text, now)
            return self._refuse(page, host, text, Reason.HOST_GIVEN_UP, now)
        if self._sharing.address_seconds and not flags & OWN and self._addresses.known(text[0]) is None:
            return self._look_up(page, host, text)
        if kind == ROBOTS_KIND:
            return self._is_file_read(page, host, text, now)
        if self._pages_per_host and self._host_is_done(host):
            return self._refuse(page, host, text, Reason.HOST_LIMIT, now)
        if self._files is None or flags & OWN:
            return True
        answer = self._files.check(text[0], host, now)
        if answer == GO:
            return True
        if answer == DISALLOWED:
            return self._refuse(page, host, text, Reason.ROBOTS, now)
        if answer == REST:
            return self._postpone(page, host, text, now)
        if answer == FETCH:
            return self._fetch_first(page, host, text, now)
        return self._hold(page, host, text, origin_of(text[0]), answer == LOAD, now)

    def _is_file_read(self, page: int, host: int, text: Text, now: float) -> bool:
        """A robots.txt is fetched anew only when the copy there is has been read: it may have to go on being used."""
        assert self._files is not None and text[1] is not None
        errand = Errand.from_bytes(text[1])
        if self._files.must_be_read(errand):
            return self._hold(page, host, text, errand.origin, True, now)
        self._files.begin(errand.origin, page)
        return True

    def _host_is_done(self, host: int) -> bool:
        under_way = self._ready.working.hosts[host].under_way - 1
        return bool(self._table.hosts.at.stored[host] + under_way >= self._pages_per_host)

    def _refuse(self, page: int, host: int, text: Text, reason: Reason, now: float) -> bool:
        self._table.move(page, Event.REFUSE, reason)
        self._note_change(page)
        self._ready.remember(page, text)
        self._ready.release(host, now)
        return False

    def _stop(self, page: int, host: int, text: Text, reason: Reason, now: float) -> bool:
        """The operator, or the owner of the host, does not want it asked for."""
        at = self._table.pages.at
        if at.kind[page] == ROBOTS_KIND:
            self._call_off(text, now)
        if at.state[page] != READY:  # it was refused while it was held here
            self._ready.release(host, now)
            return False
        return self._refuse(page, host, text, reason, now)

    def _postpone(self, page: int, host: int, text: Text, now: float) -> bool:
        assert self._files is not None
        self._table.move(page, Event.POSTPONE, Reason.ROBOTS_UNREACHABLE)
        self._due.note(page, self._files.retry_at(text[0]))
        self._note_change(page)
        self._ready.remember(page, text)
        self._ready.release(host, now)
        return False

    def _fetch_first(self, page: int, host: int, text: Text, now: float) -> bool:
        self.want_robots(text[0], host, now)
        self._ready.put_back(page, host, text, now)
        self._ready.release(host, now)
        return False

    def _hold(self, page: int, host: int, text: Text, origin: str, is_read: bool, now: float) -> bool:
        """The page waits. Its host waits with it while a file is read; while one is fetched the host stays free: it may
        be the one that is asked."""
        assert self._files is not None
        self._ready.hold(page)
        self._held.setdefault(origin, []).append((page, host, text))
        if is_read:
            self._files.load(origin)
            self._waiting.add(page)
        else:
            self._ready.release(host, now)
        return False

    # ------------------------------------------------------------------------------------------------ addresses

    def _look_up(self, page: int, host: int, text: Text) -> bool:
        """The host waits until its name is resolved."""
        self._ready.hold(page)
        self._unresolved[host_of(text[0])] = (page, host, text)
        self._addresses.look_up(text[0])
        return False

    def resolved(self, name: str, failure: Reason, now: float) -> None:
        """A name has been looked up; without an address its host is left alone for a while."""
        found = self._unresolved.pop(name, None)
        if found is not None:
            page, host, text = found
            if failure:
                self._hosts.note_silence(host, failure, now)
            self._ready.put_back(page, host, text, now)
            self._ready.release(host, now)

    # ------------------------------------------------------------------------------------------------ robots.txt files

    def want_robots(self, url: str, host: int, now: float) -> int:
        """The robots.txt for this URL stands in front of its host's queue from now on; its page."""
        return self._want(robots_url(url), host, Errand(origin_of(url), host), now)

    def turn_beside(self, request: int, url: str, host: int, now: float) -> float:
        """Take the turn of a host's owners for a request that is no page: 0, or when to ask again."""
        if self._turns is None:
            return 0.0
        keys = self._owners_of(url)
        until = self._turns.ask(host, keys, now)
        if not until:
            self._turns.take(request, host, keys, now)
        return until

    def _want(self, url: str, host: int, errand: Errand, now: float) -> int:
        """Put the request for a robots.txt in front of its host's queue; its page."""
        assert self._files is not None
        number = key(f"robots {errand.origin} {errand.hops} {url}", self._hash_seed)
        page = self._table.page_ids.get(number)
        if not page:
            page = self._admit_robots(url, number, host, errand.to_bytes(), now)
            self._files.begin(errand.origin, page)
            return page
        self._files.begin(errand.origin, page)
        at = self._table.pages.at
        if at.state[page] in (State.RESTING, State.STORED, State.REFUSED, State.GONE):
            at.due[page] = 0
            self._table.move(page, Event.FALL_DUE)
            self._ready.put_first(page, (url, errand.to_bytes()), now)
            self._note_change(page)
        elif at.state[page] == READY and not at.working[page]:
            self._ready.fetch_in(page, (url, errand.to_bytes()), now)
        return page

    def settled(self, report: Report, now: float) -> Report:
        """The report of a robots.txt, with what becomes of its row; pages that waited for it go on."""
        assert self._files is not None and report.lease.request is not None
        end = self._files.settle(report.lease, report.robots or RobotsAnswer(), now)
        errand = Errand.from_bytes(report.lease.request)
        self._hosts.changed.add(errand.host)
        if end.redirect:
            host = self._hosts.id_of(host_of(end.redirect))
            self._want(end.redirect, host, Errand(errand.origin, errand.host, errand.hops + 1), now)
        else:
            self._let_go(errand.origin, now)
        if end.has_changed:
            self._revive(errand.host)
        return replace(report, event=end.event, reason=end.reason, due_at=0.0)

    def _abandon(self, text: Text, now: float) -> None:
        """A robots.txt will not be fetched: whoever waits for it is asked about anew."""
        assert self._files is not None and text[1] is not None
        origin = Errand.from_bytes(text[1]).origin
        self._files.abandon(origin, now)
        self._let_go(origin, now)

    def _call_off(self, text: Text, now: float) -> None:
        """A robots.txt must not be fetched. Pages of the same host must not either, so nothing is tried again for them;
        those of another host that was redirected here wait as for a host that was given up."""
        assert self._files is not None and text[1] is not None
        errand = Errand.from_bytes(text[1])
        if errand.hops:
            self._abandon(text, now)
            return
        self._files.call_off(errand.origin)
        self._let_go(errand.origin, now)

    def _let_go(self, origin: str, now: float) -> None:
        for page, host, text in self._held.pop(origin, ()):
            self._ready.put_back(page, host, text, now)
            if page in self._waiting:
                self._waiting.remove(page)
                self._ready.release(host, now)

    # ------------------------------------------------------------------------------------------------ news from threads

    def take_news(self, now: float) -> None:
        """Files that were read, and pages that a changed file brings back."""
        if self._files is not None and self._files.is_loading:
            for origin in self._files.take_loaded():
                self._let_go(origin, now)
        if self._jobs and self._jobs[0](now):
            self._jobs.popleft()
            self._reviving -= 1
        while self._found:
            pages = self._found.popleft()
            if pages.size > REVIVED_AT_ONCE:
                self._found.appendleft(pages[REVIVED_AT_ONCE:])
                self._bring_back(pages[:REVIVED_AT_ONCE].tolist())
                return
            self._bring_back(pages.tolist())
            self._reviving -= 1

    def begin(self, job: Callable[[float], bool]) -> None:
        """Have work done that makes pages ready, a part in each turn of the event loop, until it answers True."""
        self._jobs.append(job)
        self._reviving += 1

    def _revive(self, host: int) -> None:
        assert self._files is not None
        files = self._files
        self._reviving += 1
        self._ready.refill.call(lambda: self._found.append(files.refused_pages(host)))

    def _bring_back(self, pages: list[int]) -> None:
        at = self._table.pages.at
        for page in pages:
            if at.state[page] == State.REFUSED and at.reason[page] == Reason.ROBOTS:
                self._table.move(page, Event.FALL_DUE)
                self._ready.put_outside(page, at.host[page], is_wanted=True)
                self._note_change(page)
