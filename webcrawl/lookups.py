"""The ways to ask for the addresses of a name: c-ares, the system in threads, and one question read tolerantly.

Rules kept:
- A look-up never raises for what servers say or do not say; it answers (`core.names.Answer`).
- c-ares (`pip install 'webcrawl[fast]'`) knows TTLs, repeats questions, changes servers, turns to TCP for long answers
  and notices a new /etc/resolv.conf. Without it, or without any name server, the system is asked in a few threads; that
  tells no TTL.
- c-ares refuses a whole answer for one bad record, and with it the questions under way on the same socket; and
  pycares keeps the SOA record of a negative answer to itself. In these two cases the question is asked once more by
  us and read by `core.dnsmessage`: for the addresses (Castillo 2004, §A.2.3), and for how long a name is dead.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from webcrawl.core.dnsmessage import AAAA, A, Question, is_truncated, read
from webcrawl.core.names import Answer, Dns, Failure, both_families, in_order, server_address

if TYPE_CHECKING:
    import pycares

logger = logging.getLogger(__name__)

MOST_THREADS = 32


class LookupUnavailable(Exception):
    """This way of asking cannot be used here; the message says why."""


class Lookup(Protocol):
    """A way to ask."""

    async def look_up(self, name: str) -> Answer:
        """Both families of a name."""

    def close(self) -> None:
        """Give up what is under way."""


def best_lookup(dns: Dns) -> Lookup:
    """c-ares where it works, else the system; call it in the loop that will ask."""
    try:
        return CaresLookup(dns)
    except LookupUnavailable as unavailable:
        logger.info("DNS fallback: the system is asked in threads, without TTLs. reason=%s", unavailable)
        if dns.servers:
            logger.warning("WEBCRAWL_DNS_SERVERS has no effect without c-ares: pip install 'webcrawl[fast]'.")
        return ThreadLookup(dns)


# ---------------------------------------------------------------------------------------------- c-ares


class CaresLookup:
    """Look-ups by c-ares, which has a thread of its own and wakes the loop once per look-up."""

    def __init__(self, dns: Dns, resolv_conf: str | None = None) -> None:
        try:
            import pycares
        except ImportError as error:
            raise LookupUnavailable("pycares is not installed") from error
        self._failures = _failures()
        self._loop = asyncio.get_running_loop()
        self._timeout = dns.timeout_seconds
        self._tries = dns.tries
        flags = pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS
        if not dns.servers:
            flags |= pycares.ARES_FLAG_NO_DFLT_SVR  # else 127.0.0.1 is asked where /etc/resolv.conf is missing
        try:
            self._channel = pycares.Channel(
                flags=flags,
                timeout=dns.timeout_seconds,
                tries=dns.tries,
                servers=dns.servers or None,
                resolvconf_path=resolv_conf,
            )
        except pycares.AresError as error:
            raise LookupUnavailable(f"no name server is configured ({error})") from error
        self._refused = pycares.AresError
        self._is_closed = False

    async def look_up(self, name: str) -> Answer:
        """Both families by c-ares; what it cannot read or does not tell, by a question of our own."""
        ipv4, ipv6 = await self._by_cares(name)
        if ipv4.error == "malformed":
            ipv4 = await self._by_ourselves(name, A)
        if ipv6.error == "malformed":
            ipv6 = await self._by_ourselves(name, AAAA)
        answer = both_families(ipv4, ipv6)
        if answer.error in ("nxdomain", "nodata") and answer.ttl_seconds is None:
            answer = await self._with_ttl(name, answer)
        return answer

    def close(self) -> None:
        """Give up what is under way; the channel ends in a thread of its own."""
        if not self._is_closed:
            self._is_closed = True
            self._channel.cancel()
            self._channel.close()

    async def _by_cares(self, name: str) -> tuple[Answer, Answer]:
        if self._is_closed:
            return Answer(error="timeout"), Answer(error="timeout")
        done: asyncio.Future[None] = self._loop.create_future()
        answers: dict[int, Answer] = {}

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        def take(type_: int, result: pycares.DNSResult | None, errno: int | None) -> None:
            """Called in the thread of c-ares."""
            answers[type_] = _answer(type_, result) if result else self._failure(errno)
            if len(answers) == 2:
                try:
                    self._loop.call_soon_threadsafe(finish)
                except RuntimeError:  # the loop was closed first: nobody waits
                    pass

        for type_ in (A, AAAA):
            try:
                self._channel.query(name, type_, callback=partial(take, type_))
            except self._refused as error:
                if type_ not in answers:
                    take(type_, None, error.args[0])
        await done
        return answers[A], answers[AAAA]

    async def _with_ttl(self, name: str, negative: Answer) -> Answer:
        """The same answer with the TTL of its zone, if the server says it once more."""
        again = await self._by_ourselves(name, A, tries=1)
        is_better = again.addresses or again.ttl_seconds is not None
        return both_families(again, Answer(error=negative.error)) if is_better else negative

    def _failure(self, errno: int | None) -> Answer:
        return Answer(error=self._failures.get(errno or 0, "servfail"))

    async def _by_ourselves(self, name: str, type_: int, tries: int | None = None) -> Answer:
        """Every server in turn, until one has an answer that can be read."""
        answer = Answer(error="timeout")
        servers = _servers(self._channel.servers) if not self._is_closed else []
        for _ in range(tries or self._tries):
            for server in servers:
                answer = await ask_server(server, name, type_, self._timeout)
                if answer.error not in ("timeout", "servfail", "malformed"):
                    return answer
        return answer


def _failures() -> dict[int, Failure]:
    """What the error numbers of c-ares mean to us; others are failures of the server."""
    from pycares import errno

    return {
        errno.ARES_ENOTFOUND: "nxdomain",
        errno.ARES_EBADNAME: "nxdomain",
        errno.ARES_ENODATA: "nodata",
        errno.ARES_ETIMEOUT: "timeout",
        errno.ARES_ECONNREFUSED: "timeout",
        errno.ARES_ECANCELLED: "timeout",
        errno.ARES_EDESTRUCTION: "timeout",
        errno.ARES_EBADRESP: "malformed",
    }


def _answer(type_: int, result: pycares.DNSResult) -> Answer:
    """The addresses of an answer; it holds as long as each record of the chain that leads to them."""
    found = [cast("pycares.ARecordData", record.data) for record in result.answer if record.type == type_]
    if found:
        return Answer(tuple(data.addr for data in found), min(record.ttl for record in result.answer))
    soa = [min(record.ttl, record.data.minimum) for record in result.authority if hasattr(record.data, "minimum")]
    return Answer((), soa[0] if soa else None, "nodata")


def _servers(texts: Sequence[str]) -> list[tuple[str, int]]:
    found = []
    for text in texts:
        try:
            found.append(server_address(text))
        except ValueError:  # a link-local server, with its interface: c-ares alone asks it
            continue
    return found


# ---------------------------------------------------------------------------------------------- one question


async def ask_server(server: tuple[str, int], name: str, type_: int, timeout_seconds: float) -> Answer:
    """One question to one server, over TCP if the answer is too long for UDP, read tolerantly."""
    question = Question.ask(name, type_, secrets.randbits(16))
    try:
        async with asyncio.timeout(timeout_seconds):
            message = await _by_udp(server, question)
            answer = read(message, question)
            if is_truncated(message) and not answer.addresses:
                answer = read(await _by_tcp(server, question), question)
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        return Answer(error="timeout")
    return answer


async def _by_udp(server: tuple[str, int], question: Question) -> bytes:
    """Every question has a socket, and so a port, of its own: harder to forge an answer to (RFC 5452 §9.2)."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[bytes] = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Answered(question, answered), remote_addr=server)
    try:
        transport.sendto(question.message)
        return await answered
    finally:
        transport.close()


class _Answered(asyncio.DatagramProtocol):
    def __init__(self, question: Question, answered: asyncio.Future[bytes]) -> None:
        self._question = question
        self._answered = answered

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self._question.is_answered_by(data) and not self._answered.done():
            self._answered.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self._answered.done():
            self._answered.set_exception(exc)


async def _by_tcp(server: tuple[str, int], question: Question) -> bytes:
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(len(question.message).to_bytes(2) + question.message)
        message = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
    finally:
        writer.close()
    if not question.is_answered_by(message):
        raise ConnectionError("the answer is to another question")
    return message


# ---------------------------------------------------------------------------------------------- the system


class ThreadLookup:
    """The system's own look-up, which blocks, in threads."""

    def __init__(self, dns: Dns) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(min(dns.concurrent_lookups, MOST_THREADS), thread_name_prefix="dns")
        self._is_closed = False

    async def look_up(self, name: str) -> Answer:
        """Whatever the system says."""
        if self._is_closed:
            return Answer(error="timeout")
        return await self._loop.run_in_executor(self._threads, _by_system, name)

    def close(self) -> None:
        """What has not begun never will; what has ends when the system gives up."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)


def _by_system(name: str) -> Answer:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Answer(error=_SYSTEM_FAILURES.get(error.errno or 0, "servfail"))
    except UnicodeError:
        return Answer(error="nxdomain")
    except OSError:
        return Answer(error="servfail")
    addresses = in_order(cast("str", sockaddr[0]) for *_, sockaddr in found)
    return Answer(addresses, error="" if addresses else "nodata")


_SYSTEM_FAILURES: dict[int, Failure] = {
    socket.EAI_NONAME: "nxdomain",
    getattr(socket, "EAI_NODATA", socket.EAI_NONAME - 1000): "nodata",
}
