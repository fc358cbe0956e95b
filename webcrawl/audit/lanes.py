"""Pauses and overlaps, proven from times that are only known to a resolution.

A lane is what one connection can have done: requests one after another.  A host has one lane, or as many as it allows.
A request is given to a lane if it *can* have begun there after the pause; only when no lane is possible, a rule was
broken.  So every violation is a proof, whatever the true instants were.

The proof: a request logged at s has begun in [s, s + resolution).  In a lane it begins at the earliest at
e = max(s, end of the one before + pause), where that end is itself the earliest possible one.  The lane is impossible
if e is not below s + resolution.  Because the earliest ends are carried on, ten requests in one logged second break a
pause of one second, although any two of them alone might have kept it.  After a violation the carrying starts anew, so
that each violation is proven by its own requests.

Records arrive in the order of their logged times.  If these are starts, any possible lane is as good as another; if
they are ends, the lane that became free last must be taken (Faigle and Nawijn 1995 show that this greedy choice fits
the most intervals into so many lanes).  That choice is right for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from webcrawl.audit.records import Record


class Lane:
    """The last request of a lane."""

    __slots__ = ("ended_at", "free_at", "last", "pages")

    def __init__(self, record: Record, ended_at: float) -> None:
        self.last = record
        self.ended_at = ended_at  # as logged
        self.free_at = ended_at  # at the earliest, given all requests before
        self.pages = 1  # of this visit


class Step(NamedTuple):
    """What following a lane's last request showed."""

    gap_seconds: float | None  # as logged; None: the lane's first request
    is_possible: bool  # the pause can have been kept, or the visit allows more pages
    is_same_visit: bool = False
    previous: Record | None = None


FIRST = Step(None, is_possible=True)


class Lanes:
    """The lanes of one host, or of one address."""

    __slots__ = ("_lanes", "_most")

    def __init__(self, most: int = 1) -> None:
        assert most >= 1
        self._most = most
        self._lanes: list[Lane] = []

    def follow(self, record: Record, duration_seconds: float, pause_seconds: float, visit_pages: int = 1) -> Step:
        """Give a request to a lane, and say whether the pause before it can have been kept.

        A visit is up to `visit_pages` requests on one connection without pauses; where connections are not known, of
        one client.
        """
        started_at = record.started_at
        ended_at = started_at + duration_seconds
        if len(self._lanes) < self._most:
            self._lanes.append(Lane(record, ended_at))
            return FIRST
        before = started_at + record.resolution_seconds
        lane = self._lanes[0] if self._most == 1 else self._choose(before - pause_seconds)
        gap_seconds, previous = started_at - lane.ended_at, lane.last
        ready_at = lane.free_at + pause_seconds
        is_possible, is_same_visit = ready_at < before, False
        if not is_possible and lane.pages < visit_pages and previous.is_same_connection(record):
            is_possible = is_same_visit = lane.free_at < before
            ready_at = lane.free_at
        if is_possible:
            lane.free_at = ended_at if ready_at <= started_at else ready_at + duration_seconds
        else:
            lane.free_at = max(lane.ended_at, ended_at)
        if ended_at > lane.ended_at:
            lane.ended_at = ended_at
        lane.pages = lane.pages + 1 if is_same_visit else 1
        lane.last = record
        return Step(gap_seconds, is_possible, is_same_visit, previous)

    def _choose(self, free_before: float) -> Lane:
        """The lane that became free last among the possible ones, else the one that becomes free first."""
        possible = [lane for lane in self._lanes if lane.free_at < free_before]
        if possible:
            return max(possible, key=lambda lane: lane.free_at)
        return min(self._lanes, key=lambda lane: lane.free_at)
