"""Hosts: their ids, how long each rests after a visit, and what is remembered of it.

All of it lives in the columns of `PageTable.hosts`, is written with the settlement that changed it, and is the same
after a restart. A rest is remembered with its length: if the clock was set back, a host waits at most that long.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from webcrawl.backends.embedded.recovery import Recovered
from webcrawl.core.backoff import LONGEST_REST_SECONDS as MOST
from webcrawl.core.backoff import PUSH_BACK_STATUS, SILENCE, BackoffPolicy, Health, Rest, is_push_back
from webcrawl.core.frontier import ROBOTS_KIND, Report, Visit
from webcrawl.core.lifecycle import STORE
from webcrawl.core.pagetable import GIVEN_UP, OWN
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import key, site_of

KNOWN_NAMES = 50_000


class Hosts:
    """Hands out host ids and keeps their rests; `own` says whether politeness is off for a name."""

    def __init__(
        self,
        recovered: Recovered,
        polite: HostPolicy,
        own: HostPolicy,
        is_own: Callable[[str], bool],
        backoff: BackoffPolicy,
        pages_per_visit: Mapping[str, int],
        rng: random.Random,
    ) -> None:
        self.columns = recovered.table.hosts
        self._ids = recovered.table.host_ids
        self._hash_seed = recovered.hash_seed
        self._new_hosts_at = recovered.new_hosts_at
        self._polite, self._own, self._is_own = polite, own, is_own
        self._backoff = backoff
        self._rng = rng
        self.names: dict[str, int] = {}  # a cache
        self._delays: Mapping[str, float] = {}  # by name
        self._delayed: dict[int, HostPolicy] = {}  # hosts with a pause of their own
        self._pages_per_visit = pages_per_visit  # by name; all others have one
        self._visits: dict[int, int] = {}  # hosts that may be asked several times in a row: how often
        self._left_in_visit: dict[int, int] = {}
        for name, pages in pages_per_visit.items():
            self._visits[self.known_id(name)] = pages
        self.changed: set[int] = set()
        self.new: list[tuple[int, str, str]] = []  # rows of hosts that are not with the writer yet

    def id_of(self, name: str) -> int:
        """The id of a host, made when it is new."""
        found = self.names.get(name)
        if found:
            return found
        if len(self.names) >= KNOWN_NAMES:
            self.names.clear()
        number = key(name, self._hash_seed)
        found = self._ids.get(number)
        if not found:
            found = self.columns.append(1)
            self.columns.at.next_at[found] = self._new_hosts_at
            self.columns.at.flags[found] = OWN if self._is_own(name) else 0
            self._ids.add(np.array([number], np.uint64), np.array([found], np.uint32))
            self.new.append((found, name, site_of(name)))
            if name in self._pages_per_visit:
                self._visits[found] = self._pages_per_visit[name]
            if name in self._delays:
                self._delayed[found] = self._policy_with(self._delays[name])
        self.names[name] = found
        return found

    def policy_of(self, host: int) -> HostPolicy:
        """How this host is treated."""
        if self._delayed and host in self._delayed:
            return self._delayed[host]
        return self._own if self.columns.at.flags[host] & OWN else self._polite

    def known_id(self, name: str) -> int:
        """The id of a host, 0 if no page of it is known."""
        return self._ids.get(key(name, self._hash_seed))

    @property
    def delay_seconds(self) -> float:
        """The base pause of a host that nobody has asked anything about."""
        return self._polite.delay_seconds

    def set_delays(self, delays: Mapping[str, float]) -> None:
        """Hosts with a base pause of their own, by name; all others have none (any more)."""
        self._delays = delays
        found = {self.known_id(name): self._policy_with(seconds) for name, seconds in delays.items()}
        self._delayed = {host: policy for host, policy in found.items() if host}

    def _policy_with(self, seconds: float) -> HostPolicy:
        return replace(self._polite, delay_seconds=seconds, large_delay_seconds=None)

    def lengthen(self, host: int, seconds: float) -> None:
        """The rest a host is in, or has had, is to be this long; the end of its last answer is known to a second."""
        at = self.columns.at
        if at.next_at[host] and seconds > at.rest_seconds[host]:
            ended_at = at.next_at[host] - at.rest_seconds[host] + 1.0
            at.next_at[host] = max(at.next_at[host], ended_at + seconds)
            at.rest_seconds[host] = math.ceil(seconds) + 1
            self.changed.add(host)

    def forgive(self, host: int) -> None:
        """A host that was given up is tried again, as if it had never been silent."""
        self.columns.at.flags[host] &= 255 - GIVEN_UP
        self._keep(host, Health(0, 0, 0.0))
        self.changed.add(host)

    def connections_of(self, host: int) -> int:
        """How many requests may be under way to this host."""
        return self._own.connections if self.columns.at.flags[host] & OWN else self._polite.connections

    def trouble_of(self, host: int) -> int:
        """Incidents since the host's last normal answer."""
        return int(self.columns.at.trouble[host])

    # ------------------------------------------------------------------------------------------------ after a visit

    def note(self, report: Report) -> None:
        """A visit has ended: counts, health, rest."""
        host, visit, at = report.lease.host, report.visit, self.columns.at
        at.body_bytes[host] += visit.body_bytes
        if report.lease.kind != ROBOTS_KIND:
            counter = at.stored if report.event is STORE else at.failed
            counter[host] += 1
        if at.flags[host] == OWN and not self._delayed:  # the usual case of a crawl that is in a hurry
            ended_at = visit.ended_at + self._own.delay_seconds
            if ended_at > at.next_at[host]:
                at.next_at[host] = ended_at
            self.changed.add(host)
            return
        self.note_end(host, report.lease.claimed_at, visit, report.reason)

    def note_end(self, host: int, claimed_at: float, visit: Visit, reason: Reason) -> None:
        """A request to this host has ended: health, rest."""
        at, status = self.columns.at, visit.status
        longer = 0.0
        if not at.flags[host] & OWN:
            at.took[host] = visit.total_seconds
            is_plain = status and status not in PUSH_BACK_STATUS and visit.retry_after < 0
            if not is_plain or at.trouble[host] or at.steps[host]:
                longer = max(self._note_health(host, claimed_at, visit, reason), min(visit.retry_after, MOST))
        self.rest(host, visit.ended_at, longer)

    def rest(self, host: int, ended_at: float, at_least: float = 0.0) -> None:
        """A host was asked until `ended_at`; of several answers, the last end counts."""
        at = self.columns.at
        pause = self._pause_in_visit(host) if host in self._visits else self.pause_of(host)
        seconds = max(pause, at_least)
        if ended_at + seconds > at.next_at[host]:
            at.next_at[host] = ended_at + seconds
            at.rest_seconds[host] = math.ceil(seconds)
        self.changed.add(host)

    def rest_early(self, host: int, ended_at: float) -> None:
        """The answer has ended, though the page is not settled yet: nobody may be quicker than the pause meanwhile."""
        if host not in self._visits:
            self.rest(host, ended_at)

    def _pause_in_visit(self, host: int) -> float:
        """Within a visit only the Crawl-delay counts (Castillo 2004, §4.2.2: c pages per connection)."""
        left = self._left_in_visit.get(host, self._visits[host]) - 1
        self._left_in_visit[host] = left or self._visits[host]
        return self.policy_of(host).heeded(self.columns.at.crawl_delay[host]) if left else self.pause_of(host)

    def pause_of(self, host: int) -> float:
        """The pause of this host as things are."""
        at, policy = self.columns.at, self.policy_of(host)
        if policy is self._own:
            return policy.delay_seconds
        chance = self._rng.random() if policy.jitter else 0.0
        return policy.pause(at.stored[host], at.crawl_delay[host], at.took[host], chance)

    def note_silence(self, host: int, reason: Reason, now: float) -> None:
        """A host could not even be asked."""
        rest = self._backoff.after_silence(
            self._health(host), now, now, reason is Reason.NO_SUCH_HOST, self._rng.random()
        )
        self.rest(host, now, self._suffer(host, rest))

    def _note_health(self, host: int, claimed_at: float, visit: Visit, reason: Reason) -> float:
        """What the end of this visit says about its host; how long it is to be left alone for that."""
        health, ended_at = self._health(host), visit.ended_at
        if is_push_back(visit.status, visit.retry_after):
            rest = self._backoff.after_push_back(health, claimed_at, ended_at, visit.retry_after, self._rng.random())
            return self._suffer(host, rest)
        if not visit.status and reason in SILENCE:
            is_nameless = reason is Reason.NO_SUCH_HOST
            rest = self._backoff.after_silence(health, claimed_at, ended_at, is_nameless, self._rng.random())
            return self._suffer(host, rest)
        if health.steps or health.trouble:
            self._keep(host, self._backoff.after_answer(health, ended_at))
        return 0.0

    def _suffer(self, host: int, rest: Rest) -> float:
        self._keep(host, rest.health)
        if rest.gives_up:
            self.columns.at.flags[host] |= GIVEN_UP
        return rest.seconds

    def _health(self, host: int) -> Health:
        at = self.columns.at
        return Health(at.steps[host], at.trouble[host], at.incident_at[host])

    def _keep(self, host: int, health: Health) -> None:
        at = self.columns.at
        at.steps[host], at.trouble[host], at.incident_at[host] = (
            health.steps,
            health.trouble,
            math.ceil(health.incident_at),
        )
