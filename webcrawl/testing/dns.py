"""A name server on loopback that answers as its script says, over UDP and TCP.

For tests of what asks names: it knows only the names it was given (others do not exist), counts the questions, holds
answers back until told, and can be as broken as servers in the wild (Castillo 2004, appendix A.2). It runs on a loop in
a thread of its own, so it also serves other processes and tests without a loop.

    with FakeDns({"site.test": Name(a=("127.0.0.1",))}) as dns:
        Dns(servers=(dns.address,))
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Literal, cast

A, CNAME, SOA, TXT, AAAA = 1, 5, 6, 16, 28
NO_ERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5
_RCODES = {"answer": NO_ERROR, "servfail": SERVFAIL, "nxdomain": NXDOMAIN, "refused": REFUSED}
_TRUNCATED = 0x0200

Damage = Literal["", "bad_alias", "short_address", "too_few_records", "bad_authority", "cut", "noise"]


@dataclass(frozen=True)
class Name:
    """What the server says about one name; a family without addresses is answered with no data."""

    a: tuple[str, ...] = ()
    aaaa: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()  # a chain of CNAMEs; the addresses are those of the last one
    ttl_seconds: int = 300
    outcome: Literal["answer", "nxdomain", "servfail", "refused", "silence"] = "answer"
    negative_ttl_seconds: int | None = 900  # None: a negative answer without SOA record
    is_truncated: bool = False  # over UDP no record fits
    is_held: bool = False  # answered after `stop_holding`
    delay_seconds: float = 0.0
    damage: Damage = ""


@dataclass(frozen=True)
class Question:
    """One question as it came in."""

    name: str
    type: int
    transport: Literal["udp", "tcp"]


@dataclass
class FakeDns:
    """The server; use it as a context manager. `names` may be changed while it runs."""

    names: Mapping[str, Name]
    asked: list[Question] = field(default_factory=list)
    most_unanswered: int = 0
    address: str = ""

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="FakeDns", daemon=True)
        self._changed = threading.Condition()
        self._unanswered = 0
        self._is_holding = True
        self._held: list[Callable[[], None]] = []
        self._closing: list[Callable[[], None]] = []

    def __enter__(self) -> FakeDns:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def count(self, name: str, type_: int | None = None) -> int:
        """How often a name was asked for, of one record type or of any."""
        return sum(one.name == name and type_ in (None, one.type) for one in self.asked)

    def stop_holding(self) -> None:
        """Let all held answers go, and hold no more."""
        self._loop.call_soon_threadsafe(self._stop_holding)

    def wait_for_held(self, questions: int, timeout_seconds: float = 30.0) -> None:
        """Block until so many answers are being held; for other threads than the asker's."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._held) >= questions, timeout_seconds):
                raise TimeoutError(f"{len(self._held)} of {questions} questions came in {timeout_seconds:g} s.")

    # ------------------------------------------------------------------------------------------ serving

    async def _start(self) -> None:
        listener, sock = _two_sockets_on_one_port()
        transport, _ = await self._loop.create_datagram_endpoint(lambda: _Udp(self), sock=sock)
        server = await asyncio.start_server(self._serve_tcp, sock=listener)
        self._closing = [transport.close, server.close]
        self.address = "{}:{}".format(*sock.getsockname()[:2])

    async def _stop(self) -> None:
        for close in self._closing:
            close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def send(answer: bytes) -> None:
            writer.write(len(answer).to_bytes(2) + answer)

        try:
            while True:
                length = int.from_bytes(await reader.readexactly(2))
                self.take(await reader.readexactly(length), "tcp", send)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def take(self, message: bytes, transport: Literal["udp", "tcp"], send: Callable[[bytes], None]) -> None:
        """One question came in; `send` takes its answer."""
        question = _question(message, transport)
        self.asked.append(question)
        name = self.names.get(question.name, Name(outcome="nxdomain"))
        if name.outcome == "silence":
            return
        self._unanswered += 1
        self.most_unanswered = max(self.most_unanswered, self._unanswered)
        answer = _answer(message, question, name)

        def reply() -> None:
            self._unanswered -= 1
            send(answer)

        if name.is_held and self._is_holding:
            with self._changed:
                self._held.append(reply)
                self._changed.notify_all()
        elif name.delay_seconds:
            self._loop.call_later(name.delay_seconds, reply)
        else:
            reply()

    def _stop_holding(self) -> None:
        self._is_holding = False
        with self._changed:
            held, self._held = self._held, []
        for reply in held:
            reply()


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: FakeDns) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        transport = self._transport
        assert transport is not None
        self._server.take(data, "udp", lambda answer: transport.sendto(answer, addr))


def _two_sockets_on_one_port() -> tuple[socket.socket, socket.socket]:
    while True:
        listener, sock = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        listener.bind(("127.0.0.1", 0))
        try:
            sock.bind(listener.getsockname())
        except OSError:
            listener.close()
            sock.close()
            continue
        return listener, sock


# ------------------------------------------------------------------------------------------ the wire (RFC 1035 §4.1)


def _question(message: bytes, transport: Literal["udp", "tcp"]) -> Question:
    labels, at = [], 12
    while length := message[at]:
        labels.append(message[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    return Question(".".join(labels).lower(), int.from_bytes(message[at + 1 : at + 3]), transport)


def _answer(message: bytes, question: Question, name: Name) -> bytes:
    answers, authority = _records(question, name), _authority(name, question)
    damaged = _DAMAGES.get(name.damage)
    if damaged is not None and answers:
        return damaged(message, answers, name)
    if question.transport == "udp" and name.is_truncated:
        return _message(message, [], [], NO_ERROR, _TRUNCATED)
    return _message(message, answers, authority, _RCODES[name.outcome])


def _records(question: Question, name: Name) -> list[bytes]:
    if name.outcome != "answer":
        return []
    chain = [question.name, *name.aliases]
    found = [_record(one, CNAME, name.ttl_seconds, _name(to)) for one, to in pairwise(chain)]
    family, texts = (socket.AF_INET, name.a) if question.type == A else (socket.AF_INET6, name.aaaa)
    if question.type in (A, AAAA):
        found += [_record(chain[-1], question.type, name.ttl_seconds, socket.inet_pton(family, text)) for text in texts]
    return found


def _authority(name: Name, question: Question) -> list[bytes]:
    has_addresses = name.a if question.type == A else name.aaaa
    is_negative = name.outcome == "nxdomain" or (name.outcome == "answer" and not has_addresses)
    if not is_negative or name.negative_ttl_seconds is None:
        return []
    numbers = struct.pack("!5I", 1, 7200, 3600, 1_209_600, name.negative_ttl_seconds)
    return [_record("test", SOA, 86_400, _name("ns.test") + _name("admin.test") + numbers)]


def _message(
    asked: bytes, answers: list[bytes], authority: list[bytes], rcode: int, flags: int = 0, promised: int | None = None
) -> bytes:
    """An answer that repeats the question; `promised` records are announced, whatever there is."""
    count = len(answers) if promised is None else promised
    head = struct.pack("!2s5H", asked[:2], 0x8180 | flags | rcode, 1, count, len(authority), 0)
    return head + asked[12 : _end_of_question(asked)] + b"".join(answers) + b"".join(authority)


def _end_of_question(message: bytes) -> int:
    at = 12
    while length := message[at]:
        at += 1 + length
    return at + 5


def _record(name: str, type_: int, ttl_seconds: int, data: bytes) -> bytes:
    return _name(name) + struct.pack("!2HIH", type_, 1, ttl_seconds, len(data)) + data


def _name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.split(".")) + b"\0"


# ------------------------------------------------------------------------------------------ as found in the wild


def _bad_alias(asked: bytes, answers: list[bytes], name: Name) -> bytes:
    """A CNAME whose name is a pointer to itself stands before the addresses."""
    alias = _record("alias.test", CNAME, name.ttl_seconds, b"\xc0\x0c\xff")
    return _message(asked, [alias, *answers], [], NO_ERROR)


def _short_address(asked: bytes, answers: list[bytes], name: Name) -> bytes:
    return _message(asked, [_record("short.test", A, name.ttl_seconds, b"\x7f\0\0"), *answers], [], NO_ERROR)


def _too_few_records(asked: bytes, answers: list[bytes], name: Name) -> bytes:
    return _message(asked, answers, [], NO_ERROR, promised=len(answers) + 3)


def _bad_authority(asked: bytes, answers: list[bytes], name: Name) -> bytes:
    return _message(asked, answers, [_record("test", SOA, name.ttl_seconds, b"\x3fns")], NO_ERROR)


def _cut(asked: bytes, answers: list[bytes], name: Name) -> bytes:
    """The message ends in the middle of a record after the addresses."""
    return _message(asked, [*answers, _record("more.test", TXT, name.ttl_seconds, b"\x04text")[:-3]], [], NO_ERROR)


def _noise(asked: bytes, answers: list[bytes], name: Name) -> bytes:
    """Nothing in it can be read but the header."""
    return asked[:2] + b"\x81\x80" + b"\xff" * 40


_DAMAGES: dict[str, Callable[[bytes, list[bytes], Name], bytes]] = {
    "bad_alias": _bad_alias,
    "short_address": _short_address,
    "too_few_records": _too_few_records,
    "bad_authority": _bad_authority,
    "cut": _cut,
    "noise": _noise,
}
