"""Requests beside the frontier: images of a media pipeline, downloads that a spider makes by itself.

They are no pages of the crawl, but their hosts cannot tell: such a request asks for a turn, which keeps the host's
pause, its one connection, its robots.txt and its owners' turns, and gives it back with how it ended. The answers:
    a lease of a robots.txt   fetch and report it first, then ask again
    a lease without a page    the request may be made now; `end` must follow
    Wait                      ask again then
    a Reason                  never
"""

from __future__ import annotations

import math
from typing import NamedTuple

from webcrawl.backends.embedded.gate import Gate
from webcrawl.backends.embedded.hosts import Hosts
from webcrawl.backends.embedded.ready import ReadyPages, Text
from webcrawl.backends.embedded.robotsfiles import DISALLOWED, FETCH, GO, HOLD, LOAD, REST, RobotsFiles
from webcrawl.core.frontier import Lease, Visit, Wait
from webcrawl.core.pagetable import GIVEN_UP, OWN
from webcrawl.core.reasons import Reason
from webcrawl.core.robots import origin_of
from webcrawl.core.urls import host_of

AGAIN_SECONDS = 0.1  # when what is waited for comes without a moment that is known


class RobotsFirst(NamedTuple):
    """A robots.txt that must be leased before anything else of its host."""

    page: int
    host: int
    text: Text


class Beside:
    """Turns for requests that are no pages."""

    def __init__(self, hosts: Hosts, ready: ReadyPages, gate: Gate, files: RobotsFiles | None) -> None:
        self._hosts, self._ready, self._gate, self._files = hosts, ready, gate, files
        self._under_way: set[int] = set()
        self._number = 0
        self._ended: dict[int, int] = {}  # by host: pages whose answers have ended and that are not settled yet
        self._ended_pages: set[int] = set()

    @property
    def is_busy(self) -> bool:
        """Whether such a request is under way."""
        return bool(self._under_way)

    def note_answer_ended(self, lease: Lease, ended_at: float) -> None:
        """A page has come over the network; while it is worked on, its host may be asked for something else."""
        if lease.page not in self._ended_pages and not self._hosts.columns.at.flags[lease.host] & OWN:
            self._ended_pages.add(lease.page)
            self._ended[lease.host] = self._ended.get(lease.host, 0) + 1
            self._hosts.rest_early(lease.host, ended_at)
            self._gate.free(lease.page, ended_at)

    def note_settled(self, lease: Lease) -> None:
        """The page has come back."""
        if lease.page in self._ended_pages:
            self._ended_pages.remove(lease.page)
            left = self._ended.pop(lease.host) - 1
            if left:
                self._ended[lease.host] = left

    def ask(self, url: str, now: float) -> Lease | RobotsFirst | Wait | Reason:
        """See the module."""
        if self._gate.veto is not None and (reason := self._gate.veto(0, url, 0)):
            return reason
        host = self._hosts.id_of(host_of(url))
        at = self._hosts.columns.at
        if at.flags[host] & GIVEN_UP:
            return Reason.HOST_GIVEN_UP
        if at.flags[host] & OWN:
            return self._lease(url, 0, now)
        until = self._free_at(host, now)
        if until > now:
            return Wait(until)
        verdict = GO if self._files is None else self._files.check(url, host, now)
        if verdict == GO:
            return self._take_turn(url, host, now)
        if verdict == DISALLOWED:
            return Reason.ROBOTS
        if verdict == REST:
            return Reason.ROBOTS_UNREACHABLE
        assert self._files is not None
        if verdict == LOAD:
            self._files.load(origin_of(url))
            return Wait(now + AGAIN_SECONDS)
        if verdict == FETCH:
            return self._take_robots(self._gate.want_robots(url, host, now), now)
        assert verdict == HOLD
        return self._take_robots(self._files.page_under_way(url), now)

    def _free_at(self, host: int, now: float) -> float:
        """When this host may be asked: `now` if it may."""
        under_way = self._ready.working.requests_of(host) - self._ended.get(host, 0)
        if under_way >= self._hosts.connections_of(host):
            return now + AGAIN_SECONDS
        return max(now, float(self._hosts.columns.at.next_at[host]))

    def _take_robots(self, page: int, now: float) -> RobotsFirst | Wait:
        """The robots.txt that is waited for, if its host may be asked: who waits here may keep all others waiting."""
        host = self._ready.host_of(page)
        until = self._free_at(host, now)
        if until > now:
            return Wait(until)
        taken = self._ready.take(page, host)
        if taken is None:  # it is under way, or not on disk yet
            return Wait(now + AGAIN_SECONDS)
        until = self._gate.turn_beside(page, taken[2][0], host, now)
        if not until:
            return RobotsFirst(*taken)
        self._ready.park(*taken, until, now)
        return Wait(until if until < math.inf else now + AGAIN_SECONDS)

    def _take_turn(self, url: str, host: int, now: float) -> Lease | Wait:
        until = self._gate.turn_beside(self._number - 1, url, host, now)
        if until:
            return Wait(until if until < math.inf else now + AGAIN_SECONDS)
        self._ready.working.reserve(host, self._hosts.connections_of(host))
        self._hosts.rest_early(host, now)  # soon on disk: a kill while it is under way costs nobody a pause
        return self._lease(url, host, now)

    def _lease(self, url: str, host: int, now: float) -> Lease:
        self._number -= 1
        self._under_way.add(self._number)
        return Lease(self._number, host, url, 0, 0, 0.0, 0, 0, now, None)

    def end(self, lease: Lease, visit: Visit, reason: Reason, now: float) -> None:
        """The request has ended; a second time does nothing."""
        if lease.page in self._under_way:
            self._under_way.remove(lease.page)
            if lease.host:
                self._hosts.note_end(lease.host, lease.claimed_at, visit, reason)
                self._gate.free(lease.page, visit.ended_at)
                self._ready.release(lease.host, now)
