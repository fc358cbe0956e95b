"""Turns: hosts that share a server, an owner or a budget are asked one at a time.

Rules kept here:
1. A host may belong to several owners: the address it lives at, its site (registrable domain), a named group. An owner
   lets one request pass at a time and rests after it, counted from the end of the answer, as a host does.
2. The earliest moment of a request is the latest of its host's and of all its owners' moments.
3. A host that finds an owner busy is parked there, in order of arrival. When the owner is free again one parked host
   is woken, not all of them: a server with ten thousand names costs as much as one with two.
4. A host that was woken may not come: it has moved, has no pages left, or waits for another owner. Then the next one is
   woken a moment later (`sweep`): nobody is parked for ever.

Many names live at one address, and rudeness to one of them is rudeness to all (Castillo 2004, §A.1.2); BUbiNG keeps
half a second between requests to an address for the same reason (Boldi et al. 2018). Nothing here reads a clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


class Owner:
    """What several hosts share."""

    __slots__ = ("called", "delay_seconds", "next_at", "parked", "under_way")

    def __init__(self, delay_seconds: float, next_at: float = 0.0) -> None:
        self.delay_seconds = delay_seconds
        self.next_at = next_at
        self.under_way = 0
        self.called = 0  # the host that was woken for the next turn
        self.parked: dict[int, None] = {}  # in order of arrival


@dataclass(frozen=True, slots=True)
class Group:
    """Hosts of one operator: names and suffixes (".example.org")."""

    name: str
    delay_seconds: float
    members: tuple[str, ...]

    def contains(self, host: str) -> bool:
        """Whether a host belongs to it.

        >>> Group("shops", 2.0, (".shops.example",)).contains("a.shops.example")
        True
        """
        return any(host == name or (name.startswith(".") and f".{host}".endswith(name)) for name in self.members)


def group_rule(text: str) -> Group:
    """A group as people write it; ValueError with the rule for what is none.

    >>> group_rule("shops 2.5 .shops.example shop.example")
    Group(name='shops', delay_seconds=2.5, members=('.shops.example', 'shop.example'))
    """
    words = text.split()
    try:
        name, seconds, members = words[0], float(words[1]), tuple(word.lower() for word in words[2:])
    except (IndexError, ValueError):
        name, seconds, members = "", -1.0, ()
    if not members or not 0 < seconds < float("inf"):
        raise ValueError("a name, seconds and hosts or .suffixes, as in: shops 2.5 .shops.example shop.example")
    return Group(name, seconds, members)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which owners there are; 0 switches a kind off."""

    address_seconds: float = 0.0
    site_seconds: float = 0.0
    groups: tuple[Group, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether any host has an owner."""
        return bool(self.address_seconds or self.site_seconds or self.groups)

    def keys_of(self, host: str, site: str, address: str) -> list[tuple[str, float]]:
        """(key, pause) of every owner of a host; an address that is not known is none."""
        keys = [(f"group {group.name}", group.delay_seconds) for group in self.groups if group.contains(host)]
        if self.site_seconds:
            keys.append((f"site {site}", self.site_seconds))
        if self.address_seconds and address:
            keys.append((f"address {address}", self.address_seconds))
        return keys


Keys = list[tuple[str, float]]


class Turns:
    """Who may be asked among hosts with owners.

    `wake(host, at)` lets a parked host try again then, and says whether it has anything to try.
    """

    MOST_OWNERS = 100_000  # idle ones beyond are forgotten

    def __init__(self, not_before: float, wake: Callable[[int, float], bool]) -> None:
        self._not_before = not_before  # the last process may have asked: owners are not remembered on disk
        self._wake = wake
        self._owners: dict[str, Owner] = {}
        self._crowded: set[Owner] = set()  # those with parked hosts
        self._taken: dict[int, list[Owner]] = {}  # of requests that are under way

    def ask(self, host: int, keys: Keys, now: float) -> float:
        """When this host may try again: 0: it may be asked now; infinity: it is parked and will be woken."""
        for key, seconds in keys:
            owner = self._owner(key, seconds, now)
            if owner.under_way or owner.next_at > now:
                return self._later(owner, host)
        return 0.0

    def take(self, request: int, host: int, keys: Keys, now: float) -> None:
        """The host is asked now; `request` is any number that no other request under way has."""
        owners = [self._owner(key, seconds, now) for key, seconds in keys]
        for owner in owners:
            owner.under_way += 1
            owner.called = 0
            self._unpark(owner, host)
        self._taken[request] = owners

    def free(self, request: int, ended_at: float) -> None:
        """The answer has ended, or there is none; a second time does nothing."""
        for owner in self._taken.pop(request, ()):
            owner.under_way -= 1
            owner.next_at = max(owner.next_at, ended_at + owner.delay_seconds)
            self._wake_one(owner)

    def pass_on(self, keys: Keys, now: float) -> None:
        """A host that had its turn does not use it: whoever is parked behind it may."""
        for key, seconds in keys:
            self._wake_one(self._owner(key, seconds, now))

    @property
    def has_parked(self) -> bool:
        """Whether any host is parked."""
        return bool(self._crowded)

    def sweep(self, now: float) -> None:
        """Wake the next host wherever the one that was called has not come."""
        for owner in [owner for owner in self._crowded if not owner.under_way and owner.next_at <= now]:
            self._wake_one(owner)

    def _owner(self, key: str, seconds: float, now: float) -> Owner:
        owner = self._owners.get(key)
        if owner is None:
            if len(self._owners) >= self.MOST_OWNERS:
                self._forget(now)
            owner = self._owners[key] = Owner(seconds, self._not_before + seconds if self._not_before else 0.0)
        return owner

    def _forget(self, now: float) -> None:
        idle = [key for key, one in self._owners.items() if not (one.under_way or one.parked or one.next_at > now)]
        for key in idle:
            del self._owners[key]

    def _later(self, owner: Owner, host: int) -> float:
        if not owner.under_way and owner.called in (0, host):
            owner.called = host
            self._unpark(owner, host)
            return owner.next_at
        owner.parked[host] = None
        self._crowded.add(owner)
        return math.inf

    def _unpark(self, owner: Owner, host: int) -> None:
        owner.parked.pop(host, None)
        if not owner.parked:
            self._crowded.discard(owner)

    def _wake_one(self, owner: Owner) -> None:
        while not owner.under_way and owner.parked:
            host = next(iter(owner.parked))
            self._unpark(owner, host)
            owner.called = host
            if self._wake(host, owner.next_at):
                return
            owner.called = 0
