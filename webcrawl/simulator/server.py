"""The server: answers for every host of a web on one loopback port, directly and as an HTTP proxy.

- `GET /path` with a Host field, and `GET http://host/path` as a proxy gets it, are answered from the web.
- `CONNECT host:443` is answered by the server itself: it ends TLS and redirects every https URL to the http one, so
  that each page exists once.
- Hosts that the web does not have are refused (502 to a proxied request, 404 to a direct one).  Nothing is forwarded:
  this module never opens a connection.
- On its own address there is a page for people at `/`, and `/seeds.txt`, `/manifest.txt`, `/hosts.txt` and `/ca.pem`.
- A connection ends without an answer where the rules of the web say so; see `faults.py`.

Requests of one connection are answered one after the other, in their order.  A connection keeps at most one unread
request head and stops reading while its client does not take the answers.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, cast

from webcrawl.simulator.accesslog import AccessLog
from webcrawl.simulator.answers import (
    BAD_TLS,
    RESET,
    SILENT,
    TEXT,
    Answer,
    CachedWeb,
    CannotServeError,
    Web,
    message,
    redirect,
)
from webcrawl.simulator.stage import Stage
from webcrawl.simulator.tunnel import Tunnel
from webcrawl.simulator.wire import (
    MOST_BODY_BYTES,
    MOST_HEAD_BYTES,
    Authority,
    BadRequestError,
    Fields,
    Request,
    read_request,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webcrawl.simulator.answers import Answering
    from webcrawl.simulator.certificates import Certificates

LOOPBACK = "127.0.0.1"
HTTP_PORT, HTTPS_PORT = 80, 443
LISTED_HOSTS = 500  # on the page for people
_OWN_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>A web without the internet</title></head>
<body>
<h1>A web without the internet</h1>
<p>{hosts:,} hosts, {pages:,} pages; {requests:,} requests answered so far.</p>
<p>Use this address as HTTP and HTTPS proxy, of a crawler or of this browser, to see them.
Nothing is forwarded to the real network.</p>
<pre>{how}</pre>
<p><a href="/seeds.txt">Seeds</a>, <a href="/manifest.txt">all pages</a>,
<a href="/ca.pem">certificate authority for https</a></p>
<ul>
{items}</ul>
{more}</body>
</html>
"""
_CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"  # fatal, handshake_failure (RFC 8446, section 6)
_LINGER_NOT = struct.pack("ii", 1, 0)  # close() then sends RST


def listen(port: int, address: str = LOOPBACK, is_open: bool = True) -> socket.socket:
    """A socket on a loopback address, bound to a port (0: a free one); a closed one refuses all connections."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        if is_open:
            listener.listen(4096)
    except (OSError, OverflowError) as problem:
        listener.close()
        raise CannotServeError(
            f"Port {port} of {address} cannot be used ({getattr(problem, 'strerror', None) or problem}), so the web "
            "cannot be served there. Stop the program that uses it, or choose another with --port (0 picks a free one)."
        ) from problem
    return listener


class Server:
    """A web behind a listening socket.  `close` it after use."""

    def __init__(
        self,
        web: Web,
        listener: socket.socket,
        log: Path | None = None,
        latency_seconds: float = 0.0,
        more_listeners: Sequence[socket.socket] = (),
    ) -> None:
        self.web = web
        self.listeners = (listener, *more_listeners)
        self.port: int = listener.getsockname()[1]
        self.latency_seconds = latency_seconds
        self.request_count = 0
        self.connection_count = 0
        self.silenced: set[Connection] = set()
        self._cached = CachedWeb(web)
        self._stage = Stage(web, self._cached) if web.robots_files or web.fault_rules else None
        self._answers: Answering = self._stage or self._cached  # a web without rules is as fast as it can be
        self._own_authorities = {f"{name}:{self.port}" for name in (LOOPBACK, "localhost")}
        self._log_path = log
        self._log: AccessLog | None = None
        self._date_second = 0
        self._date_line = b""

    @cached_property
    def certificates(self) -> Certificates:
        """Made with the first https request: most runs need none, and start faster without."""
        from webcrawl.simulator.certificates import Certificates

        return Certificates()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def start(self) -> list[asyncio.Server]:
        """Begins to answer, on the running event loop; one server for each address."""
        loop = asyncio.get_running_loop()
        if self._log_path is not None:
            self._log = open_log(self._log_path, loop)
        return [
            await loop.create_server(lambda: Connection(self, loop), sock=listener, backlog=4096)
            for listener in self.listeners
        ]

    def close(self) -> None:
        for connection in tuple(self.silenced):
            connection.note_silence()
        if self._log is not None:
            self._log.close()

    def answer(self, request: Request) -> Answer:
        """What is answered to a request with path and host; CONNECT is the connection's business."""
        if request.method not in {"GET", "HEAD"}:
            return message(405, f"This server answers GET and HEAD, not {request.method}.")
        name, host, port = request.authority
        if not request.scheme:
            if not name or name in self._own_authorities:
                return self._own_answer(request.target)
            return self._answers.answer(host, request.target) or self.no_such_host(name, 404)
        if request.scheme == "https":
            return self._to_http(request)
        if port is not None and port != HTTP_PORT:
            return self.no_such_host(name, 502)
        return self._answers.answer(host, request.target) or self.no_such_host(name, 502)

    def _to_http(self, request: Request) -> Answer:
        name, host, port = request.authority
        if port not in {None, HTTPS_PORT} or not self.has_host(host):
            return self.no_such_host(name, 502)
        return redirect(f"http://{host}{request.target}")

    def tunnel_failure(self, host: str) -> Answer | None:
        """How a tunnel to a host fails; None: it does not."""
        return self._stage.tunnel_answer(host) if self._stage is not None else None

    def has_host(self, host: str) -> bool:
        return self._cached.answer(host, "/") is not None

    @staticmethod
    def no_such_host(name: str, status: int) -> Answer:
        return message(
            status,
            f"This web has no host {name}. Nothing is forwarded to the real network. "
            "The hosts that exist are listed on the server's own address.",
        )

    def _own_answer(self, target: str) -> Answer:
        path = target.partition("?")[0]
        if path == "/":
            return Answer(200, self._own_page().encode())
        if path == "/seeds.txt":
            return Answer(200, "".join(f"{url}\n" for url in self.web.seeds).encode(), TEXT)
        if path == "/manifest.txt":
            return Answer(200, "".join(f"{url}\n" for url in self.web.manifest()).encode(), TEXT)
        if path == "/hosts.txt":
            lines = (f"{self.web.addressing.of(number)} {name}\n" for number, name in enumerate(self.web.host_names()))
            return Answer(200, "".join(lines).encode(), TEXT)
        if path == "/ca.pem":
            return Answer(200, self.certificates.authority_pem, "application/x-pem-file")
        return message(404, "The server's own address has only /, /seeds.txt, /manifest.txt, /hosts.txt and /ca.pem.")

    def _own_page(self) -> str:
        hosts = [name for _, name in zip(range(LISTED_HOSTS), self.web.host_names(), strict=False)]
        more = self.web.host_count - len(hosts)
        items = "".join(f'<li><a href="http://{escape(name)}/">{escape(name)}</a></li>\n' for name in hosts)
        return _OWN_PAGE.format(
            hosts=self.web.host_count,
            pages=self.web.page_count,
            requests=self.request_count,
            how=escape(self.how_to_crawl()),
            items=items,
            more=f"<p>and {more:,} more</p>\n" if more else "",
        )

    def how_to_crawl(self) -> str:
        """The lines to type in another terminal."""
        proxy = f"http_proxy={self.url} https_proxy={self.url}"
        options = "-a scope=all -s WEBCRAWL_SAFETY_ALLOW=127.0.0.0/8"  # the peer of every request is this server
        if len(self.web.seeds) == 1:
            return f"{proxy} scrapy crawl web -a seeds={self.web.seeds[0]} {options}"
        return f"curl -so seeds.txt {self.url}/seeds.txt\n{proxy} scrapy crawl web -a seeds=seeds.txt {options}"

    def date_line(self, now: float) -> bytes:
        if int(now) != self._date_second:
            self._date_second = int(now)
            self._date_line = time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT\r\n", time.gmtime(now)).encode()
        return self._date_line

    def note(
        self, received_at: float, request: Request, answer: Answer, status: int, body_bytes: int, ends: str
    ) -> None:
        """Counts and logs one answer."""
        self.request_count += 1
        if self._log is not None:
            self._log.note(received_at, request, status, body_bytes, answer.retry_after_seconds, ends)


def open_log(path: Path, loop: asyncio.AbstractEventLoop) -> AccessLog:
    """The access log, or a sentence why it cannot be written."""
    try:
        return AccessLog(path, loop.call_later)
    except OSError as problem:
        raise CannotServeError(
            f"The access log {path} cannot be written ({problem.strerror}). Choose another file with --log."
        ) from problem


class Connection(asyncio.Protocol):
    """One connection of a client, plain or, after CONNECT, inside a tunnel."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._unread = b""
        self._skip_bytes = 0  # of a request body that nobody reads
        self._is_waiting = False  # for the latency of the answer under way
        self._is_clogged = False  # the client does not take its answers
        self._is_reading = True
        self._tunnel: Tunnel | None = None
        self._tunnel_to: Authority | None = None
        self._is_tls_broken = False
        self._unanswered: tuple[Request, Answer, float] | None = None  # what the client waits for in vain

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._server.connection_count += 1
        client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._ends = f"{_address(client)} {self._server.connection_count} {_address(server)}:{self._server.port}"

    def connection_lost(self, problem: Exception | None) -> None:
        self.note_silence()

    def data_received(self, data: bytes) -> None:
        if self._is_tls_broken:
            self._transport.write(_TLS_ALERT)
            self._transport.close()
            return
        if self._tunnel is not None:
            try:
                data = self._tunnel.receive(data)
            except ssl.SSLError:
                self._transport.close()
                return
        self._unread = self._unread + data if self._unread else data
        self._work()

    def pause_writing(self) -> None:
        self._is_clogged = True

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._work()

    def _work(self) -> None:
        """Answers as many of the requests that have come as can be answered now."""
        while not (self._is_waiting or self._is_clogged or self._transport.is_closing()):
            if not self._answer_next():
                break
        self._read_on_if(len(self._unread) < MOST_HEAD_BYTES or not (self._is_waiting or self._is_clogged))

    def _read_on_if(self, is_reading: bool) -> None:
        if is_reading != self._is_reading and not self._transport.is_closing():
            self._is_reading = is_reading
            (self._transport.resume_reading if is_reading else self._transport.pause_reading)()

    def _answer_next(self) -> bool:
        """Answers one request; False when no whole one is there."""
        if self._skip_bytes:
            skipped = min(self._skip_bytes, len(self._unread))
            self._skip_bytes -= skipped
            self._unread = self._unread[skipped:]
        if self._unread.startswith(b"\r\n"):  # some clients end a body with one (RFC 9112, 2.2)
            self._unread = self._unread.lstrip(b"\r\n")
        end = self._unread.find(b"\r\n\r\n")
        if not 0 <= end <= MOST_HEAD_BYTES:
            if len(self._unread) > MOST_HEAD_BYTES:
                self._refuse(431, "The head of this request is too long.")
            return False
        head, self._unread = self._unread[:end], self._unread[end + 4 :]
        try:
            request = read_request(head)
        except BadRequestError as problem:
            self._refuse(400, str(problem))
            return False
        self._skip_bytes = request.fields.body_bytes
        if self._skip_bytes > MOST_BODY_BYTES:
            self._refuse(413, "The body of this request is too long.")
            return False
        self._take(request)
        return True

    def _refuse(self, status: int, sentence: str) -> None:
        request = Request("-", "-", "HTTP/1.1", "", Authority(), Fields(), keep_alive=False)
        self._send(request, message(status, sentence), time.time())

    def _take(self, request: Request) -> None:
        received_at = time.time()
        if self._tunnel_to is not None:
            request.scheme, request.authority = "https", self._tunnel_to
        elif request.method == "CONNECT":
            self._connect(request, received_at)
            return
        answer = self._server.answer(request)
        delay_seconds = self._server.latency_seconds + answer.delay_seconds
        if delay_seconds > 0 and answer.ending != SILENT:
            self._is_waiting = True
            self._loop.call_later(delay_seconds, self._send_late, request, answer, received_at)
        else:
            self._send(request, answer, received_at)

    def _connect(self, request: Request, received_at: float) -> None:
        """Opens a tunnel to a host of the web.  Only refusals are logged: a tunnel is no request to the host."""
        name, host, port = request.authority
        if port != HTTPS_PORT or not self._server.has_host(host):
            self._send(request, self._server.no_such_host(name, 502), received_at)
            return
        failure = self._server.tunnel_failure(host)
        if failure is not None and failure.ending != BAD_TLS:
            self._end(request, failure, received_at)
            return
        self._transport.write(_CONNECTED)
        if failure is not None:
            self._is_tls_broken, self._unread = True, b""
            self._note(request, failure, received_at)
            return
        self._tunnel_to = request.authority
        self._tunnel = Tunnel(self._server.certificates.context(host), self._transport.write)
        early, self._unread = self._unread, b""
        if early:
            self.data_received(early)

    def _send_late(self, request: Request, answer: Answer, received_at: float) -> None:
        self._is_waiting = False
        self._send(request, answer, received_at)
        self._work()

    def _end(self, request: Request, answer: Answer, received_at: float) -> None:
        """Ends the connection instead of answering, or stays silent until the client leaves."""
        if answer.ending == SILENT:
            self._is_waiting = True
            self._unanswered = (request, answer, received_at)
            self._server.silenced.add(self)
            return
        if answer.ending == RESET:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
            self._transport.abort()
        else:
            self._transport.close()
        self._note(request, answer, received_at)

    def note_silence(self) -> None:
        """Logs the request that got no answer, if there is one: when the client leaves, or the server ends."""
        if self._unanswered is not None:
            self._server.silenced.discard(self)
            self._note(*self._unanswered)
            self._unanswered = None

    def _note(self, request: Request, answer: Answer, received_at: float) -> None:
        self._server.note(received_at, request, answer, answer.status, 0, self._ends)

    def _send(self, request: Request, answer: Answer, received_at: float) -> None:
        if self._transport.is_closing():  # 499: the client left first (as nginx logs it)
            self._server.note(received_at, request, answer, 499, 0, self._ends)
            return
        if answer.ending:
            self._end(request, answer, received_at)
            return
        parts = [answer.status_line, self._server.date_line(received_at), answer.headers]
        if not request.keep_alive:
            parts.append(b"Connection: close\r\n")
        elif request.version == "HTTP/1.0":
            parts.append(b"Connection: keep-alive\r\n")
        parts.append(b"\r\n")
        body = b"" if request.method == "HEAD" else answer.body
        parts.append(body)
        (self._tunnel.send if self._tunnel is not None else self._transport.write)(b"".join(parts))
        if not request.keep_alive:
            self._transport.close()
        self._server.note(received_at, request, answer, answer.status, len(body), self._ends)


def _address(end: tuple[str, int] | None) -> str:
    """The address of one end of a connection; a client that has left at once has none."""
    return end[0] if end else "-"
