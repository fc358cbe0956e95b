"""Hosts that share an owner take turns; one is woken at a time, and nobody is forgotten."""

from __future__ import annotations

import math
import random

import pytest

from webcrawl.core.turns import Group, Sharing, Turns, group_rule


class Woken:
    """Remembers who was woken."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, float]] = []

    def __call__(self, host: int, at: float) -> bool:
        self.calls.append((host, at))
        return True


KEYS = [("address 192.0.2.1", 2.0)]


def test_one_at_a_time_and_a_rest_after_it():
    woken = Woken()
    turns = Turns(0.0, woken)
    assert turns.ask(1, KEYS, 10.0) == 0.0
    turns.take(1, 1, KEYS, 10.0)
    assert turns.ask(2, KEYS, 10.0) == math.inf
    turns.free(1, ended_at=11.0)
    assert woken.calls == [(2, 13.0)]
    assert turns.ask(2, KEYS, 13.0) == 0.0


def test_the_first_to_come_is_called_for_the_next_turn_and_the_others_are_parked():
    woken = Woken()
    turns = Turns(0.0, woken)
    turns.take(1, 1, KEYS, 10.0)
    turns.free(1, ended_at=11.0)
    assert [turns.ask(host, KEYS, 12.0) for host in (2, 3, 4)] == [13.0, math.inf, math.inf]
    turns.take(2, 2, KEYS, 13.0)
    turns.free(2, ended_at=14.0)
    assert woken.calls == [(3, 16.0)]


def test_a_turn_that_is_not_used_is_passed_on():
    woken = Woken()
    turns = Turns(0.0, woken)
    turns.take(1, 1, KEYS, 10.0)
    turns.ask(2, KEYS, 10.0)
    turns.ask(3, KEYS, 10.0)
    turns.free(1, ended_at=11.0)
    turns.pass_on(KEYS, 13.0)  # host 2 had nothing to ask for after all
    assert woken.calls == [(2, 13.0), (3, 13.0)]


def test_after_a_restart_every_owner_rests_first():
    turns = Turns(100.0, Woken())
    assert turns.ask(1, KEYS, 100.5) == 102.0


def test_the_slowest_owner_decides():
    turns = Turns(0.0, Woken())
    keys = [("site a.test", 5.0), *KEYS]
    turns.take(1, 1, keys, 0.0)
    turns.free(1, ended_at=1.0)
    assert turns.ask(2, keys, 3.0) == 6.0  # the address has been free since 3
    assert turns.ask(3, KEYS, 3.0) == 0.0


def test_idle_owners_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Turns, "MOST_OWNERS", 10)
    turns = Turns(0.0, Woken())
    for number in range(1000):
        assert turns.ask(number, [(f"address {number}", 1.0)], float(number)) == 0.0
    assert len(turns._owners) <= 11


def test_owners_of_a_host():
    sharing = Sharing(0.5, 2.0, (Group("shops", 3.0, (".shops.test", "shop.test")),))
    assert sharing.is_needed
    assert not Sharing().is_needed
    assert sharing.keys_of("a.shops.test", "shops.test", "") == [("group shops", 3.0), ("site shops.test", 2.0)]
    assert sharing.keys_of("notshops.test", "notshops.test", "192.0.2.1") == [
        ("site notshops.test", 2.0),
        ("address 192.0.2.1", 0.5),
    ]


@pytest.mark.parametrize("text", ["", "shops", "shops 2", "shops x a.test", "shops 0 a.test", "shops inf a.test"])
def test_what_is_no_group(text: str):
    with pytest.raises(ValueError, match="a name, seconds and hosts"):
        group_rule(text)


@pytest.mark.parametrize("seed", range(20))
def test_everybody_gets_a_turn_in_the_end(seed: int):
    """Random owners, random lengths: no two requests of an owner overlap or come too soon, and no host is left."""
    chance = random.Random(seed)
    keys = {
        host: [(f"address {chance.randrange(3)}", 2.0), (f"site {chance.randrange(4)}", 3.0)] for host in range(1, 30)
    }
    ready: dict[int, float] = dict.fromkeys(keys, 0.0)

    def wake(host: int, at: float) -> bool:
        ready[host] = at
        return left[host] > 0

    turns = Turns(0.0, wake)
    under_way: dict[int, float] = {}
    left = dict.fromkeys(keys, 5)
    ends: dict[str, float] = {}
    now = 0.0
    while any(left.values()):
        for host in sorted(ready):
            if ready[host] > now or host in under_way or not left[host]:
                continue
            until = turns.ask(host, keys[host], now)
            ready[host] = until
            if not until:
                for key, seconds in keys[host]:
                    assert now >= ends.get(key, -math.inf) + seconds
                    ends[key] = math.inf
                turns.take(host, host, keys[host], now)
                under_way[host] = now + chance.choice((0.5, 1.0, 4.0))
        instants = [*under_way.values(), *(at for host, at in ready.items() if now < at and host not in under_way)]
        now = min(instants)
        assert now < math.inf, f"hosts {[host for host in left if left[host]]} are never asked"
        for host in [host for host, end in under_way.items() if end <= now]:
            del under_way[host]
            left[host] -= 1
            ready[host] = now
            for key, _ in keys[host]:
                ends[key] = now
            turns.free(host, now)


def test_a_host_that_was_called_and_asks_too_early_is_not_parked_behind_itself():
    turns = Turns(0.0, Woken())
    turns.take(1, 1, KEYS, 10.0)
    turns.free(1, ended_at=11.0)
    assert [turns.ask(2, KEYS, 12.0), turns.ask(2, KEYS, 12.5), turns.ask(2, KEYS, 13.0)] == [13.0, 13.0, 0.0]


def test_whoever_is_parked_behind_a_host_that_never_comes_is_woken_all_the_same():
    woken = Woken()
    turns = Turns(0.0, woken)
    turns.take(1, 1, KEYS, 10.0)
    turns.free(1, ended_at=11.0)
    assert [turns.ask(host, KEYS, 12.0) for host in (2, 3)] == [13.0, math.inf]
    assert turns.has_parked
    turns.sweep(12.9)
    assert woken.calls == []
    turns.sweep(14.0)  # host 2 has moved, or has no pages any more
    assert woken.calls == [(3, 13.0)]
    assert not turns.has_parked
