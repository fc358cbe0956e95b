"""Opening a connection: name, address, the right to go there, TCP, the proxy's tunnel, TLS.

Rules kept:
- The address that was checked is the address connected to; the name is not asked a second time (DNS rebinding).
- A request that names its address (`meta["webcrawl_address"]`, set by whoever looked the name up) goes there and
  nowhere else; the check is asked all the same. Proxies have their own addresses and take no notice.
- Through a proxy the proxy resolves the origin's name, so only the proxy's own address is looked up, and unchecked:
  the operator named it.
- Addresses are tried in the system's order; each gets at most CONNECT_SECONDS for TCP, tunnel and TLS together.
- CONNECT as in RFC 9110 §9.3.6: any 2xx opens the tunnel, anything else is a failure and its body is not read.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.exceptions import DownloadConnectionRefusedError, DownloadFailedError, DownloadTimeoutError

from webcrawl.handlers.connection import HEAD_LIMIT_BYTES, Connection
from webcrawl.handlers.head import with_field

if TYPE_CHECKING:
    from webcrawl.handlers.dns import Resolver
    from webcrawl.handlers.pool import Route

CONNECT_SECONDS = 10.0
ADDRESSES_TRIED = 4

# What stands at the start of a proxy's answer to CONNECT.
_TUNNEL_ANSWER = re.compile(rb"HTTP/1\.\d (\d{3})([^\r\n]{0,200})")

CheckAddress = Callable[[str, str], "str | None"]


class AddressRefused(DownloadFailedError):
    """The address check said no; the message is its sentence."""


class Connector:
    """Opens connections for routes."""

    def __init__(
        self,
        resolver: Resolver,
        tls: Callable[[], ssl.SSLContext],
        check_address: CheckAddress | None,
        local_addr: tuple[str, int] | None,
    ) -> None:
        self._resolver = resolver
        self._tls = tls
        self._check_address = check_address
        self._local_addr = local_addr

    async def open(self, route: Route, pinned: str | None = None) -> Connection:
        """A new connection, ready for its first request; to the pinned address, if there is one."""
        host, port = route.proxy or (route.host, route.port)
        started = monotonic()
        is_pinned = pinned is not None and route.proxy is None
        addresses = [str(pinned)] if is_pinned else await self._resolver.addresses(host)
        resolved = monotonic()
        if route.proxy is None and self._check_address is not None:
            addresses = self._allowed(host, addresses)
        connection = await self._first_that_answers(route, addresses[:ADDRESSES_TRIED], port)
        connection.dns_seconds = resolved - started
        connection.connect_seconds = monotonic() - resolved
        return connection

    def _allowed(self, host: str, addresses: list[str]) -> list[str]:
        assert self._check_address is not None
        verdicts = [(ip, self._check_address(host, ip)) for ip in addresses]
        allowed = [ip for ip, refusal in verdicts if refusal is None]
        if not allowed:
            raise AddressRefused(next((refusal for _, refusal in verdicts if refusal), f"{host} has no address."))
        return allowed

    async def _first_that_answers(self, route: Route, addresses: list[str], port: int) -> Connection:
        failure: Exception = DownloadFailedError(f"{route.host} has no address to connect to.")
        for ip in addresses:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await self._connect(route, ip, port)
            except (OSError, ValueError, DownloadFailedError) as error:  # ValueError: no name for TLS
                failure = _as_scrapy_says(error, route, ip, port)
        raise failure

    async def _connect(self, route: Route, ip: str, port: int) -> Connection:
        if route.is_tunnel:
            return await self._connect_through(route, ip, port)
        loop = asyncio.get_running_loop()
        tls = self._tls() if route.scheme == "https" else None
        _, connection = await loop.create_connection(
            lambda: Connection(route), ip, port, ssl=tls, server_hostname=route.sni, local_addr=self._local_addr
        )
        return connection

    async def _connect_through(self, route: Route, ip: str, port: int) -> Connection:
        loop = asyncio.get_running_loop()
        transport, tunnel = await loop.create_connection(
            lambda: _Tunnel(loop.create_future()), ip, port, local_addr=self._local_addr
        )
        try:
            transport.write(_connect_head(route))
            await tunnel.opened
            connection = Connection(route)
            secured = await loop.start_tls(transport, connection, self._tls(), server_hostname=route.sni)
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise ConnectionResetError("the connection was closed during the TLS handshake")
        connection.connection_made(secured)
        return connection


class _Tunnel(asyncio.Protocol):
    """The connection to a proxy until its answer to CONNECT is complete."""

    def __init__(self, opened: asyncio.Future[None]) -> None:
        self.opened = opened
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self.opened.done():
            return
        if b"\r\n\r\n" in self._received:
            self._judge()
        elif len(self._received) > HEAD_LIMIT_BYTES:
            self.opened.set_exception(DownloadFailedError("The proxy's answer to CONNECT has no end."))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(DownloadFailedError(f"The proxy closed instead of answering CONNECT: {exc}"))

    def _judge(self) -> None:
        answer = _TUNNEL_ANSWER.match(self._received)
        if answer and answer[1].startswith(b"2"):
            self.opened.set_result(None)
            return
        said = (answer[1] + answer[2]).decode("latin-1").strip() if answer else repr(self._received[:100])
        self.opened.set_exception(DownloadFailedError(f"Could not open CONNECT tunnel with proxy [{said}]"))


def _connect_head(route: Route) -> bytes:
    host = f"[{route.host}]" if ":" in route.host else route.host
    head = f"CONNECT {host}:{route.port} HTTP/1.1\r\nHost: {host}:{route.port}\r\n\r\n".encode("ascii")
    return with_field(head, b"Proxy-Authorization", route.proxy_auth) if route.proxy_auth else head


def _as_scrapy_says(error: Exception, route: Route, ip: str, port: int) -> Exception:
    """The same failure in the words Scrapy's retry logic knows."""
    if isinstance(error, DownloadFailedError):
        return error
    where = f"{route.host} ({ip} port {port})"
    if isinstance(error, TimeoutError):
        return DownloadTimeoutError(f"Connecting to {where} took longer than {CONNECT_SECONDS:g} seconds.")
    if isinstance(error, ConnectionRefusedError):
        return DownloadConnectionRefusedError(f"Connection was refused by {where}: {error}")
    return DownloadFailedError(f"Could not connect to {where}: {error}")
