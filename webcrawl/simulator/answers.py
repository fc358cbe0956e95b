"""What a web is: host names, seeds, and an answer for each host and request target.

A `Web` is a pure lookup without sockets.  What changes from request to request (hosts that are busy, slow or down, a
robots.txt that becomes another one) is said by its rules and played around the lookup: see `stage.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webcrawl.simulator.addresses import Addresses
    from webcrawl.simulator.faults import Faults
    from webcrawl.simulator.robotsfiles import RobotsFiles

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


# How a connection can end instead of an answer, with the status that the access log has for it: those of a CDN whose
# origin server fails (Cloudflare's 5xx), so that a reader of the log takes them for failures of the server.
REFUSED, RESET, SILENT, BAD_TLS = "refuse", "reset", "silent", "tls"
FAILURES = {RESET: 520, REFUSED: 521, SILENT: 524, BAD_TLS: 525}


class CannotServeError(Exception):
    """A sentence for the person who started the server: what is wrong, why, what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, with its header block ready to be sent.

    `retry_after_seconds` goes to the access log and, as `retry_after_text` if that is given, to the client;
    `delay_seconds` is waited for before the answer leaves; `lines` are further header lines; an answer with an `ending`
    is never sent: the connection ends in that way instead.
    """

    status: int
    body: bytes = b""
    content_type: str = HTML
    location: str = ""
    retry_after_seconds: float | None = None
    delay_seconds: float = 0.0
    retry_after_text: str = ""
    lines: tuple[str, ...] = ()
    ending: str = ""
    status_line: bytes = field(init=False, repr=False)
    headers: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lines = [f"Content-Type: {self.content_type}", f"Content-Length: {len(self.body)}", *self.lines]
        if self.location:
            lines.append(f"Location: {self.location}")
        if self.retry_after_text or self.retry_after_seconds is not None:
            lines.append(f"Retry-After: {self.retry_after_text or format(self.retry_after_seconds, 'g')}")
        if self.status == HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET, HEAD, CONNECT")
        object.__setattr__(self, "status_line", _status_line(self.status))
        object.__setattr__(self, "headers", "".join(f"{line}\r\n" for line in lines).encode("latin-1"))


@cache
def _status_line(status: int) -> bytes:
    phrase = "Failure" if status in FAILURES.values() else HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def failure(ending: str, delay_seconds: float = 0.0) -> Answer:
    """No answer at all: the connection ends in one of the ways of `FAILURES`."""
    return Answer(FAILURES[ending], ending=ending, delay_seconds=delay_seconds)


def message(status: int, sentence: str) -> Answer:
    """A short page that says one sentence to whoever reads it."""
    text = sentence.replace("&", "&amp;").replace("<", "&lt;")
    title = f"{status} {HTTPStatus(status).phrase}"
    page = (
        f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>\n"
    )
    return Answer(status, page.encode("utf-8", "replace"))


def redirect(url: str, status: int = 301) -> Answer:
    """An answer that sends the client to another URL."""
    safe = url.encode("ascii", "backslashreplace").decode().translate(_UNSAFE_IN_HEADERS)
    return Answer(status, b"<!DOCTYPE html>\n<title>Moved</title>\n<p>This page has moved.</p>\n", location=safe)


_UNSAFE_IN_HEADERS = {code: f"%{code:02X}" for code in (*range(33), 127)}


class Web(Protocol):
    """Hosts and what they answer."""

    @property
    def host_count(self) -> int: ...

    @property
    def page_count(self) -> int: ...

    @property
    def seeds(self) -> tuple[str, ...]:
        """URLs from which to start a crawl."""
        ...

    def host_names(self) -> Iterator[str]:
        """The names of all hosts, the largest or first one first."""
        ...

    def manifest(self) -> Iterator[str]:
        """The URLs of all pages."""
        ...

    def answer(self, host: str, target: str) -> Answer | None:
        """What `host` (lower case, no port) answers to GET `target` (path and query); None: there is no such host."""
        ...

    @property
    def robots_files(self) -> RobotsFiles | None:
        """The robots.txt files that are made by rules; None: they are pages like others."""
        ...

    @property
    def fault_rules(self) -> Faults | None:
        """Which hosts fail, and when; None: no host does."""
        ...

    def host_number(self, name: str) -> int | None:
        """The place of a host in `host_names`, or None."""
        ...

    @property
    def addressing(self) -> Addresses:
        """At which addresses the server has to listen for which hosts."""
        ...

    def arguments(self) -> list[str]:
        """The command line of `python -m webcrawl.simulator` that serves this web."""
        ...


class Answering(Protocol):
    """Whatever answers for hosts."""

    def answer(self, host: str, target: str) -> Answer | None: ...


class CachedWeb:
    """Another web, with the answers that were used last kept up to a number of bytes."""

    def __init__(self, web: Web, limit_bytes: int = 256 << 20) -> None:
        self.web = web
        self.limit_bytes = limit_bytes
        self.kept_bytes = 0
        self._answers: OrderedDict[tuple[str, str], Answer] = OrderedDict()

    def answer(self, host: str, target: str) -> Answer | None:
        key = (host, target)
        kept = self._answers.get(key)
        if kept is not None:
            self._answers.move_to_end(key)
            return kept
        answer = self.web.answer(host, target)
        if answer is not None and answer.status < HTTPStatus.BAD_REQUEST:  # there is no end of things that do not exist
            self._keep(key, answer)
        return answer

    def _keep(self, key: tuple[str, str], answer: Answer) -> None:
        if _cost_bytes(key, answer) > self.limit_bytes // 8:
            return
        self._answers[key] = answer
        self.kept_bytes += _cost_bytes(key, answer)
        while self.kept_bytes > self.limit_bytes:
            self.kept_bytes -= _cost_bytes(*self._answers.popitem(last=False))


def _cost_bytes(key: tuple[str, str], answer: Answer) -> int:
    return len(answer.body) + len(key[1]) + 600  # 600: the objects around them
