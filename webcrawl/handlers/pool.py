"""Kept-alive connections and the one clock that watches all of them.

Rules kept:
- A connection is reused only on its own route: scheme, host, port, proxy with its credentials, server name of TLS.
- Bounded: so many idle connections per route and in all, none idle for longer than IDLE_SECONDS (RFC 9112 §9.3, §9.4).
- One timer for everything, TICK_SECONDS apart and only while there is something to watch: a time-out may come that
  much late, and a request costs no timer of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webcrawl.handlers.connection import Connection

IDLE_SECONDS = 15.0
IDLE_PER_ROUTE = 8
IDLE_IN_ALL = 1024
TICK_SECONDS = 0.1


class Route:
    """Where requests of one origin go: the name for the connection and the connections that wait there."""

    __slots__ = ("authority", "host", "idle", "pool", "port", "proxy", "proxy_auth", "scheme", "sni")

    def __init__(
        self,
        pool: Pool,
        scheme: str,
        host: str,
        port: int,
        authority: str,
        proxy: tuple[str, int] | None = None,
        proxy_auth: bytes | None = None,
    ) -> None:
        self.pool = pool
        self.scheme = scheme
        self.host = host
        self.port = port
        self.authority = authority
        self.proxy = proxy
        self.proxy_auth = proxy_auth
        self.sni = host.rstrip(".") if scheme == "https" else None
        self.idle: list[Connection] = []

    @property
    def is_tunnel(self) -> bool:
        """Whether the proxy only passes bytes on (CONNECT), so that it does not see the request."""
        return self.proxy is not None and self.scheme == "https"

    def forget(self, connection: Connection) -> None:
        """A connection closed while idle; no-op for one that is not."""
        if self.pool.idle.pop(connection, None) is not None:
            self.idle.remove(connection)


class Pool:
    """All connections of a handler: idle ones oldest first, busy ones with their deadlines."""

    def __init__(self, on_overdue: Callable[[Connection], None]) -> None:
        self.idle: dict[Connection, float] = {}
        self.busy: set[Connection] = set()
        self._on_overdue = on_overdue
        self._timer: asyncio.TimerHandle | None = None

    def take(self, route: Route) -> Connection | None:
        """The connection that fell idle last, which is the likeliest to be alive still."""
        while route.idle:
            connection = route.idle.pop()
            del self.idle[connection]
            if connection.is_open:
                return connection
        return None

    def watch(self, connection: Connection) -> None:
        """A connection starts an exchange."""
        self.busy.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def release(self, connection: Connection) -> None:
        """An exchange is over: keep the connection if it is fit for another one."""
        self.busy.discard(connection)
        if not connection.is_open:
            return
        if not connection.keep_alive or len(connection.route.idle) >= IDLE_PER_ROUTE:
            connection.abort()
            return
        if len(self.idle) >= IDLE_IN_ALL:
            self._retire(next(iter(self.idle)))
        connection.rest()
        connection.route.idle.append(connection)
        self.idle[connection] = monotonic() + IDLE_SECONDS

    def close(self) -> list[Connection]:
        """Close the idle connections, stop the clock, and name the busy ones."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in list(self.idle):
            self._retire(connection)
        return list(self.busy)

    def _retire(self, connection: Connection) -> None:
        connection.route.forget(connection)
        connection.abort()

    def _tick(self) -> None:
        now = monotonic()
        for connection in [c for c in self.busy if c.deadline <= now]:
            self._on_overdue(connection)
        while self.idle:
            connection, until = next(iter(self.idle.items()))
            if until > now:
                break
            self._retire(connection)
        watching = self.busy or self.idle
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick) if watching else None
