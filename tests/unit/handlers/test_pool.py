"""Kept-alive connections: bounded, oldest out first, and one clock for all."""

from __future__ import annotations

import asyncio

import pytest

from webcrawl.handlers import pool as pools
from webcrawl.handlers.pool import IDLE_PER_ROUTE, IDLE_SECONDS, Pool, Route


class Line:
    """As much of a connection as the pool looks at."""

    def __init__(self, route, deadline=1e18):
        self.route = route
        self.is_open = self.keep_alive = True
        self.deadline = deadline

    def rest(self):
        """Nothing to let go of."""

    def abort(self):
        self.is_open = False


@pytest.fixture
def pool():
    return Pool(lambda connection: connection.abort())


def route(pool, host="site.test", **more):
    return Route(pool, more.pop("scheme", "http"), host, 80, host, **more)


def test_the_last_one_in_is_the_first_one_out(pool):
    here = route(pool)
    first, second = Line(here), Line(here)
    pool.release(first)
    pool.release(second)
    assert [pool.take(here), pool.take(here), pool.take(here)] == [second, first, None]
    assert not pool.idle


def test_routes_do_not_share(pool):
    pool.release(Line(route(pool, "a.test")))
    assert pool.take(route(pool, "b.test")) is None


def test_an_unfit_connection_is_closed_not_kept(pool):
    line = Line(route(pool))
    line.keep_alive = False
    pool.release(line)
    assert (line.is_open, len(pool.idle)) == (False, 0)


def test_a_connection_that_closes_while_idle_is_forgotten(pool):
    here = route(pool)
    line = Line(here)
    pool.release(line)
    line.is_open = False
    here.forget(line)
    here.forget(line)
    assert (pool.take(here), here.idle, pool.idle) == (None, [], {})


def test_idle_connections_are_bounded_per_route_and_in_all(pool, monkeypatch):
    here = route(pool)
    lines = [Line(here) for _ in range(IDLE_PER_ROUTE + 2)]
    for line in lines:
        pool.release(line)
    assert [line.is_open for line in lines] == [True] * IDLE_PER_ROUTE + [False] * 2
    monkeypatch.setattr(pools, "IDLE_IN_ALL", IDLE_PER_ROUTE)
    other = Line(route(pool, "b.test"))
    pool.release(other)
    assert (lines[0].is_open, other.is_open, len(pool.idle)) == (False, True, IDLE_PER_ROUTE)


def test_one_clock_ends_what_is_overdue_and_what_is_idle_for_long(pool, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(pools, "monotonic", lambda: now[0])

    async def scene():
        here = route(pool)
        slow, quick, idle = Line(here, 100.5), Line(here, 200.0), Line(here)
        pool.watch(slow)
        pool.watch(quick)
        pool.release(idle)
        now[0] = 101.0
        pool._tick()
        assert [line.is_open for line in (slow, quick, idle)] == [False, True, True]
        now[0] = 100.0 + IDLE_SECONDS
        pool._tick()
        assert not idle.is_open
        pool.release(slow)
        assert pool.close() == [quick]
        pool.release(quick)

    asyncio.run(scene())


def test_the_clock_stops_when_there_is_nothing_to_watch(pool):
    async def scene():
        line = Line(route(pool))
        pool.watch(line)
        line.keep_alive = False
        pool.release(line)
        pool._timer.cancel()
        pool._tick()
        assert pool._timer is None

    asyncio.run(scene())


def test_only_tls_has_a_server_name_and_only_tls_tunnels(pool):
    plain, secure = route(pool, proxy=("p", 80)), route(pool, "site.test.", scheme="https", proxy=("p", 80))
    assert (plain.sni, plain.is_tunnel) == (None, False)
    assert (secure.sni, secure.is_tunnel) == ("site.test", True)
