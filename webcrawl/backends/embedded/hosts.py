"""Hosts: their ids, how long each rests after a visit, and what is remembered of it.

All of it lives in the columns of `PageTable.hosts`, is written with the settlement that changed it, and is the same
after a restart. A rest is remembered with its length: if the clock was set back, a host waits at most that long.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np

from webcrawl.backends.embedded.recovery import Recovered
from webcrawl.core.backoff import SILENCE, BackoffPolicy, Health, Rest, is_push_back
from webcrawl.core.frontier import ROBOTS_KIND, Report
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
        self.names[name] = found
        return found

    def policy_of(self, host: int) -> HostPolicy:
        """How this host is treated."""
        return self._own if self.columns.at.flags[host] & OWN else self._polite

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
        if at.flags[host] & OWN:
            self.rest(host, visit.ended_at)
            return
        at.took[host] = visit.total_seconds
        longer = self._note_health(host, report)
        self.rest(host, visit.ended_at, longer)

    def rest(self, host: int, ended_at: float, at_least: float = 0.0) -> None:
        """A host was asked until `ended_at`; of several answers, the last end counts."""
        at, seconds = self.columns.at, max(self.pause_of(host), at_least)
        if ended_at + seconds > at.next_at[host]:
            at.next_at[host] = ended_at + seconds
            at.rest_seconds[host] = math.ceil(seconds)
        self.changed.add(host)

    def pause_of(self, host: int) -> float:
        """The pause of this host as things are."""
        at, policy = self.columns.at, self.policy_of(host)
        if policy is self._own:
            return policy.delay_seconds
        chance = self._rng.random() if policy.jitter else 0.0
        return policy.pause(at.stored[host], at.crawl_delay[host], at.took[host], chance)

    def _note_health(self, host: int, report: Report) -> float:
        """What the end of this visit says about its host; how long it is to be left alone for that."""
        at, visit, lease = self.columns.at, report.visit, report.lease
        health = Health(at.steps[host], at.trouble[host], at.incident_at[host])
        rest: Rest | None = None
        if is_push_back(visit.status, visit.retry_after):
            rest = self._backoff.after_push_back(
                health, lease.claimed_at, visit.ended_at, visit.retry_after, self._rng.random()
            )
        elif not visit.status and report.reason in SILENCE:
            is_nameless = report.reason is Reason.NO_SUCH_HOST
            rest = self._backoff.after_silence(
                health, lease.claimed_at, visit.ended_at, is_nameless, self._rng.random()
            )
        elif health.steps or health.trouble:
            self._keep(host, self._backoff.after_answer(health, visit.ended_at))
        if rest is None:
            return 0.0
        self._keep(host, rest.health)
        if rest.gives_up:
            at.flags[host] |= GIVEN_UP
        return rest.seconds

    def _keep(self, host: int, health: Health) -> None:
        at = self.columns.at
        at.steps[host], at.trouble[host], at.incident_at[host] = health
