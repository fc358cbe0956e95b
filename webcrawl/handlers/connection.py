"""One HTTP/1.1 connection: an asyncio protocol that feeds httptools' response parser.

Rules kept:
- One exchange at a time; bytes that arrive when none is running end the connection (RFC 9112 §9.2).
- A body ends as RFC 9112 §6.3 says: HEAD, 204 and 304 have none; chunked, then Content-Length, then the close.
- Interim (1xx) answers are skipped (RFC 9110 §15.2); 101 was never asked for and is a failure; trailers are dropped.
- At most HEAD_LIMIT_BYTES in a row without a byte of body, be it header fields, interim answers, chunk extensions or
  trailers: a peer that only talks about the body is cut off.
- A connection is fit for reuse only if the message ended exactly where the bytes ended.

The idea: no task, no stream, no lock. The waiting coroutine holds a future; everything else is plain calls from the
parser. Whoever began the exchange reads the fields of this object when the future is done, then lets the pool have it.
"""

from __future__ import annotations

import asyncio
import enum
import ssl
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, cast

import httptools
from scrapy.exceptions import DownloadFailedError, StopDownload

from webcrawl.handlers.head import final_head_span, repaired

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    from scrapy import Request

    from webcrawl.handlers.pool import Route

HEAD_LIMIT_BYTES = 64 * 1024
FLOOD = f"More than {HEAD_LIMIT_BYTES} bytes of header fields or framing without a byte of body."


class Ending(enum.Enum):
    """How the body of a response came to its end."""

    COMPLETE = enum.auto()
    CLOSED = enum.auto()  # by the close of the connection, the only sign there is (RFC 9112 §6.3, rule 8)
    LOST = enum.auto()  # before the length or the last chunk that was promised
    STOPPED = enum.auto()  # by a StopDownload of ours


class ConnectionDroppedError(DownloadFailedError):
    """The peer closed before the first byte of a response."""


class Supervisor(Protocol):
    """Who may end an exchange by raising: on its size, or because a signal's receiver says so."""

    alarm_bytes: int
    is_listening: bool

    def head_received(self, connection: Connection) -> None: ...
    def body_received(self, connection: Connection, data: bytes) -> None: ...


class _EnoughError(Exception):
    """Stops the parser where the message ends for us."""


class Connection(asyncio.Protocol):
    """A connection to one route; see the module's rules."""

    __slots__ = (
        "alarm_bytes",
        "body_bytes",
        "certificate",
        "chunks",
        "connect_seconds",
        "deadline",
        "dns_seconds",
        "feed",
        "first_byte_at",
        "head_at",
        "head_chunks",
        "headers",
        "ip_address",
        "is_complete",
        "is_head",
        "is_head_done",
        "is_open",
        "is_repaired",
        "keep_alive",
        "parser",
        "peer",
        "quiet_bytes",
        "request",
        "route",
        "status",
        "stop",
        "supervisor",
        "transport",
        "version",
        "waiter",
    )

    transport: asyncio.Transport
    parser: httptools.HttpResponseParser
    feed: Callable[[bytes], None]
    request: Request
    supervisor: Supervisor
    headers: dict[bytes, list[bytes]]
    chunks: list[bytes]
    head_chunks: list[bytes]

    def __init__(self, route: Route) -> None:
        self.route = route
        self.waiter: asyncio.Future[Ending] | None = None
        self.is_open = False
        self.keep_alive = False
        self.deadline = 0.0
        self.dns_seconds = 0.0
        self.connect_seconds = 0.0
        self.peer: tuple[Any, ...] = ()
        self.ip_address: IPv4Address | IPv6Address | None = None
        self.certificate: bytes | None = None
        self._renew_parser()

    def _renew_parser(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        # What browsers accept and what cannot be mistaken for another framing; the rest is head.repaired's business.
        self.parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_data_after_close=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self.feed = self.parser.feed_data

    # ------------------------------------------------------------ for the one who asks

    def begin(self, waiter: asyncio.Future[Ending], request: Request, supervisor: Supervisor, deadline: float) -> None:
        """Make ready for one exchange; the caller writes the request right after."""
        self.waiter = waiter
        self.request = request
        self.supervisor = supervisor
        self.alarm_bytes = supervisor.alarm_bytes
        self.deadline = deadline
        self.is_head = request.method == "HEAD"
        self.headers = {}
        self.chunks = []
        self.head_chunks = []
        self.body_bytes = self.quiet_bytes = 0
        self.is_head_done = self.is_complete = self.is_repaired = self.keep_alive = False
        self.stop: StopDownload | None = None

    def rest(self) -> None:
        """Let go of the last exchange: an idle connection must not keep a page in memory."""
        self.headers = {}
        self.chunks = self.head_chunks = []
        del self.request

    def body(self) -> bytes:
        """The body without its chunked framing, content coding untouched."""
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)

    def raw_head(self) -> bytes:
        """The final response's head exactly as received."""
        raw = b"".join(self.head_chunks)
        span = final_head_span(raw)
        return raw[span[0] : span[1]] if span else raw

    def fail(self, error: BaseException) -> None:
        """End the running exchange with an error and close the connection."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        self.abort()

    def abort(self) -> None:
        """Close now; what was not sent or read yet is of no use to anyone."""
        self.is_open = False
        self.transport.abort()

    # ------------------------------------------------------------ from the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.peer = transport.get_extra_info("peername") or ()
        self.is_open = not transport.is_closing()

    def data_received(self, data: bytes) -> None:
        if self.waiter is None:
            self.abort()
            return
        if not self.is_head_done:
            if not self.head_chunks:
                self.first_byte_at = monotonic()
            self.head_chunks.append(data)
        body_bytes = self.body_bytes
        try:
            self.feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._parser_stopped(error)
        if self.is_complete:
            self._end(Ending.COMPLETE)
        elif self.body_bytes == body_bytes:
            self._count_quiet(len(data))
        else:
            self.quiet_bytes = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self.waiter is None:
            self.route.forget(self)
        elif not self.head_chunks:
            self.fail(ConnectionDroppedError(f"The connection was closed before a response came ({exc})."))
        elif not self.is_head_done:
            self.fail(DownloadFailedError(f"The connection was closed inside the head of the response ({exc})."))
        elif self._ends_with_close() and (exc is None or isinstance(exc, ssl.SSLError)):
            # Many servers drop TLS without close_notify; the flag on the response says how much that is worth.
            self._end(Ending.CLOSED)
        else:
            self._end(Ending.LOST)
        self.feed = self._feed_nothing
        del self.parser  # breaks the cycle parser -> bound methods -> connection

    # ------------------------------------------------------------ from the parser

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise _EnoughError

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.is_head_done:
            return
        name = name.title()
        values = self.headers.get(name)
        if values is None:
            self.headers[name] = [value.strip()]
        else:
            values.append(value.strip())

    def on_headers_complete(self) -> None:
        status = self.status = self.parser.get_status_code()
        if status < 200:
            if status == 101:
                raise DownloadFailedError("The server switched protocols (101) without being asked.")
            return
        self.is_head_done = True
        self.head_at = monotonic()
        self.version = self.parser.get_http_version()
        if len(self.head_chunks[-1]) > HEAD_LIMIT_BYTES:
            self._check_head_size()
        if self.is_head:
            self.is_complete = True
            self.keep_alive = self.parser.should_keep_alive()
        length = self.headers.get(b"Content-Length")
        if self.supervisor.is_listening or (length is not None and int(length[0]) > self.alarm_bytes):
            self.supervisor.head_received(self)
        if self.is_head:
            raise _EnoughError

    def on_body(self, data: bytes) -> None:
        self.chunks.append(data)
        self.body_bytes += len(data)
        if self.body_bytes > self.alarm_bytes or self.supervisor.is_listening:
            self.supervisor.body_received(self, data)

    def on_message_complete(self) -> None:
        if not self.is_head_done:
            self.headers = {}  # an interim answer; the next head is the one
            return
        self.is_complete = True
        self.keep_alive = self.parser.should_keep_alive()
        if b"Transfer-Encoding" in self.headers and b"Content-Length" in self.headers:
            self.keep_alive = False  # RFC 9112 §6.3, rule 3: do not trust the framing any further

    # ------------------------------------------------------------ endings

    def _end(self, ending: Ending) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(ending)

    def _parser_stopped(self, error: Exception) -> None:
        """The parser gave up, or one of our callbacks told it to."""
        cause = error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else None
        if isinstance(cause, StopDownload):
            self.stop = cause
            self.is_complete = self.keep_alive = False
            self._end(Ending.STOPPED)
        elif self.is_complete:
            self._message_was_over()
        elif cause is not None:
            self.fail(cause)
        elif self.is_head_done:
            self._end(Ending.LOST)
        elif self.is_repaired:
            self.fail(DownloadFailedError(f"Not an HTTP response: {error}"))
        else:
            self.feed = self._feed_repair
            self._repair()

    def _message_was_over(self) -> None:
        """Bytes after the end, or the end of a HEAD exchange, which the parser cannot know."""
        if self.is_head and self.keep_alive:
            raw = b"".join(self.head_chunks)
            span = final_head_span(raw)
            self.keep_alive = span is not None and span[1] == len(raw)
            self._renew_parser()
        else:
            self.keep_alive = False

    def _feed_repair(self, data: bytes) -> None:
        """Stands in for the parser while a broken head is incomplete; data_received has kept the data."""
        assert self.head_chunks[-1] is data
        self._repair()

    def _repair(self) -> None:
        """Clean the head as soon as it is whole and give it to a new parser."""
        try:
            cleaned = repaired(b"".join(self.head_chunks))
        except ValueError as error:
            self.fail(DownloadFailedError(f"Not an HTTP response: {error}"))
            return
        if cleaned is None:
            return
        self.is_repaired = True
        self.headers = {}
        self._renew_parser()
        try:
            self.feed(cleaned)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._parser_stopped(error)

    def _feed_nothing(self, data: bytes) -> None:
        """A closed connection hears nothing more."""

    def _count_quiet(self, received_bytes: int) -> None:
        self.quiet_bytes += received_bytes
        if self.quiet_bytes > HEAD_LIMIT_BYTES:
            self.fail(DownloadFailedError(FLOOD))

    def _check_head_size(self) -> None:
        size = sum(len(name) + len(value) + 4 for name, values in self.headers.items() for value in values)
        if size > HEAD_LIMIT_BYTES:
            raise DownloadFailedError(FLOOD)

    def _ends_with_close(self) -> bool:
        codings = self.headers.get(b"Transfer-Encoding")
        if codings is not None:
            return codings[-1].rpartition(b",")[2].strip().lower() != b"chunked"
        return b"Content-Length" not in self.headers
