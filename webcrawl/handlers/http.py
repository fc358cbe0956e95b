"""A small, fast HTTP/1.1 download handler for Scrapy.

Rules kept:
- To the rest of Scrapy it is a handler like the others: same settings, meta keys, signals, flags and exceptions.
- A request lost on a reused connection before any byte of an answer is sent once more, on a new connection, if it is
  a GET or HEAD (RFC 9112 §9.3.1, RFC 9110 §9.2.2).
- `download_timeout` bounds the whole exchange, name look-up to last byte.
- What it does not do goes to Scrapy's own handler (`fallback.py`).

The idea: the coroutine that Scrapy runs anyway is the only one; between writing the request and reading the finished
response it waits for one future. Everything that few requests need is behind one comparison.

Besides what Scrapy expects it sets `meta["webcrawl_times"]` = (name look-up and connect, first byte, total) in seconds
and, asked by `meta["webcrawl_keep_exchange"]`, `meta["webcrawl_exchange"]` (`exchange.Exchange`). A request with
`meta["webcrawl_address"]` goes to that address of its host and to no other.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    DownloadCancelledError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from scrapy.utils._download_handlers import get_dataloss_msg, normalize_bind_address
from scrapy.utils.ssl import _log_sslobj_debug_info, _make_ssl_context

from webcrawl.handlers.connect import AddressRefused, Connector
from webcrawl.handlers.connection import Connection, ConnectionDroppedError, Ending
from webcrawl.handlers.dns import close_resolver_of, resolver_of
from webcrawl.handlers.exchange import Exchange
from webcrawl.handlers.fallback import Fallback, reason_to_fall_back
from webcrawl.handlers.head import request_head, safe_target, with_field
from webcrawl.handlers.limits import Limits, has_listeners
from webcrawl.handlers.pool import Pool, Route

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

__all__ = ["AddressRefused", "LeanHttpHandler"]

logger = logging.getLogger(__name__)

REPEATABLE = frozenset({"GET", "HEAD"})
ROUTES_REMEMBERED = 10_000
CONTENT_TYPES_REMEMBERED = 256
DEFAULT_PORTS = {"http": 80, "https": 443}

_BEFORE_TARGET = re.compile(r"[^:]*://[^/?#]*")


class LeanHttpHandler(BaseDownloadHandler):
    """Set it for "http" and "https" in DOWNLOAD_HANDLERS; see the module's rules."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT") or 180.0
        self._maxsize = settings.getint("DOWNLOAD_MAXSIZE")
        self._warnsize = settings.getint("DOWNLOAD_WARNSIZE")
        self._limits = Limits(crawler, self._maxsize, self._warnsize, is_listening=False)
        self._fail_on_dataloss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._is_dataloss_warned = False
        self._is_tls_verbose = settings.getbool("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING")
        self._has_own_tls = settings["DOWNLOADER_CLIENTCONTEXTFACTORY"] != "SENTINEL"
        self._may_fall_back = True  # until the loop is known to be asyncio's
        self._fallback = Fallback(crawler)
        self._pool = Pool(self._overdue)
        self._routes: dict[object, Route] = {}
        self._classes: dict[bytes, type[Response]] = {}
        self._tls: ssl.SSLContext | None = None
        self._connector: Connector | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def download_request(self, request: Request) -> Response:
        """Fetch one page, or have Scrapy's own handler fetch it."""
        meta = request.meta
        if self._may_fall_back or "proxy" in meta or "bindaddress" in meta or request.method == "CONNECT":
            reason = self._reason_to_fall_back(request, meta)
            if reason is not None:
                return await self._fallback.download_request(request, reason)
        started = monotonic()
        route, target = self._locate(request, meta)
        head = request_head(request.method, target, route.authority, request.headers, len(request.body))
        connection, ending = await self._exchange(request, meta, route, head, started)
        try:
            return self._response(request, meta, connection, ending, head, started)
        finally:
            self._pool.release(connection)

    async def close(self) -> None:
        """Close all connections; what is still under way is cancelled."""
        close_resolver_of(self.crawler)
        for connection in self._pool.close():
            connection.fail(DownloadCancelledError("The download handler was closed."))
        await self._fallback.close()
        if self._loop is not None:
            await asyncio.sleep(0)  # lets the transports report that they are closed

    # ------------------------------------------------------------ where to

    def _reason_to_fall_back(self, request: Request, meta: dict[str, Any]) -> str | None:
        if self._loop is None:
            try:
                self._loop = asyncio.get_running_loop()
            except RuntimeError:
                return "a reactor that is not asyncio's"
            self._may_fall_back = self._has_own_tls
        if self._has_own_tls and request.url[:6].lower() == "https:":
            return "DOWNLOADER_CLIENTCONTEXTFACTORY set"
        return reason_to_fall_back(request.method, meta)

    def _locate(self, request: Request, meta: dict[str, Any]) -> tuple[Route, str]:
        """The route and the request target (RFC 9112 §3.2)."""
        url = request.url
        slash = url.find("/", 8)
        route = self._routes.get(url[:slash]) if slash > 0 else None
        if route is None or meta.get("proxy"):
            return self._locate_slowly(request, meta)
        fragment = url.find("#", slash)
        return route, safe_target(url[slash:] if fragment < 0 else url[slash:fragment])

    def _locate_slowly(self, request: Request, meta: dict[str, Any]) -> tuple[Route, str]:
        url = request.url.partition("#")[0]
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise UnsupportedURLSchemeError(f"The port in {url} is not a number below 65536.") from error
        if not host:
            raise UnsupportedURLSchemeError(f"No host in {url}")
        proxy, proxy_auth = _proxy(request, meta)
        place = (parts.scheme, _ascii_host(host), port or DEFAULT_PORTS[parts.scheme], proxy, proxy_auth)
        route = self._routes.get(place) or self._add_route(place)
        prefix = f"{parts.scheme}://{parts.netloc}"
        if proxy is None and "@" not in prefix:
            self._routes[prefix] = route
        rest = _BEFORE_TARGET.sub("", url, count=1)
        target = safe_target(rest if rest.startswith("/") else "/" + rest)
        if proxy is not None and not route.is_tunnel:
            target = f"{route.scheme}://{route.authority}{target}"
        return route, target

    def _add_route(self, place: tuple[str, str, int, tuple[str, int] | None, bytes | None]) -> Route:
        if len(self._routes) >= ROUTES_REMEMBERED:
            self._routes = {key: route for key, route in self._routes.items() if route.idle}
        scheme, host, port, proxy, proxy_auth = place
        name = f"[{host}]" if ":" in host else host
        authority = name if port == DEFAULT_PORTS[scheme] else f"{name}:{port}"
        route = self._routes[place] = Route(self._pool, scheme, host, port, authority, proxy, proxy_auth)
        return route

    # ------------------------------------------------------------ there and back

    async def _exchange(
        self, request: Request, meta: dict[str, Any], route: Route, head: bytes, started: float
    ) -> tuple[Connection, Ending]:
        timeout: float = meta.get("download_timeout") or self._timeout
        limits = self._supervision(meta)
        wire = head
        if route.proxy_auth and not route.is_tunnel:
            wire = with_field(head, b"Proxy-Authorization", route.proxy_auth)
        connection = self._take(route, meta.get("webcrawl_address"))
        is_reused = connection is not None
        while True:
            if connection is None:
                connection = await self._open(request, route, started, timeout)
            try:
                return connection, await self._send(connection, request, limits, wire, started + timeout)
            except ConnectionDroppedError:
                if not is_reused or request.method not in REPEATABLE:
                    raise
                connection, is_reused = None, False

    def _take(self, route: Route, pinned: str | None) -> Connection | None:
        """A kept connection; not one to another address of the host than the request is meant for."""
        connection = self._pool.take(route)
        if connection is None or pinned is None or route.proxy is not None or connection.peer[:1] == (pinned,):
            return connection
        connection.abort()
        return None

    async def _send(
        self, connection: Connection, request: Request, limits: Limits, wire: bytes, deadline: float
    ) -> Ending:
        assert self._loop is not None
        if not connection.is_open:  # some servers close, or speak, before they are asked
            raise ConnectionDroppedError("The connection was closed before the request could be sent.")
        waiter: asyncio.Future[Ending] = self._loop.create_future()
        connection.begin(waiter, request, limits, deadline)
        self._pool.watch(connection)
        connection.transport.write(wire + request.body if request.body else wire)
        try:
            return await waiter
        except BaseException:
            connection.keep_alive = False
            self._pool.release(connection)
            raise

    async def _open(self, request: Request, route: Route, started: float, seconds: float) -> Connection:
        if self._connector is None:
            check = getattr(self.crawler, "webcrawl_check_address", None)
            bind = normalize_bind_address(self.crawler.settings.get("DOWNLOAD_BIND_ADDRESS"))
            self._connector = Connector(resolver_of(self.crawler), self._tls_context, check, bind)
        try:
            async with asyncio.timeout(started + seconds - monotonic()):
                connection = await self._connector.open(route, request.meta.get("webcrawl_address"))
        except TimeoutError as error:
            raise DownloadTimeoutError(_too_slow(request, seconds)) from error
        except AddressRefused:
            request.meta["dont_retry"] = True  # the answer would be the same
            raise
        self._describe_peer(connection)
        return connection

    def _overdue(self, connection: Connection) -> None:
        request = connection.request
        seconds = request.meta.get("download_timeout") or self._timeout
        connection.fail(DownloadTimeoutError(_too_slow(request, seconds)))

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = _make_ssl_context(self.crawler.settings)
            self._tls.set_alpn_protocols(["http/1.1"])
            # As Scrapy's default handler: old servers without secure renegotiation are still part of the web.
            self._tls.options |= getattr(ssl, "OP_LEGACY_SERVER_CONNECT", 0x4)
        return self._tls

    def _describe_peer(self, connection: Connection) -> None:
        """What every response of this connection says about the other end."""
        if connection.peer:
            connection.ip_address = ip_address(connection.peer[0].partition("%")[0])
        secured = connection.transport.get_extra_info("ssl_object")
        if secured is not None:
            connection.certificate = secured.getpeercert(binary_form=True)
            if self._is_tls_verbose:
                _log_sslobj_debug_info(secured)

    def _supervision(self, meta: dict[str, Any]) -> Limits:
        is_listening = has_listeners(self.crawler.signals.sender)
        if not is_listening and "download_maxsize" not in meta and "download_warnsize" not in meta:
            return self._limits
        maxsize = meta.get("download_maxsize", self._maxsize)
        warnsize = meta.get("download_warnsize", self._warnsize)
        return Limits(self.crawler, maxsize, warnsize, is_listening=is_listening)

    # ------------------------------------------------------------ the response

    def _response(
        self,
        request: Request,
        meta: dict[str, Any],
        connection: Connection,
        ending: Ending,
        head: bytes,
        started: float,
    ) -> Response:
        self._note_times(meta, connection, head, started)
        headers = Headers()
        dict.update(headers, connection.headers)
        body = connection.body()
        url = request.url
        if "#" in url:
            url = url.partition("#")[0]
        response = self._class(connection, headers, url, body)(
            url,
            status=connection.status,
            body=body,
            certificate=connection.certificate,
            ip_address=connection.ip_address,
            protocol="HTTP/1.1" if connection.version == "1.1" else f"HTTP/{connection.version}",
        )
        response.headers = headers
        if ending is not Ending.COMPLETE:
            self._flag(request, meta, connection, ending, response)
        return response

    def _class(self, connection: Connection, headers: Headers, url: str, body: bytes) -> type[Response]:
        """What `responsetypes.from_args` says, remembered where the Content-Type alone decides."""
        said = connection.headers.get(b"Content-Type")
        if said is None or b"Content-Encoding" in connection.headers:
            return responsetypes.from_args(headers=headers, url=url, body=body)
        kind = self._classes.get(said[-1])
        if kind is None:
            kind = responsetypes.from_content_type(said[-1])
            if kind is Response:
                return responsetypes.from_args(headers=headers, url=url, body=body)
            if len(self._classes) >= CONTENT_TYPES_REMEMBERED:
                self._classes.clear()
            self._classes[said[-1]] = kind
        return kind

    def _flag(
        self, request: Request, meta: dict[str, Any], connection: Connection, ending: Ending, response: Response
    ) -> None:
        """Mark a response that may not be whole, or raise instead of giving it."""
        if ending is Ending.CLOSED:
            response.flags.append("partial")
        elif ending is Ending.STOPPED:
            assert connection.stop is not None
            response.flags.append("download_stopped")
            if connection.stop.fail:
                connection.stop.response = response
                raise connection.stop
        elif not meta.get("download_fail_on_dataloss", self._fail_on_dataloss):
            response.flags.append("dataloss")
        else:
            if not self._is_dataloss_warned:
                self._is_dataloss_warned = True
                logger.warning(get_dataloss_msg(request.url))
            raise ResponseDataLossError(f"{request.url} ended after {connection.body_bytes} bytes, before its end.")

    def _note_times(self, meta: dict[str, Any], connection: Connection, head: bytes, started: float) -> None:
        total = monotonic() - started
        first_byte = connection.first_byte_at - started
        dns, connect = connection.dns_seconds, connection.connect_seconds
        connection.dns_seconds = connection.connect_seconds = 0.0  # paid once, by the first exchange
        meta["download_latency"] = connection.head_at - started
        meta["webcrawl_times"] = (dns + connect, first_byte, total)
        if meta.get("webcrawl_keep_exchange"):
            meta["webcrawl_exchange"] = Exchange(
                raw_request_head=head,
                raw_response_head=connection.raw_head(),
                raw_body=connection.body(),
                peer=cast("tuple[str, int]", connection.peer[:2]),
                started_at=time.time() - total,
                dns_seconds=dns,
                connect_seconds=connect,
                first_byte_seconds=first_byte,
                total_seconds=total,
            )


def _proxy(request: Request, meta: dict[str, Any]) -> tuple[tuple[str, int] | None, bytes | None]:
    """Address of the proxy and what to tell it, as HttpProxyMiddleware leaves them."""
    url: str | None = meta.get("proxy")
    if not url:
        return None, None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        host, port = parts.hostname, parts.port or 80
    except ValueError as error:
        raise DownloadFailedError(f"The port of the proxy {url!r} is not a number below 65536.") from error
    if not host:
        raise DownloadFailedError(f"No host in the proxy address {url!r}.")
    return (host, port), request.headers.get(b"Proxy-Authorization")


def _ascii_host(host: str) -> str:
    """A host as DNS and TLS know it (IDNA; Scrapy has done this already unless meta verbatim_url is set)."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise DownloadFailedError(f"{host!r} is not a valid host name: {error}") from error


def _too_slow(request: Request, timeout: float) -> str:
    return f"Getting {request.url} took longer than {timeout} seconds."
